import { spreadOf } from '../statistics.ts';

/** The unit costs behind the model, in seconds and octets. Each cost was measured, and is stored with a description of the measurement. */
export const costNames = {
  requestCpu: 'gateway, CPU of a forwarded request in a full process, apart from its calls to Redis',
  refusedCpu: 'gateway, CPU of a refusal in a flood',
  callCpu: 'gateway, CPU of a decision call that shares a write with other calls',
  callReadCpu: 'gateway, additional CPU of a call that has its own read and write',
  batchCpu: 'gateway, CPU of one batch of the usage record',
  lookUpCpu: 'gateway, CPU of a look-up in the directory',
  unpackCpu: 'gateway, CPU for the use of a packed key of the directory',
  checkCpu: 'gateway, CPU of one health check',
  turnSeconds:
    'gateway, mean time between two calls of one process for one key, at the highest rate of calls',
  fullTurnSeconds:
    'gateway, mean time between two calls for one key in a fully loaded process (64 connections)',
  processBytes: 'gateway, memory of a process that holds few keys',
  connectionBytes: 'gateway, memory of an idle client connection',
  recordedKeyBytes: 'gateway, heap of a key in the usage recorder (at most 20,000 idle keys)',
  rememberedKeyBytes: 'gateway, heap of a key with its last counts',
  heldKeyBytes: 'gateway, heap of a cached key of the directory',
  packedKeyBytes: 'gateway, memory of a packed key of the directory, outside of the heap',
  heapBytesMax: "gateway, Node's default limit of the heap",
  decisionCpu: 'Redis, CPU of a decision that shares a read with other calls',
  hotDecisionCpu: 'Redis, CPU of a decision that shares a read, when all calls are for one key',
  readCpu: 'Redis, CPU of a read and a reply for a single call',
  usageCpu: 'Redis, CPU of a batch of the usage record of a key that few processes serve',
  senderCpu: 'Redis, additional CPU of a batch for each process that serves the key',
  readKeyCpu: 'Redis, CPU of a look-up in the directory (three commands and a script)',
  presenceCpu: 'Redis, CPU of the state that one of 100 processes publishes each second',
  healthCpu: 'Redis, CPU of one call in which a process shares four results of health checks',
  checkerCpu: 'Redis, CPU of counting one process that checks one target',
  operationsCpu: 'Redis, CPU of one batch with all operations (50 operations)',
  activeKeyCpu: 'Redis, CPU of one entry in the index of active keys',
  replicaCpu: 'Redis, CPU of a master for sending one decision to one replica',
  serverCpu: 'Redis, CPU of an idle server per second',
  decisionOctets: 'octets of a decision between gateway and Redis, both ways',
  usageOctets: 'octets of a batch of the usage record, both ways',
  lookUpOctets: 'octets of a look-up, both ways',
  decisionReplicated: 'octets that a decision sends to each replica',
  usageReplicated: 'octets that a batch of the usage record sends to each replica',
  countsBytes: "Redis, memory of a key's counts (minute and day)",
  directoryBytes: 'Redis, memory of a key of the directory with one secret',
  usageDayBytes: "Redis, memory of one key's usage record of a day with one active minute",
  usageMinuteBytes: "Redis, memory of each further active minute in a day's usage record",
  usageSenderBytes: "Redis, memory of each process that added to a day's usage record, up to 128 processes",
  totalsBytes: "Redis, memory of a key's totals of 400 days",
} as const;

export type CostName = keyof typeof costNames;
export type Costs = Readonly<Record<CostName, number>>;

/** The unit costs, each with its origin. */
export interface UnitCosts {
  readonly values: Costs;
  /** A description of the measurement of each cost. */
  readonly sources: Readonly<Record<CostName, string>>;
  /** A description of the machine. */
  readonly machine: string;
}

/** The results of `npm run capacity -- --measure`. */
export interface Measured {
  readonly started: string;
  readonly machine: Readonly<Record<string, string>>;
  readonly quick: boolean;
  /**
   * The CPU of a direct request to the backend, measured together with the costs of a gateway. This CPU time indicates the speed of the
   * machine. The speed changes within minutes, so the figures of Redis and of the fleet were converted to this speed.
   */
  readonly directCpu: number;
  readonly costs: Readonly<Record<Exclude<CostName, BenchmarkCost>, number>>;
  readonly fleet: readonly FleetRun[];
}

type BenchmarkCost = 'requestCpu' | 'refusedCpu';

/** The measurement of one load on the small fleet. Figures per request are means of the whole run. */
export interface FleetRun {
  readonly load: string;
  readonly keys: number;
  readonly skew: number;
  readonly processes: number;
  readonly shards: number;
  /** True if the processes kept one core busy; false if they were sometimes idle, because the clients paused. */
  readonly isFull: boolean;
  readonly requestsPerSecond: number;
  /** The share of requests that were decided without Redis because its reply was late. */
  readonly aloneShare: number;
  readonly measured: Readonly<Partial<Record<FleetFigure, number>>>;
}

