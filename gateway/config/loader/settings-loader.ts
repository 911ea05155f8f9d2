import { on } from 'node:events';
import { getHeapStatistics } from 'node:v8';
import { Worker } from 'node:worker_threads';
import type { Settings } from '../../shared/model.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import type { LastValid } from '../last-valid/keep-valid-files.ts';
import type { InvalidSettings, LoadOptions } from '../load-settings.ts';
import { wholeFile } from '../problems/problem.ts';
import { type Digests, UnsettledContent } from '../source/read-config-file.ts';
import type { FileRead, HandedSettings, LoadReply, LoadRequest } from './settings-loader-worker.ts';
import { applyMessage } from './settings-message.ts';

/** Loads in a separate thread. Calls run one after the other. */
export interface SettingsLoader {
  /**
   * @param base the current settings, which this loader loaded earlier; unchanged keys are not read again
   * @throws UnsettledContent at a long text that is not in `options.settled`
   * @throws when the thread dies, for example out of memory; the next call starts a new thread
   */
  load(options: LoaderOptions, base?: Settings): Promise<LoadedInThread>;
  /** The promise of a running call then never settles. The next call starts a new thread. */
  close(): void;
}

interface LoaderOptions extends Pick<LoadOptions, 'file' | 'env' | 'onRead' | 'settled'> {
  /** Replaces files with an error. Without it, any error makes the result invalid. */
  readonly lastValid?: LastValid | undefined;
}

export type LoadedInThread = InvalidSettings | ValidInThread;

/** The message changes the settings `base` to these settings. */
export interface ValidInThread extends HandedSettings {
  readonly settings: Settings;
  readonly base?: Settings | undefined;
}

/**
 * A thread, because 100,000 keys take a second to read and would delay requests. It stays for a while, because one edit often follows
 * another, and the next call then reads only the changes. An idle thread exits to free its memory.
 */
export function createSettingsLoader(bounds: Bounds): SettingsLoader {
  let worker: Worker | undefined;
  let idleTimer: NodeJS.Timeout | undefined;
  let loads = 0;
  /** The number of the request whose reply contained the settings. */
  const numbers = new WeakMap<Settings, number>();

  function start(): Worker {
    const started = new Worker(new URL('./settings-loader-worker.ts', import.meta.url), {
      name: 'config',
      resourceLimits: {
        maxOldGenerationSizeMb: heapMebibytes(bounds),
        maxYoungGenerationSizeMb: bounds.configThreadYoungMebibytes,
      },
    });
    // Never removed, because an error event without a listener would end the process.
    started.on('error', () => {
      if (worker === started) close();
    });
    return started;
  }

  function close(): void {
    clearTimeout(idleTimer);
    void worker?.terminate();
    worker = undefined;
  }

  return {
    async load({ file, env, lastValid, onRead, settled }, base) {
      clearTimeout(idleTimer);
      const thread = worker ?? start();
      worker = thread;
      const number = ++loads;
      const request: LoadRequest = {
        file,
        env: { ...env },
        number,
        base: (base && numbers.get(base)) ?? 0,
        // The whole object would be sent to the thread.
        lastValid: lastValid && pickLastValid(lastValid),
        settled,
      };
      thread.postMessage(request);
      const reply = await replyOf(thread, onRead);
      idleTimer = setTimeout(close, bounds.configThreadIdleMs).unref();
      if (reply.kind === 'unsettled') throw new UnsettledContent(file);
      if (reply.kind === 'invalid') return reply;
      const settings = applyMessage(base, reply.message);
      numbers.set(settings, number);
      return { ...reply, settings, base };
    },
    close,
  };
}

function pickLastValid({ contents, keysFile, kept, revoking }: LastValid): LastValid {
  return { contents, keysFile, kept, revoking };
}

export function failedLoad(file: string, error: unknown, digests: Digests = new Map()): InvalidSettings {
  const message = `the configuration cannot be loaded: ${error instanceof Error ? error.message : error}`;
  return {
    kind: 'invalid',
    problems: [{ ...wholeFile(file), message }],
    suspects: [],
    digests,
    version: message,
  };
}

/** At most the heap limit of the process, which Node derives from the container's memory. */
function heapMebibytes(bounds: Bounds): number {
  return Math.min(bounds.configThreadHeapMebibytes, getHeapStatistics().heap_size_limit / 1_048_576);
}

/** Calls `onRead` for each file that the thread reports before its reply. */
async function replyOf(thread: Worker, onRead?: LoadOptions['onRead']): Promise<LoadReply> {
  // Unlike `once`, `on` receives every message when several arrive together.
  for await (const [message] of on(thread, 'message')) {
    const reply: LoadReply | FileRead = message;
    if (reply.kind !== 'read') return reply;
    onRead?.(reply.file, reply.digest);
  }
  throw new Error('the thread that loads the configuration has ended');
}
