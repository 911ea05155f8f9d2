import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { bounds } from '../bounds.ts';
import type { Loaded, LoadOptions } from './load-settings.ts';

/** `loadSettings` in a thread of its own, one load after the other. */
export interface SettingsLoader {
  /** @throws when the thread dies, of memory for example; the next load starts another */
  load(options: LoadOptions): Promise<Loaded>;
  /** Ends the thread; a load under way is never answered. */
  close(): void;
}

/**
 * Makes a loader that holds up no request: 10,000 keys take most of a second to parse. Its thread starts with a load
 * and stays a while, since the edit of a person is often followed by another and a thread that has compiled the parser
 * takes half the time; then it ends, since between edits it would only hold memory.
 */
export function createSettingsLoader(): SettingsLoader {
  let worker: Worker | undefined;
  let idleTimer: NodeJS.Timeout | undefined;

  function start(): Worker {
    const started = new Worker(new URL('./settings-loader-worker.ts', import.meta.url));
    // Also between loads, where nobody waits for an answer: an unheard error would end the process.
    started.on('error', close);
    return started;
  }

  function close(): void {
    clearTimeout(idleTimer);
    void worker?.terminate();
    worker = undefined;
  }

  return {
    async load({ file, env }) {
      clearTimeout(idleTimer);
      worker ??= start();
      worker.postMessage({ file, env: { ...env } } satisfies LoadOptions);
      const [loaded] = await once(worker, 'message');
      idleTimer = setTimeout(close, bounds.configThreadIdleMs).unref();
      return loaded;
    },
    close,
  };
}
