import { fileURLToPath } from 'node:url';
import { freePort, startProcess, untilAnswers } from '../processes.ts';
import type { StartedSubject, Subject } from './subject.ts';

/** The backend without any gateway: its own cost, and the latency that a gateway adds to. */
export function createDirect(backend: StartedSubject): Subject {
  return {
    name: 'backend direct',
    job: 'answers',
    identifies: false,
    limits: false,
    missing: () => undefined,
    start: async () => backend,
  };
}

export async function startBackend(dir: string): Promise<StartedSubject & { readonly port: number }> {
  const port = await freePort();
  const program = fileURLToPath(new URL('../backend.ts', import.meta.url));
  const running = startProcess(process.execPath, [program, String(port)], { dir, name: 'backend' });
  const origin = `http://127.0.0.1:${port}`;
  await untilAnswers(origin, running);
  return { ...running, origin, port };
}