/** The model's figures that are compared with the small fleet. Each figure is per request, per process or per key, in seconds or octets. */
export const fleetFigures = {
  gatewayCpu: 'CPU of the gateways, µs',
  decisions: 'decision calls',
  batches: 'usage batches',
  lookUps: 'look-ups',
  redisCpu: 'CPU of Redis, µs',
  redisOctets: 'octets to and from Redis',
  processBytes: 'memory of a gateway, MiB',
  directoryBytes: 'Redis, octets of a key of the directory',
  countsBytes: 'Redis, octets of the counts and the record of a key',
} as const;

export type FleetFigure = keyof typeof fleetFigures;

/** The part of the benchmark's JSON (`../report.ts`) that the model reads. */
export interface BenchmarkPart {
  readonly started: string;
  readonly problems: readonly string[];
  readonly machine: Readonly<Record<string, string>>;
  readonly scenarios: readonly {
    readonly name: string;
    readonly subjects: readonly {
      readonly name: string;
      readonly samples: readonly {
        readonly cpuSecondsPer10k: number;
        readonly redisCallsPerRequest: number;
      }[];
    }[];
  }[];
}

/** The reason why the model cannot use this report; undefined when it can. */
export function whyUnusable(report: BenchmarkPart): string | undefined {
  if (!Array.isArray(report.scenarios)) return 'it is not a report of `npm run bench`';
  if (report.problems.length > 0) return `its run was invalid: ${report.problems[0]}`;
  for (const [scenario, subject] of [
    ['hot-key', 'tollgate'],
    ['hot-key', 'backend direct'],
    ['flood', 'tollgate'],
  ] as const) {
    if (samplesOf(report, scenario, subject).length === 0) {
      return `it has no sample of ${subject} in the scenario ${scenario}`;
    }
  }
  return undefined;
}

/**
 * The speed of the machine changes by up to a factor of two within hours. Each run also measures the backend alone. The CPU costs of one
 * run can therefore be converted to the speed of another run, or of a machine that has measured only the backend.
 *
 * @param at the run that gives the speed, or the CPU that a request takes from the backend alone
 */
export function unitCostsOf(
  report: BenchmarkPart,
  measured: Measured,
  at: 'benchmark' | 'measurement' | number = 'benchmark',
): UnitCosts {
  const cpuOf = (scenario: string, subject = 'tollgate') =>
    Math.min(...samplesOf(report, scenario, subject).map((sample) => sample.cpuSecondsPer10k / 10_000));
  const benchmarkCpu = cpuOf('hot-key', 'backend direct');
  const directCpu = { benchmark: benchmarkCpu, measurement: measured.directCpu }[at] ?? Number(at);
  const [scaleBenchmark, scaleMeasured] = [directCpu / benchmarkCpu, directCpu / measured.directCpu];
  const hotCalls = medianOf(
    samplesOf(report, 'hot-key', 'tollgate'),
    (sample) => sample.redisCallsPerRequest,
  );

  const [values, sources] = [
    scaleCpu(measured.costs, scaleMeasured) as Record<CostName, number>,
    {} as Record<CostName, string>,
  ];
  for (const name of Object.keys(measured.costs) as (keyof typeof measured.costs)[])
    sources[name] = `capacity ${shortTime(measured.started)}`;
  values.requestCpu = cpuOf('hot-key') * scaleBenchmark - hotCalls * (values.callCpu + values.callReadCpu);
  values.refusedCpu = cpuOf('flood') * scaleBenchmark;
  sources.requestCpu = `bench ${shortTime(report.started)}: hot-key, without the cost of its ${hotCalls.toFixed(2)} calls to Redis`;
  sources.refusedCpu = `bench ${shortTime(report.started)}: flood`;
  const measuredOn = `the costs were measured on ${measured.machine.cpu}, Node ${measured.machine.node}`;
  const machine =
    typeof at === 'number'
      ? `${measuredOn}, calibrated for this machine: a direct request to the backend takes ${scaleBenchmark.toFixed(2)}× the CPU of the same request in the benchmark, so CPU costs are multiplied by this factor`
      : `${measuredOn}; in the benchmark, a direct request to the backend took ${(benchmarkCpu / measured.directCpu).toFixed(2)}× the CPU of the same request in the capacity run. CPU times are stated at the speed of the ${at}`;
  return { values, sources, machine };
}

/** Multiplies the figures that depend on the speed of the machine: CPU times, and the times between turns. */
export function scaleCpu<Figures extends Readonly<Record<string, number>>>(
  figures: Figures,
  factor: number,
): Figures {
  const scaled = Object.entries(figures).map(([name, value]) => [
    name,
    /(?:Cpu|urnSeconds)$/.test(name) ? value * factor : value,
  ]);
  return Object.fromEntries(scaled) as Figures;
}

function samplesOf(report: BenchmarkPart, scenario: string, subject: string) {
  const subjects = report.scenarios.find(({ name }) => name === scenario)?.subjects ?? [];
  return subjects.find(({ name }) => name === subject)?.samples ?? [];
}

function medianOf<Sample>(samples: readonly Sample[], pick: (sample: Sample) => number): number {
  return spreadOf(samples.map(pick)).median;
}

function shortTime(iso: string): string {
  return iso.slice(0, 16);
}
