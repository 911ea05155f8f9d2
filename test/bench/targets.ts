import type { Report } from './report.ts';
import type { Sample } from './scenarios.ts';
import { ratioOf, type Spread } from './statistics.ts';

/** A figure that the gateway should reach, and the one that this run measured. */
export interface TargetFigure {
  readonly figure: string;
  readonly atMost: number;
  readonly measured: Spread | undefined;
}

/** The performance figures that the gateway has to reach; `measured` is unset where this run did not measure. */
export function judgeTargets(report: Pick<Report, 'scenarios' | 'keys'>): TargetFigure[] {
  const values = (scenario: string, subject: string, pick: (sample: Sample) => number) =>
    (report.scenarios.find(({ name }) => name === scenario)?.subjects ?? [])
      .filter(({ name }) => name === subject)
      .flatMap(({ samples }) => samples.map(pick));
  const cpu = (scenario: string, subject = 'tollgate') =>
    values(scenario, subject, (sample) => sample.cpuSecondsPer10k);
  const p50 = (subject: string) => values('latency', subject, (sample) => sample.p50Us);
  const calls = values('flood', 'tollgate', (sample) => sample.redisCallsPerRequest);
  const [tenThousand, hundredThousand] = [10_000, 100_000].map((count) =>
    report.keys.find(({ keys }) => keys === count),
  );
  /** Of one figure that was measured once. */
  const against = (most: number, value: number | undefined) =>
    value === undefined ? undefined : ratioOf([value], [most]);
  const p999 = (samples: readonly Sample[] = []) => samples.map((sample) => sample.p999Us);

  return [
    {
      figure: 'CPU, hot key: against nginx + lua',
      atMost: 1.5,
      measured: ratioOf(cpu('hot-key'), cpu('hot-key', 'nginx + lua')),
    },
    {
      figure: 'CPU, hot key: against bare undici dispatch',
      atMost: 1.25,
      measured: ratioOf(cpu('hot-key'), cpu('hot-key', 'undici dispatch')),
    },
    {
      figure: 'CPU, hot key: against the fastify stack',
      atMost: 0.6,
      measured: ratioOf(cpu('hot-key'), cpu('hot-key', 'fastify stack')),
    },
    {
      figure: 'CPU: 1,000 keys against the hot key',
      atMost: 1.4,
      measured: ratioOf(cpu('many-keys'), cpu('hot-key')),
    },
    {
      figure: 'p50, one connection: against the backend direct',
      atMost: 4,
      measured: ratioOf(p50('tollgate'), p50('backend direct')),
    },
    {
      figure: 'CPU: a refusal in a flood against an admitted request',
      atMost: 0.5,
      measured: ratioOf(cpu('flood'), cpu('hot-key')),
    },
    {
      figure: 'Redis calls a refusal in a flood',
      atMost: 0.1,
      measured: ratioOf(
        calls,
        calls.map(() => 1),
      ),
    },
    {
      figure: 'p99.9, 10,000 keys: an edit of one every second against none',
      atMost: 3,
      measured: ratioOf(p999(tenThousand?.withReloads), p999(tenThousand?.withoutReloads)),
    },
    {
      figure: 'p99.9, 100,000 keys: an edit of one every second against none',
      atMost: 3,
      measured: ratioOf(p999(hundredThousand?.withReloads), p999(hundredThousand?.withoutReloads)),
    },
    {
      figure: 'memory with 100,000 keys, after edits: against 400 MiB',
      atMost: 1,
      measured: against(400 * 2 ** 20, hundredThousand?.residentAfterEditsBytes),
    },
    {
      figure: 'an edit of one of 100,000 keys until it is in force: against 2 s',
      atMost: 1,
      measured: against(2_000, hundredThousand?.reloadMs),
    },
    {
      figure: 'start with 10,000 keys: against 1 s',
      atMost: 1,
      measured: against(1_000, tenThousand?.startMs),
    },
  ];
}
