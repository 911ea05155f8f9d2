import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeCredentials } from '../credentials.ts';
import { findProgram } from '../find-program.ts';
import { treeCpuSeconds } from '../measure-cpu.ts';
import { pinBenchmark } from '../pin.ts';
import { endProcess } from '../processes.ts';
import { problemsOf, runWrk } from '../run-wrk.ts';
import { spreadOf } from '../statistics.ts';
import { startBackend } from '../subjects/direct.ts';

const [runs, connections] = [4, 64];

/**
 * Measures the CPU of a direct request to the backend, on this machine at this moment. The load is the same as in the benchmark and in the
 * measurement, and lasts five seconds. The first run only warms up the backend.
 *
 * @throws Error when the cost cannot be measured
 */
export async function measureDirectCpu(): Promise<number> {
  if (findProgram('wrk') === undefined) throw new Error('wrk is missing: apt-get install wrk');
  const dir = mkdtempSync(join(tmpdir(), 'tollgate-calibration-'));
  const { subjectCpus } = pinBenchmark();
  const { hotFile } = makeCredentials(1, dir);
  const direct = await startBackend({ dir, name: 'direct', cpus: subjectCpus });
  const cpus: number[] = [];
  try {
    for (let run = 0; run <= runs; run++) {
      const before = treeCpuSeconds(direct.pid).total;
      const figures = await runWrk({
        ...{ url: `${direct.origin}/v1/pets`, method: 'GET', body: '', expectedStatus: 200, mode: 'measure' },
        ...{ secretsFile: hotFile, connections, seconds: 1 },
      });
      const [problem] = problemsOf(figures, { expectedStatus: 200, mode: 'measure' }, 0);
      if (problem !== undefined) throw new Error(problem);
      if (run > 0) cpus.push((treeCpuSeconds(direct.pid).total - before) / figures.requests);
    }
  } finally {
    await endProcess(direct.pid);
    rmSync(dir, { recursive: true, force: true });
  }
  return spreadOf(cpus).median;
}
