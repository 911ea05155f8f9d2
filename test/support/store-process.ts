import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { pino } from 'pino';
import { createApp } from '../../backend/app.ts';
import { createPetStore } from '../../backend/pets.ts';

export interface StoreProcess {
  readonly url: string;
  stop(): Promise<void>;
}

/** Starts the store as a process, on a free port. */
export async function startStore(env: Record<string, string> = {}): Promise<StoreProcess> {
  const main = fileURLToPath(new URL('../../backend/main.ts', import.meta.url));
  const child = spawn(process.execPath, [main], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, PORT: '0', HOST: '127.0.0.1', ...env },
  });
  const url = await new Promise<string>((resolve, reject) => {
    child.once('exit', () => reject(new Error('the store did not start')));
    createInterface({ input: child.stdout }).on('line', (line) => {
      const found = /http:\/\/127\.0\.0\.\d+:\d+/.exec(line);
      if (found !== null) resolve(found[0]);
    });
  });
  return {
    url,
    async stop() {
      child.kill('SIGTERM');
      await once(child, 'exit');
    },
  };
}

/** Starts the store in the process of the test, on a free port. */
export async function startStoreHere(): Promise<StoreProcess> {
  const app = createApp({ pets: createPetStore({ petsMax: 10_000 }), logger: pino({ level: 'silent' }) });
  const url = await app.listen({ port: 0, host: '127.0.0.1' });
  return { url, stop: () => app.close() };
}
