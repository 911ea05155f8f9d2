import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeCredentials } from '../credentials.ts';
import { findProgram } from '../find-program.ts';
import { treeCpuSeconds } from '../measure-cpu.ts';
import { pinBenchmark } from '../pin.ts';
import { endProcess } from '../processes.ts';
import { problemsOf, runWrk } from '../run-wrk.ts';
import { startBackend } from '../subjects/direct.ts';

const [runs, connections] = [4, 64];

/**
 * Measures the CPU of a direct request to the backend, on this machine at this moment. The load is the same as in the benchmark and in the
 * measurement, and lasts five seconds. Other programs only increase the CPU of a request, so the least of four measurements counts.
 *
 * @throws Error when the cost cannot be measured
 */
export async function measureDirectCpu(): Promise<number> {
  const direct = await startDirect(pinBenchmark().subjectCpus);
  try {
    const cpus: number[] = [];
    for (let run = 0; run < runs; run++) cpus.push(await direct.measure());
    return Math.min(...cpus);
  } finally {
    await direct.stop();
  }
}

/**
 * Starts a backend. `measure` sends requests to it for one second, and returns the CPU of a request.
 *
 * @throws Error when the cost cannot be measured
 */
export async function startDirect(cpus?: string) {
  if (findProgram('wrk') === undefined) throw new Error('wrk is missing: apt-get install wrk');
  const dir = mkdtempSync(join(tmpdir(), 'tollgate-calibration-'));
  const { hotFile } = makeCredentials(1, dir);
  const backend = await startBackend({ dir, name: 'direct', ...(cpus !== undefined && { cpus }) });
  const measure = async (): Promise<number> => {
    const before = treeCpuSeconds(backend.pid).total;
    const figures = await runWrk({
      ...{ url: `${backend.origin}/v1/pets`, method: 'GET', body: '', expectedStatus: 200, mode: 'measure' },
      ...{ secretsFile: hotFile, connections, seconds: 1 },
    });
    const [problem] = problemsOf(figures, { expectedStatus: 200, mode: 'measure' }, 0);
    if (problem !== undefined) throw new Error(problem);
    return (treeCpuSeconds(backend.pid).total - before) / figures.requests;
  };
  const stop = async () => {
    await endProcess(backend.pid);
    rmSync(dir, { recursive: true, force: true });
  };
  // The first run only warms up the backend.
  await measure().catch(async (error: unknown) => {
    await stop();
    throw error;
  });
  return { measure, stop };
}
