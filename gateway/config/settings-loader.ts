import { on } from 'node:events';
import { getHeapStatistics } from 'node:v8';
import { Worker } from 'node:worker_threads';
import type { Settings } from '../model.ts';
import type { Bounds } from '../timeouts-and-sizes.ts';
import type { Loaded, LoadOptions } from './load-settings.ts';
import { assembleLoaded, type LoadedPart } from './loaded-messages.ts';
import type { FileRead, LoadRequest } from './settings-loader-worker.ts';

/** `loadSettings` in a thread of its own, one load after the other. */
export interface SettingsLoader {
  /**
   * @param options.onRead called while the load is under way
   * @throws when the thread dies, of memory for example; the next load starts another
   */
  load(options: Omit<LoadOptions, 'drafts'>): Promise<Loaded>;
  /** Ends the thread; the promise of a load under way never settles. */
  close(): void;
}

export type LoaderBounds = Pick<Bounds, 'configThreadIdleMs' | 'configThreadHeapMebibytes'>;

/**
 * Makes a loader that delays no request: 10,000 keys take most of a second to parse. Its thread starts with a load and
 * stays for a while, since one edit is often followed by another, and a thread that has compiled the parser takes half the
 * time. Then it ends, since between edits it would only take memory.
 */
export function createSettingsLoader(bounds: LoaderBounds): SettingsLoader {
  let worker: Worker | undefined;
  let idleTimer: NodeJS.Timeout | undefined;
  let loads = 0;
  /** The newest valid result: the thread sends only what differs from it. */
  let last: { readonly number: number; readonly settings: Settings } | undefined;

  function start(): Worker {
    const started = new Worker(new URL('./settings-loader-worker.ts', import.meta.url), {
      resourceLimits: { maxOldGenerationSizeMb: heapMebibytes(bounds) },
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

  return {
    async load({ file, env, inForce, onRead }) {
      clearTimeout(idleTimer);
      const thread = worker ?? start();
      worker = thread;
      const number = ++loads;
      const base = last?.number ?? 0;
      let message: LoadRequest | 'next' = {
        file,
        env: { ...env },
        number,
        base,
        ...(inForce && { inForce }),
      };
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

/** Never more than the heap of the process itself, which Node derives from the memory of its container. */
function heapMebibytes(bounds: LoaderBounds): number {
  return Math.min(bounds.configThreadHeapMebibytes, getHeapStatistics().heap_size_limit / 1_048_576);
}

/** The thread's reply to the last message. Files that it reports before that go to `onRead`. */
async function nextPart(thread: Worker, onRead: LoadOptions['onRead']): Promise<LoadedPart | undefined> {
  // Unlike `once`, `on` misses no message of several that arrive together.
  for await (const [message] of on(thread, 'message')) {
    const reply: LoadedPart | FileRead | undefined = message;
    if (reply?.kind !== 'read') return reply;
    onRead?.(reply.file, reply.digest);
  }
  return undefined;
}
