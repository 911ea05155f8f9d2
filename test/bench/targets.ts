import { connectionsOfKey } from './measure-unknown-secrets.ts';
import type { Report } from './report.ts';
import type { Sample } from './scenarios.ts';
import { ratioOf, ratioOfMedians, type Spread } from './statistics.ts';

/** A figure that the gateway should reach, and the figure that this run measured. */
export interface TargetFigure {
  readonly figure: string;
  readonly atMost: number;
  readonly measured: Spread | undefined;
}

/**
 * The performance goals of the gateway. `measured` is undefined when this run did not measure the figure.
 */
export function judgeTargets(report: Pick<Report, 'scenarios' | 'keys' | 'unknownSecrets'>): TargetFigure[] {
  const values = (scenario: string, subject: string, pick: (sample: Sample) => number) =>
    (report.scenarios.find(({ name }) => name === scenario)?.subjects ?? [])
      .filter(({ name }) => name === subject)
      .flatMap(({ samples }) => samples.map(pick));
  const against = (scenario: string, subject: string, pick = alone) =>
    ratioOf(values(scenario, 'tollgate', pick), values(scenario, subject, pick));
  /** The ratio of a figure to its largest permitted value. A run measures the figure only once. */
  const ofTarget = (value: number | undefined, most: number) =>
    value === undefined ? undefined : ratioOf([value], [most]);
  const flood = values('flood', 'tollgate', (sample) => sample.redisCallsPerRequest);
  const [tenThousand, hundredThousand] = [10_000, 100_000].map((count) =>
    report.keys.find(({ keys }) => keys === count),
  );
  const p999 = (samples: readonly Sample[] = []) => samples.map((sample) => sample.p999Us);

  return [
    ...againstNginx.flatMap(({ scenario, load, atMost }) => [
      { figure: `CPU, ${load}: against ${nginx}`, atMost, measured: against(scenario, nginx) },
      {
        figure: `CPU, ${load}, with Redis's share: against ${nginx}`,
        atMost,
        measured: against(scenario, nginx, withRedis),
      },
    ]),
    {
      figure: `p50, one connection: against ${nginx}`,
      atMost: 1.1,
      measured: against('latency', nginx, (sample) => sample.p50Us),
    },
    {
      figure: 'CPU, one hot key: against bare undici dispatch',
      atMost: 1.25,
      measured: against('hot-key', 'undici dispatch'),
    },
    {
      figure: 'CPU, one hot key: against the fastify stack',
      atMost: 0.45,
      measured: against('hot-key', 'fastify stack'),
    },
    {
      figure: 'Redis calls a refusal in a flood',
      atMost: 0.1,
      measured: ratioOf(
        flood,
        flood.map(() => 1),
      ),
    },
    ...connectionsOfKey.flatMap((connections) => {
      const load = report.unknownSecrets?.loads.find((each) => each.connections === connections);
      return [
        {
          figure: `p99, ${connections} connections: beside 2,000 unknown secrets a second, which are looked up, against none`,
          atMost: 1.5,
          measured: load && ratioOfMedians(load.p99Us.lookedUp, load.p99Us.alone),
        },
        {
          figure: `p99, ${connections} connections: beside 2,000 secrets a second with wrong checksums against none`,
          atMost: 1.1,
          measured: load && ratioOfMedians(load.p99Us.wrongChecksum, load.p99Us.alone),
        },
        {
          figure: `p99, ${connections} connections: beside 2,000 secrets a second with wrong checksums against as many refusals of another program`,
          atMost: 1.1,
          measured: load && ratioOfMedians(load.p99Us.wrongChecksum, load.p99Us.otherProgram),
        },
      ];
    }),
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
      measured: ofTarget(hundredThousand?.residentAfterEditsBytes, 400 * 2 ** 20),
    },
    {
      figure: 'an edit of one of 100,000 keys until it takes effect: against 2 s',
      atMost: 1,
      measured: ofTarget(hundredThousand?.reloadMs, 2_000),
    },
    {
      figure: 'start with 10,000 keys: against 1 s',
      atMost: 1,
      measured: ofTarget(tenThousand?.startMs, 1_000),
    },
  ];
}

const nginx = 'nginx + lua';

/**
 * The largest permitted ratios of Tollgate's CPU time to the CPU time of nginx + lua, which does the same job. Redis is a separate process,
 * and its CPU time depends on the number of calls.
 */
const againstNginx = [
  { scenario: 'hot-key', load: 'one hot key', atMost: 0.85 },
  { scenario: 'many-keys', load: '1,000 keys', atMost: 1 },
  { scenario: 'post', load: 'POST', atMost: 1 },
  { scenario: 'flood', load: 'a refusal in a flood', atMost: 0.5 },
  { scenario: 'latency', load: 'one connection', atMost: 1.3 },
  { scenario: 'many-connections', load: '1,024 connections', atMost: 0.9 },
] as const;

const alone = (sample: Sample) => sample.cpuSecondsPer10k;
const withRedis = (sample: Sample) => sample.cpuSecondsPer10k + sample.redisCpuSecondsPer10k;
