import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

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
