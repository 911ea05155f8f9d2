import { execFileSync } from 'node:child_process';
import { cpus } from 'node:os';
import { endProcess } from './processes.ts';
import { hotKey, type SampleOptions, scenarios, spendFloodKey, takeSample, warmUp } from './scenarios.ts';
import { ratioOf, type Spread, spreadOf } from './statistics.ts';
import type { Stage } from './subjects/subject.ts';
import { startTollgate } from './subjects/tollgate.ts';

/** Measures the gain from further workers. The load generator, the backend and Redis run on the same machine. */
export interface WorkersFigures {
  readonly cores: number;
  readonly loads: readonly WorkersLoad[];
}

interface WorkersLoad {
  readonly load: string;
  readonly workers: number;
  readonly requestsPerSecond: Spread;
  /** The request rate divided by the rate with one worker, round by round. */
  readonly timesOne: Spread | undefined;
  readonly p99Us: Spread;
  readonly gatewayCores: Spread;
  readonly redisCores: Spread;
  /** The CPU time of other processes: mostly the load generator, and the backend for forwarded requests. */
  readonly otherCores: Spread;
}

interface Taken {
  readonly requestsPerSecond: number;
  readonly p99Us: number;
  readonly gatewayCores: number;
  readonly redisCores: number;
  readonly otherCores: number;
}

export async function measureWorkers({
  stage,
  rounds,
  warmUpSeconds,
  backendPid,
  ...common
}: Omit<SampleOptions, 'scenario' | 'subject' | 'where'> & {
  readonly stage: Stage;
  readonly rounds: number;
  readonly warmUpSeconds: number;
  readonly backendPid: number;
}): Promise<WorkersFigures> {
  const cores = cpus().length;
  // In the other measurements, one core is reserved for the subjects. In this measurement, all processes share all cores.
  for (const pid of stage.subjectCpus === undefined ? [] : [process.pid, common.redis.pid, backendPid])
    execFileSync('taskset', ['-cp', stage.subjectCpus ?? '', String(pid)], { stdio: 'ignore' });
  const counts = [1, Math.max(2, cores)];
  console.log(`workers: ${counts.join(' and ')}`);
  const wanted = scenarios.filter(({ name }) => [hotKey.name, 'many-keys', 'flood'].includes(name));
  const loads: WorkersLoad[] = [];
  for (const scenario of wanted) {
    const taken = counts.map((): Taken[] => []);
    const subjects = [];
    for (const workers of counts) {
      const name = `workers-${workers}-${scenario.name}`;
      const subject = await startTollgate(stage, { name, settings: `workers: ${workers}` });
      await spendFloodKey(subject.origin, stage.credentials);
      await warmUp({ ...common, scenario, subject, seconds: warmUpSeconds, where: name });
      subjects.push(subject);
    }
    for (let round = 0; round < rounds; round++) {
      for (const [index, subject] of subjects.entries()) {
        const before = busySeconds();
        const startedMs = performance.now();
        const sample = await takeSample({ ...common, scenario, subject, where: `workers, ${scenario.name}` });
        const seconds = (performance.now() - startedMs) / 1_000;
        const coresOf = (secondsPer10k: number) => (secondsPer10k * sample.requestsPerSecond) / 10_000;
        const [gatewayCores, redisCores] = [
          coresOf(sample.cpuSecondsPer10k),
          coresOf(sample.redisCpuSecondsPer10k),
        ];
        const otherCores = (busySeconds() - before) / seconds - gatewayCores - redisCores;
        taken[index]?.push({ ...sample, gatewayCores, redisCores, otherCores });
      }
    }
    for (const subject of subjects) await endProcess(subject.pid);
    const perSecond = (of: readonly Taken[] = []) => of.map(({ requestsPerSecond }) => requestsPerSecond);
    for (const [index, workers] of counts.entries()) {
      const all = taken[index] ?? [];
      loads.push({
        load: scenario.title,
        workers,
        requestsPerSecond: spreadOf(perSecond(all)),
        timesOne: ratioOf(perSecond(all), perSecond(taken[0])),
        p99Us: spreadOf(all.map(({ p99Us }) => p99Us)),
        gatewayCores: spreadOf(all.map(({ gatewayCores }) => gatewayCores)),
        redisCores: spreadOf(all.map(({ redisCores }) => redisCores)),
        otherCores: spreadOf(all.map(({ otherCores }) => otherCores)),
      });
    }
  }
  return { cores, loads };
}

/** The CPU seconds that the whole machine has used so far. */
function busySeconds(): number {
  return (
    cpus().reduce((sum, { times: { user, nice, sys, irq } }) => sum + user + nice + sys + irq, 0) / 1_000
  );
}
