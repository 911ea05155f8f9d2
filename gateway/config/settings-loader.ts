import { on } from 'node:events';
import { getHeapStatistics } from 'node:v8';
import { Worker } from 'node:worker_threads';
import type { Settings } from '../shared/model.ts';
import type { Bounds } from '../shared/timeouts-and-sizes.ts';
import type { LastValid } from './last-valid/keep-valid-files.ts';
import type { InvalidSettings, LoadOptions } from './load-settings.ts';
import { wholeFile } from './problems/problem.ts';
import type { FileRead, HandedSettings, LoadReply, LoadRequest } from './settings-loader-worker.ts';
import { applyMessage } from './settings-message.ts';
import type { Digests } from './source/read-config-file.ts';
import { UnsettledContent } from './source/source-reader.ts';

/** Runs loads of the configuration in a separate thread, one after the other. */
export interface SettingsLoader {
  /**
   * @param options.onRead called during the load
   * @param base the current settings, from an earlier load of this loader; unchanged keys are not read again
   * @throws UnsettledContent at a long text that is not in `options.settled`
   * @throws when the thread dies, for example out of memory; the next load starts a new thread
   */
  load(options: LoaderOptions, base?: Settings): Promise<LoadedInThread>;
  /** Ends the thread. The promise of a running load never settles. The next load starts a new thread. */
  close(): void;
}

interface LoaderOptions extends Pick<LoadOptions, 'file' | 'env' | 'onRead' | 'settled'> {
  /** The contents that files at fault fall back on. Without them, a file at fault makes the load invalid. */
  readonly lastValid?: LastValid | undefined;
}

export type LoadedInThread = InvalidSettings | ValidInThread;

/** Valid settings, with a message that turns the settings `base` into them. */
export interface ValidInThread extends HandedSettings {
  readonly settings: Settings;
  readonly base?: Settings | undefined;
}

/**
 * Makes a loader that does not delay requests, although 100,000 keys take a second to read. A load starts the thread. The thread
 * remains for a while, because one edit often follows another, and then it needs to read only the changes. When it is idle for
 * longer, it ends to free its memory.
 */
export function createSettingsLoader(bounds: Bounds): SettingsLoader {
  let worker: Worker | undefined;
  let idleTimer: NodeJS.Timeout | undefined;
  let loads = 0;
  /** The number of the load that made each settings object. */
  const numbers = new WeakMap<Settings, number>();

  function start(): Worker {
    const started = new Worker(new URL('./settings-loader-worker.ts', import.meta.url), {
      name: 'config',
      resourceLimits: {
        maxOldGenerationSizeMb: heapMebibytes(bounds),
        maxYoungGenerationSizeMb: bounds.configThreadYoungMebibytes,
      },
    });
    // Needed between loads too, because an error event without a listener would end the process.
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
        // Only the needed fields, because the whole object is sent.
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

/** The result of a load that threw an error. */
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

/** The thread's heap limit, at most the heap limit of the process, which Node derives from the container's memory. */
function heapMebibytes(bounds: Bounds): number {
  return Math.min(bounds.configThreadHeapMebibytes, getHeapStatistics().heap_size_limit / 1_048_576);
}

/** Waits for the thread's reply to the last request, and passes the files that it reports to `onRead`. */
async function replyOf(thread: Worker, onRead?: LoadOptions['onRead']): Promise<LoadReply> {
  // Unlike `once`, `on` receives every message when several arrive together.
  for await (const [message] of on(thread, 'message')) {
    const reply: LoadReply | FileRead = message;
    if (reply.kind !== 'read') return reply;
    onRead?.(reply.file, reply.digest);
  }
  throw new Error('the thread that loads the configuration has ended');
}
