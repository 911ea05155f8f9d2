import { on } from 'node:events';
import { getHeapStatistics } from 'node:v8';
import { Worker } from 'node:worker_threads';
import type { Settings } from '../model.ts';
import type { Bounds } from '../timeouts-and-sizes.ts';
import type { Loaded, LoadOptions } from './load-settings.ts';
import { assembleLoaded, type LoadedPart } from './loaded-parts.ts';
import type { FileRead, LoadRequest } from './settings-loader-worker.ts';

/** `loadSettings` in a thread of its own, one load after the other. */
export interface SettingsLoader {
  /**
   * @param options.onRead called while the load is under way
   * @throws when the thread dies, of memory for example; the next load starts another
   */
  load(options: Omit<LoadOptions, 'drafts'>): Promise<Loaded>;
  /** Ends the thread; a load under way is given up and never answered. */
  close(): void;
}

export type LoaderBounds = Pick<Bounds, 'configThreadIdleMs' | 'configThreadHeapMebibytes'>;

/**
 * Makes a loader that holds up no request: 10,000 keys take most of a second to parse. Its thread starts with a load
 * and stays a while, since the edit of a person is often followed by another and a thread that has compiled the parser
 * takes half the time; then it ends, since between edits it would only hold memory.
 */
export function createSettingsLoader(bounds: LoaderBounds): SettingsLoader {
  let worker: Worker | undefined;
  let idleTimer: NodeJS.Timeout | undefined;
  let loads = 0;
  /** The newest valid one: the thread need only tell what differs from it. */
  let last: { readonly number: number; readonly settings: Settings } | undefined;

  function start(): Worker {
    const started = new Worker(new URL('./settings-loader-worker.ts', import.meta.url), {
      resourceLimits: { maxOldGenerationSizeMb: heapMebibytes(bounds) },
    });
    // Also between loads, where nobody waits for an answer: an unheard error would end the process.
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
    async load({ file, env, onRead }) {
      clearTimeout(idleTimer);
      const thread = worker ?? start();
      worker = thread;
      const number = ++loads;
      let message: LoadRequest | 'next' = { file, env: { ...env }, number, base: last?.number ?? 0 };
      const loaded = await assembleLoaded(async () => {
        thread.postMessage(message);
        message = 'next';
        return nextPart(thread, onRead);
      }, last?.settings);
      if (loaded.kind === 'valid') last = { number, settings: loaded.settings };
      idleTimer = setTimeout(close, bounds.configThreadIdleMs).unref();
      return loaded;
    },
    close,
  };
}

/** Never more than the process itself may have, which Node sets by the memory of its container. */
function heapMebibytes(bounds: LoaderBounds): number {
  return Math.min(bounds.configThreadHeapMebibytes, getHeapStatistics().heap_size_limit / 1_048_576);
}

/** The thread's answer. What it says before that about files goes to `onRead`. */
async function nextPart(thread: Worker, onRead: LoadOptions['onRead']): Promise<LoadedPart | undefined> {
  // Unlike `once`, `on` misses no message of several that arrive together.
  for await (const [message] of on(thread, 'message')) {
    const answer: LoadedPart | FileRead | undefined = message;
    if (answer?.kind !== 'read') return answer;
    onRead?.(answer.file, answer.digest);
  }
  return undefined;
}
