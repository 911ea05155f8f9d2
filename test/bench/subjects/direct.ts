import { fileURLToPath } from 'node:url';
import { freePort } from '../../support/free-port.ts';
import { type ProcessPlace, startProcess, untilAnswers } from '../processes.ts';
import type { StartedSubject, Subject } from './subject.ts';

/** Measures the backend without a gateway, which shows the backend's own cost and the latency without a gateway. */
export const direct: Subject = {
  name: 'backend direct',
  job: 'answers',
  identifies: false,
  limits: false,
  missing: () => undefined,
  start: ({ dir, subjectCpus }) => startBackend({ dir, name: 'backend-direct', cpus: subjectCpus }),
};

export async function startBackend(place: ProcessPlace): Promise<StartedSubject & { readonly port: number }> {
  const port = await freePort();
  const program = fileURLToPath(new URL('../backend.ts', import.meta.url));
  const running = startProcess(process.execPath, [program, String(port)], place);
  const origin = `http://127.0.0.1:${port}`;
  await untilAnswers(origin, running);
  return { ...running, origin, port };
}
