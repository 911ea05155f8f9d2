import { mkdirSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { BenchPart } from '../support/capability-cases.ts';
import { ms, seconds, spread, table, times, whole } from './format.ts';
import type { ConnectionsFigures } from './growth-connections.ts';
import type { KeysFigures } from './growth-keys.ts';
import type { HotKeyFigures } from './measure-hot-key.ts';
import { type MetricsFigures, metricsAtMost } from './measure-metrics.ts';
import { type RecordFigures, recordAtMost } from './measure-record.ts';
import type { ScenarioFigures } from './measure-scenarios.ts';
import type { TlsFigures } from './measure-tls.ts';
import { floods, type UnknownSecretsFigures } from './measure-unknown-secrets.ts';
import type { WorkersFigures } from './measure-workers.ts';
import type { Sample } from './scenarios.ts';
import { ratioOf, spreadOf } from './statistics.ts';
import { judgeTargets } from './targets.ts';

/** The results of one run of the benchmark. */
export interface Report {
  readonly started: string;
  readonly machine: Readonly<Record<string, string>>;
  readonly quick: boolean;
  /** The number of finished rounds. */
  readonly rounds: number;
  /** The reason why the run ended early. */
  readonly endedEarly?: string;
  /** The CPUs that were reserved for subjects. */
  readonly pinning: string;
  readonly missing: readonly string[];
  /** The reasons why the run is invalid, each with scenario and subject; empty when it is valid. */
  readonly problems: readonly string[];
  /** Requests that the gateway decided without Redis, because Redis did not reply in time. */
  readonly decidedLocally: number;
  readonly scenarios: readonly ScenarioFigures[];
  readonly connections: readonly ConnectionsFigures[];
  readonly tls: readonly TlsFigures[];
  readonly keys: readonly KeysFigures[];
  readonly metrics?: MetricsFigures;
  readonly record?: RecordFigures;
  readonly unknownSecrets?: UnknownSecretsFigures;
  readonly workers?: WorkersFigures;
  readonly ofCapabilities?: readonly CapabilityFigures[];
  readonly hotKeyOnCluster?: HotKeyFigures;
}

/** The table of a measurement of a capability. */
type CapabilityFigures = Pick<BenchPart, 'title' | 'head'> & {
  readonly rows: readonly (readonly string[])[];
};

/**
 * Prints the report and writes it to `results/` as Markdown and JSON. @returns the exit code: 1 if a run was invalid
 */
export function writeReport(report: Report): 0 | 1 {
  const { problems } = report;
  const markdown = renderReport(report);
  const results = fileURLToPath(new URL('results/', import.meta.url));
  mkdirSync(results, { recursive: true });
  const file = `${results}${report.started.replaceAll(':', '-').slice(0, 19)}`;
  writeFileSync(`${file}.md`, markdown);
  writeFileSync(`${file}.json`, `${JSON.stringify({ ...report, targets: judgeTargets(report) }, null, 2)}\n`);
  console.log(`\n${markdown}\nwritten to ${file}.md and .json`);
  if (problems.length === 0) return 0;
  console.error(`\nTHIS RUN IS INVALID:\n${problems.join('\n')}`);
  return 1;
}

export function renderReport(report: Report): string {
  const { started, quick, rounds, machine, missing, problems, scenarios, connections, tls, keys, metrics } =
    report;
  return [
    `# Benchmark of ${started}${quick ? ' (quick: a check, not a measurement)' : ''}`,
    report.endedEarly === undefined ? '' : `**Ended early:** ${report.endedEarly}`,
    problems.length > 0 ? `**INVALID:** ${problems.join('; ')}` : '',
    `Medians of ${rounds} interleaved rounds (least–most). CPU: seconds of the whole process tree per 10,000 requests, ` +
      'Redis apart; user and system are its parts. "× tollgate": how many times the CPU of tollgate, round by round.',
    report.pinning,
    report.decidedLocally > 0
      ? `Redis was too slow for ${whole(report.decidedLocally)} requests, which tollgate decided without Redis.`
      : '',
    missing.length > 0 ? `Missing: ${missing.join('; ')}` : '',
    '## Targets',
    renderTargets(report),
    ...renderComparison(scenarios),
    ...renderScenarios(scenarios),
    ...(connections.length > 0
      ? ['## One hot key, with a growing number of connections', renderConnections(connections)]
      : []),
    ...(tls.length > 0
      ? ['## Over TLS 1.3: kept connections, and a full handshake for each request', renderTls(tls)]
      : []),
    ...(keys.length > 0
      ? ['## A growing number of keys in the configuration, 1,000 of them with requests', renderKeys(keys)]
      : []),
    ...(metrics === undefined ? [] : ['## Scrapes of `/metrics` by Prometheus', renderMetrics(metrics)]),
    ...(report.record === undefined
      ? []
      : ['## With and without the usage record', renderRecord(report.record)]),
    ...(report.unknownSecrets === undefined
      ? []
      : ['## One key during a flood of unknown secrets', renderUnknownSecrets(report.unknownSecrets)]),
    ...(report.workers === undefined
      ? []
      : [
          `## Workers, on ${report.workers.cores} cores that the load, the backend and Redis share`,
          renderWorkers(report.workers),
        ]),
    ...(report.ofCapabilities ?? []).flatMap(({ title, head, rows }) => [`## ${title}`, table(head, rows)]),
    ...(report.hotKeyOnCluster === undefined
      ? []
      : ['## One key on one server of a Cluster, on one core', renderHotKey(report.hotKeyOnCluster)]),
    '## Machine',
    table(['what', 'which'], Object.entries(machine)),
  ]
    .filter((part) => part !== '')
    .join('\n\n');
}

/** Writes a table for each scenario. */
export function renderScenarios(scenarios: readonly ScenarioFigures[]): string[] {
  return scenarios.flatMap((scenario) => [`## ${scenario.title}`, renderScenario(scenario)]);
}

/** Compares tollgate with the subject `before`, round by round. A ratio below 1 means that `tollgate` takes less CPU time than `before`. */
function renderComparison(scenarios: readonly ScenarioFigures[]): string[] {
  const rows = scenarios.flatMap(({ name, subjects }) => {
    const samplesOf = (wanted: string) => subjects.find((subject) => subject.name === wanted)?.samples ?? [];
    const ratio = (pick: (sample: Sample) => number) =>
      ratioOf(samplesOf('tollgate').map(pick), samplesOf('before').map(pick));
    const [gateway, withRedis] = [ratio(cpuOf), ratio((one) => cpuOf(one) + one.redisCpuSecondsPer10k)];
    if (gateway === undefined || withRedis === undefined) return [];
    return [[name, spread(gateway, times), spread(withRedis, times)]];
  });
  if (rows.length === 0) return [];
  return ['## CPU of tollgate as a multiple of before', table(['scenario', 'gateway', 'with Redis'], rows)];
}

function renderTargets(report: Report): string {
  const rows = judgeTargets(report).map(({ figure, atMost, measured }) => [
    figure,
    `${atMost}×`,
    measured === undefined ? 'not measured' : spread(measured, times),
    measured === undefined ? '' : measured.median <= atMost ? 'yes' : 'NO',
  ]);
  return table(['figure', 'at most', 'measured', 'met'], rows);
}

function renderScenario({ subjects }: ScenarioFigures): string {
  const own = subjects.find(({ name }) => name === 'tollgate')?.samples.map(cpuOf) ?? [];
  const rows = subjects.map(({ name, job, samples }) => {
    const of = (pick: (sample: Sample) => number) => spreadOf(samples.map(pick));
    const against = ratioOf(samples.map(cpuOf), own);
    return [
      name,
      job,
      spread(of(cpuOf), seconds),
      seconds(of((sample) => sample.userCpuSecondsPer10k).median),
      seconds(of((sample) => sample.systemCpuSecondsPer10k).median),
      against === undefined ? '' : spread(against, times),
      seconds(of((sample) => sample.redisCpuSecondsPer10k).median),
      of((sample) => sample.redisCallsPerRequest).median.toFixed(2),
      whole(of((sample) => sample.requestsPerSecond).median),
      spread(
        of((sample) => sample.p50Us),
        ms,
      ),
      spread(
        of((sample) => sample.p99Us),
        ms,
      ),
    ];
  });
  return table(
    [
      'subject',
      'job',
      'CPU',
      'user',
      'system',
      '× tollgate',
      'Redis CPU',
      'Redis calls',
      'requests/s',
      'p50 ms',
      'p99 ms',
    ],
    rows,
  );
}

function renderConnections(figures: readonly ConnectionsFigures[]): string {
  const rows = figures.map(({ connections, subject, sample }) => [
    whole(connections),
    subject,
    seconds(sample.cpuSecondsPer10k),
    whole(sample.requestsPerSecond),
    ms(sample.p50Us),
    ms(sample.p99Us),
  ]);
  return table(['connections', 'subject', 'CPU', 'requests/s', 'p50 ms', 'p99 ms'], rows);
}

function renderTls(figures: readonly TlsFigures[]): string {
  const cpusOf = (samples: readonly { readonly cpuSecondsPer10k: number }[] = []) =>
    samples.map(({ cpuSecondsPer10k }) => cpuSecondsPer10k);
  const own = figures.find(({ subject }) => subject === 'tollgate');
  const against = (values: readonly number[], ownValues: readonly number[]) => {
    const ratio = ratioOf(values, ownValues);
    return ratio === undefined ? '' : spread(ratio, times);
  };
  const rows = figures.map(({ subject, kept, fresh }) => [
    subject,
    spread(spreadOf(cpusOf(kept)), seconds),
    against(cpusOf(kept), cpusOf(own?.kept)),
    spread(spreadOf(cpusOf(fresh)), seconds),
    against(cpusOf(fresh), cpusOf(own?.fresh)),
    whole(spreadOf(fresh.map(({ perSecond }) => perSecond)).median),
  ]);
  return table(
    ['subject', 'CPU, kept', '× tollgate', 'CPU, with a handshake each', '× tollgate', 'handshakes/s'],
    rows,
  );
}

function renderKeys(figures: readonly KeysFigures[]): string {
  const rows = figures.map((one) => {
    const calm = (pick: (sample: Sample) => number) => spread(spreadOf(one.withoutReloads.map(pick)), ms);
    const busy = (pick: (sample: Sample) => number) => spread(spreadOf(one.withReloads.map(pick)), ms);
    return [
      whole(one.keys),
      whole(one.startMs),
      whole(one.residentBytes / 2 ** 20),
      whole(one.residentAfterEditsBytes / 2 ** 20),
      whole(one.reloadMs),
      whole(one.reloadCpuSeconds * 1000),
      one.reloadsPerSecond.toFixed(2),
      calm((sample) => sample.p99Us),
      busy((sample) => sample.p99Us),
      calm((sample) => sample.p999Us),
      busy((sample) => sample.p999Us),
    ];
  });
  return table(
    [
      'keys',
      'start ms',
      'memory MiB',
      'after edits MiB',
      'edit of one key to effect ms',
      'CPU ms of it',
      'reloads/s',
      'p99 ms without',
      'p99 ms with reloads',
      'p99.9 ms without',
      'p99.9 ms with reloads',
    ],
    rows,
  );
}

function renderMetrics({ keys, operations, bytes, ms, cpuMs }: MetricsFigures): string {
  const { ms: msAtMost, bytes: bytesAtMost } = metricsAtMost;
  const isMet = ms.median <= msAtMost && bytes <= bytesAtMost;
  const size = (octets: number) => (octets / 1000).toFixed(1);
  const head = [
    'keys',
    'operations',
    `ms (at most ${msAtMost})`,
    'CPU ms',
    `kB (at most ${size(bytesAtMost)})`,
  ];
  const time = spread(ms, (value) => value.toFixed(1));
  const cells = [whole(keys), whole(operations), time, cpuMs.toFixed(1), size(bytes), isMet ? 'yes' : 'NO'];
  return table([...head, 'met'], [cells]);
}

function renderRecord({ loads, list }: RecordFigures): string {
  const rows = loads.map(({ load, atMost, on, off }) => {
    const ratio = ratioOf(on.map(cpuOf), off.map(cpuOf));
    const median = ratio?.median ?? Number.NaN;
    const measured = ratio === undefined ? '' : spread(ratio, (value) => value.toFixed(3));
    return [`CPU of a ${load} request, on / off`, String(atMost), measured, median <= atMost ? 'yes' : 'NO'];
  });
  const mb = (bytes: number) => `${(bytes / 1e6).toFixed(0)} MB`;
  const { listMs, activeKeysBytes } = recordAtMost;
  rows.push(
    [
      `a list of 50 keys sorted by refusals, ${whole(list.active)} of ${whole(list.keys)} active`,
      `${listMs} ms`,
      `${spread(list.ms, (value) => value.toFixed(1))} ms`,
      list.ms.median <= listMs ? 'yes' : 'NO',
    ],
    [
      `memory of ${whole(list.activeKeys)} active keys`,
      mb(activeKeysBytes),
      mb(list.activeKeysBytes),
      list.activeKeysBytes <= activeKeysBytes ? 'yes' : 'NO',
    ],
  );
  return table(['figure', 'at most', 'measured', 'met'], rows);
}

function renderUnknownSecrets({ loads }: UnknownSecretsFigures): string {
  const rows = loads.map(({ connections, requestsPerSecond, p99Us, floodPerSecond }) => [
    whole(connections),
    whole(spreadOf(requestsPerSecond).median),
    spread(spreadOf(p99Us.alone), ms),
    ...floods.flatMap((flood) => [
      whole(spreadOf(floodPerSecond[flood]).median),
      spread(spreadOf(p99Us[flood]), ms),
    ]),
  ]);
  const kinds = [
    'secrets with another prefix',
    'secrets with a wrong checksum',
    'refusals of another program',
  ];
  const head = [
    'connections',
    'requests/s',
    'p99 ms alone',
    ...kinds.flatMap((kind) => [`${kind}/s`, 'p99 ms beside them']),
  ];
  return table(head, rows);
}

function renderWorkers({ loads }: WorkersFigures): string {
  const rows = loads.map(({ load, workers, requestsPerSecond, timesOne, p99Us, ...cores }) => [
    load,
    whole(workers),
    spread(requestsPerSecond, whole),
    timesOne === undefined ? '' : spread(timesOne, (times) => `${times.toFixed(2)}×`),
    spread(p99Us, (us) => (us / 1_000).toFixed(1)),
    ...[cores.gatewayCores, cores.redisCores, cores.otherCores].map(({ median }) => median.toFixed(2)),
  ]);
  const used = ['gateway', 'Redis', 'load generator, backend'].map((who) => `cores of ${who}`);
  return table(['load', 'workers', 'requests/s', '× one', 'p99 ms', ...used], rows);
}

function renderHotKey({ processes, loads }: HotKeyFigures): string {
  const rows = loads.map(({ load, admitted, refused, banned, calls, redisCores, callsPerCore }) => [
    load,
    ...[admitted, refused, banned, calls].map(whole),
    redisCores.toFixed(2),
    callsPerCore === undefined ? '' : whole(callsPerCore),
  ]);
  const perSecond = ['admitted/s', 'refused/s', 'banned/s', 'calls to Redis/s'];
  const head = [`${processes} processes`, ...perSecond, 'cores of Redis', 'calls/s of a full core'];
  return table(head, rows);
}

const cpuOf = (sample: Sample) => sample.cpuSecondsPer10k;
