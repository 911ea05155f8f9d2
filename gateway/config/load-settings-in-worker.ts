import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import type { Loaded, LoadOptions } from './load-settings.ts';

/**
 * `loadSettings` in a thread of its own, so that parsing 10,000 keys (half a second) holds up no request. The thread
 * ends with the load: between reloads it would only hold memory.
 *
 * @throws when the thread dies, of memory for example
 */
export async function loadSettingsInWorker({ file, env }: LoadOptions): Promise<Loaded> {
  const worker = new Worker(new URL('./load-settings-worker.ts', import.meta.url), {
    workerData: { file, env: { ...env } },
  });
  try {
    const [loaded] = await once(worker, 'message');
    return loaded;
  } finally {
    await worker.terminate();
  }
}
