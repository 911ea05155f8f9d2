import { on } from 'node:events';
import { getHeapStatistics } from 'node:v8';
import { Worker } from 'node:worker_threads';
import type { Settings } from '../shared/model.ts';
import { withinDeadline } from '../shared/structures/within-deadline.ts';
import type { Bounds } from '../shared/timeouts-and-sizes.ts';
import type { HandedLastValid, LargeContents } from './last-valid/handed-contents.ts';
import type { InvalidSettings, LoadOptions } from './load-settings.ts';
import { wholeFile } from './problems/problem.ts';
import type {
  FileRead,
  HandedSettings,
  LoadReply,
  LoadRequest,
  RetireReply,
  RetireRequest,
} from './settings-loader-worker.ts';
import { applyMessage, type SettingsMessage } from './settings-message.ts';
import type { Digests } from './source/read-config-file.ts';

/** `loadSettings` in a thread of its own, one load after the other. */
export interface SettingsLoader {
  /**
   * @param options.onRead called while the load is under way
   * @param base settings of an earlier load of this loader, those in force: what is the same there is not read again
   * @throws when the thread dies, of memory for example; the next load starts another
   */
  load(options: LoaderOptions, base?: Settings): Promise<LoadedInThread>;
  /** Ends the thread; the promise of a load under way never settles. The next load starts another. */
  close(): void;
}

interface LoaderOptions extends Pick<LoadOptions, 'file' | 'env' | 'onRead'> {
  /** What files at fault fall back on; absent: such a file makes the load invalid. */
  readonly lastValid?: HandedLastValid | undefined;
}

export type LoadedInThread = InvalidSettings | ValidInThread;

/** With a message that leads from `base` to these settings. */
export interface ValidInThread extends HandedSettings {
  readonly settings: Settings;
  readonly base?: Settings | undefined;
  readonly message: SettingsMessage;
}

export type LoaderBounds = Pick<
  Bounds,
  | 'configThreadIdleMs'
  | 'configThreadRetireTimeoutMs'
  | 'configThreadHeapMebibytes'
  | 'configThreadYoungMebibytes'
>;

/**
 * Makes a loader that delays no request: 100,000 keys take a second to read. Its thread starts with a load and
 * stays for a while, since one edit is often followed by another, and the thread has what it read before, so that it
 * reads only what has changed. Then it ends, since between edits it would only take memory.
 */
export function createSettingsLoader(bounds: LoaderBounds): SettingsLoader {
  let worker: Worker | undefined;
  let idleTimer: NodeJS.Timeout | undefined;
  /** That thread is about to end, and hands over what the next one needs. */
  let retiring: Promise<void> | undefined;
  let large: LargeContents = new Map();
  let loads = 0;
  /** The load that settings are the result of. */
  const numbers = new WeakMap<Settings, number>();

  function start(): Worker {
    const started = new Worker(new URL('./settings-loader-worker.ts', import.meta.url), {
      name: 'config',
      resourceLimits: {
        maxOldGenerationSizeMb: heapMebibytes(bounds),
        maxYoungGenerationSizeMb: bounds.configThreadYoungMebibytes,
      },
    });
    // Also between loads, when nobody awaits the thread: an error event without a listener would end the process.
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

  async function retire(thread: Worker): Promise<void> {
    try {
      thread.postMessage({ kind: 'retire' } satisfies RetireRequest);
      const late = () => undefined;
      const reply = await withinDeadline<LoadReply | RetireReply | undefined>(
        replyOf(thread),
        bounds.configThreadRetireTimeoutMs,
        late,
      );
      if (reply?.kind === 'retired') large = reply.large;
    } finally {
      retiring = undefined;
      if (worker === thread) close();
    }
  }

  return {
    async load({ file, env, lastValid, onRead }, base) {
      clearTimeout(idleTimer);
      await retiring?.catch(() => {});
      const thread = worker ?? start();
      worker = thread;
      const number = ++loads;
      const request: LoadRequest = {
        kind: 'load',
        file,
        env: { ...env },
        number,
        base: (base && numbers.get(base)) ?? 0,
        // Nothing else: all of it is sent.
        lastValid: lastValid && pickLastValid(lastValid),
        large,
      };
      const buffers = [...large.values()].map(({ buffer }) => buffer as ArrayBuffer);
      thread.postMessage(request, buffers);
      large = new Map();
      const reply = await replyOf(thread, onRead);
      idleTimer = setTimeout(() => {
        retiring = retire(thread);
        retiring.catch(() => {});
      }, bounds.configThreadIdleMs).unref();
      if (reply.kind === 'retired') throw new Error('the thread that loads the configuration ends');
      if (reply.kind === 'invalid') return reply.loaded;
      const { loaded, message } = reply;
      const settings = applyMessage(base, message);
      numbers.set(settings, number);
      return { ...loaded, settings, base, message };
    },
    close,
  };
}

function pickLastValid({ contents, keysFile, kept, revoking }: HandedLastValid): HandedLastValid {
  return { contents, keysFile, kept, revoking };
}

/** What a load comes to that threw. */
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

/** Never more than the heap of the process itself, which Node derives from the memory of its container. */
function heapMebibytes(bounds: LoaderBounds): number {
  return Math.min(bounds.configThreadHeapMebibytes, getHeapStatistics().heap_size_limit / 1_048_576);
}

/** The thread's reply to the last request. Files that it reports before that go to `onRead`. */
async function replyOf(thread: Worker, onRead?: LoadOptions['onRead']): Promise<LoadReply | RetireReply> {
  // Unlike `once`, `on` misses no message of several that arrive together.
  for await (const [message] of on(thread, 'message')) {
    const reply: LoadReply | RetireReply | FileRead = message;
    if (reply.kind !== 'read') return reply;
    onRead?.(reply.file, reply.digest);
  }
  throw new Error('the thread that loads the configuration has ended');
}
