import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { benchPartsOfCapabilities } from '../support/capability-cases.ts';
import { readOptionsOrEnd } from '../support/command-options.ts';
import { makeCredentials } from './credentials.ts';
import { findProgram } from './find-program.ts';
import { type ConnectionsFigures, measureConnections } from './growth-connections.ts';
import { type KeysFigures, measureKeys } from './growth-keys.ts';
import { installPeers } from './install-peers.ts';
import { describeMachine } from './machine.ts';
import { type HotKeyFigures, measureHotKey } from './measure-hot-key.ts';
import { type MetricsFigures, measureMetrics } from './measure-metrics.ts';
import { measureRecord, type RecordFigures } from './measure-record.ts';
import { measureScenarios, type ScenarioFigures } from './measure-scenarios.ts';
import { measureTls, type TlsFigures } from './measure-tls.ts';
import { measureUnknownSecrets, type UnknownSecretsFigures } from './measure-unknown-secrets.ts';
import { measureWorkers, type WorkersFigures } from './measure-workers.ts';
import { pinBenchmark } from './pin.ts';
import { endAllProcesses, endProcess, killAllProcesses } from './processes.ts';
import { startRedis } from './redis.ts';
import { type Report, renderScenarios, writeReport } from './report.ts';
import { hotKey, type NoteProblems, scenarios, spendFloodKey, warmUp } from './scenarios.ts';
import { direct, startBackend } from './subjects/direct.ts';
import { haproxy } from './subjects/haproxy.ts';
import { nginxLua } from './subjects/nginx-lua.ts';
import { nodePeers } from './subjects/node-peers.ts';
import type { RunningSubject, Stage, Subject } from './subjects/subject.ts';
import { countDecidedLocally, tollgate, tollgateBefore } from './subjects/tollgate.ts';

/** The time after which the benchmark is stopped, even if a part hangs. */
const deadlineMs = 60 * 60_000;
/** V8 needs seconds of load to optimise a program. Before V8 has optimised the program, a request costs up to twice as much. */
const firstWarmUpSeconds = 8;
const quickFirstWarmUpSeconds = 4;
/** The warm-up before later loads is shorter, because V8 has already optimised most of the program. */
const warmUpSeconds = 2;
const quickWarmUpSeconds = 1;
const partsOfCapabilities = await benchPartsOfCapabilities();
/** The permitted values of `--only`. */
const names = [
  ...scenarios.map(({ name }) => name),
  'connections',
  'tls',
  'keys',
  'metrics',
  'record',
  'unknown-secrets',
  'workers',
  ...partsOfCapabilities.map(({ name }) => name),
  'hot-key-cluster',
];
/** The measurements of `--quick` without `--only`, which take less than five minutes. */
const quickNames: readonly string[] = ['hot-key', 'many-keys', 'flood', 'latency', 'many-connections'];
const usage = `npm run bench -- [--quick] [--rounds N] [--only NAME] [--against FOLDER]
  --quick           a few short rounds within five minutes: a check, not a measurement; without --only, it measures ${quickNames.join(', ')}
  --rounds N        rounds of the scenarios (default 9; 12 with --against; 3 with --quick)
  --only NAME       one of: ${names.join(', ')}; may be repeated
  --against FOLDER  compares only with the tollgate in another checkout, and restarts both after every two rounds; without --only, it measures the scenarios`;

interface Options {
  readonly quick: boolean;
  readonly rounds: number;
  /** Another checkout of this repository. The benchmark compares both checkouts, and omits the other gateways. */
  readonly against: string | undefined;
  readonly wanted: (name: string) => boolean;
}

/** The finished rounds are kept here until the whole report is written. */
let unfinished: Report | undefined;

/** Runs all measurements, and prints and writes the report. @returns the exit code: 1 when a run was invalid */
async function bench(options: Options, dir: string): Promise<number> {
  if (findProgram('wrk') === undefined) throw new Error('wrk is missing: apt-get install wrk');
  if (options.against === undefined) await installPeers();

  const { subjectCpus, allCpus, description: pinning } = pinBenchmark();
  const credentials = makeCredentials(1_000, dir);
  const redis = await startRedis(dir);
  const backend = await startBackend({ dir, name: 'backend' });
  const stage: Stage = { dir, backendPort: backend.port, redisPort: redis.port, credentials, subjectCpus };
  const problems: string[] = [];
  const noteProblems: NoteProblems = (where, found) => {
    for (const problem of found) {
      console.error(`INVALID: ${where}: ${problem}`);
      problems.push(`${where}: ${problem}`);
    }
  };
  const common = { redis, credentials, noteProblems, quick: options.quick };

  async function startWarm() {
    const all = await startSubjects(subjects, stage);
    for (const { subject, started } of all.running) {
      const where = `warm-up, ${subject.name}`;
      console.log(`warm-up: ${subject.name}`);
      const seconds = options.quick ? quickFirstWarmUpSeconds : firstWarmUpSeconds;
      await warmUp({ ...common, scenario: hotKey, subject: started, seconds, where });
    }
    return all;
  }

  const started = new Date();
  const machine = describeMachine();
  const subjects =
    options.against === undefined
      ? [direct, tollgate, nginxLua, ...nodePeers, haproxy]
      : [tollgate, tollgateBefore(options.against)];
  let { running, missing } = await startWarm();
  if (options.against !== undefined && missing.length > 0)
    throw new Error(`--against: ${missing.join('; ')}`);
  const own = running.find(({ subject }) => subject === tollgate);
  const countOwnDecidedLocally = () => (own === undefined ? 0 : countDecidedLocally(own.started));
  // A restart empties the access log, so its lines are counted before.
  let decidedLocallyBefore = 0;
  const reportOf = (figures: readonly ScenarioFigures[], rounds: number): Report => ({
    started: started.toISOString(),
    machine,
    quick: options.quick,
    rounds,
    pinning,
    missing,
    problems,
    decidedLocally: decidedLocallyBefore + countOwnDecidedLocally(),
    scenarios: figures,
    connections: [],
    tls: [],
    keys: [],
  });
  // Two processes of the same program differ by some per cent of CPU. A comparison of checkouts therefore starts new processes repeatedly.
  const roundsPerStart = options.against === undefined ? options.rounds : 2;
  let figures: ScenarioFigures[] = [];
  for (let round = 0; round < options.rounds; round += roundsPerStart) {
    if (round > 0) {
      decidedLocallyBefore += countOwnDecidedLocally();
      for (const { started } of running) await endProcess(started.pid);
      ({ running, missing } = await startWarm());
    }
    const earlier = figures;
    await measureScenarios({
      ...common,
      scenarios: scenarios.filter(({ name }) => options.wanted(name)),
      running,
      rounds: Math.min(roundsPerStart, options.rounds - round),
      warmUpSeconds: options.quick ? quickWarmUpSeconds : warmUpSeconds,
      seconds: options.quick ? 1 : 2,
      onRound(soFar, rounds) {
        figures = joinRounds(earlier, soFar);
        unfinished = reportOf(figures, round + rounds);
        console.log(`\n${renderScenarios(figures).join('\n\n')}\n`);
      },
    });
  }
  let connections: ConnectionsFigures[] = [];
  if (options.wanted('connections')) {
    connections = await measureConnections({ ...common, running, warmUpSeconds });
  }
  // The following measurements start their own subjects. An idle subject still uses some CPU time, which would be visible in a p99.
  for (const { started } of running) await endProcess(started.pid);
  let tls: TlsFigures[] = [];
  if (options.wanted('tls')) {
    tls = await measureTls({
      ...common,
      stage,
      rounds: options.rounds,
      warmUpSeconds: firstWarmUpSeconds,
      seconds: options.quick ? 1 : 2,
    });
  }
  let keys: KeysFigures[] = [];
  if (options.wanted('keys')) {
    // A configuration is loaded in a separate thread, which in production also has a separate core.
    const unpinned = { ...stage, subjectCpus: allCpus };
    keys = await measureKeys({ ...common, stage: unpinned, warmUpSeconds: firstWarmUpSeconds });
  }
  let metrics: MetricsFigures | undefined;
  if (options.wanted('metrics')) metrics = await measureMetrics(stage, options);
  let record: RecordFigures | undefined;
  if (options.wanted('record')) {
    record = await measureRecord({
      ...common,
      stage,
      rounds: 2 * options.rounds,
      warmUpSeconds: options.quick ? warmUpSeconds : firstWarmUpSeconds,
      seconds: options.quick ? 1 : 2,
    });
  }
  let unknownSecrets: UnknownSecretsFigures | undefined;
  if (options.wanted('unknown-secrets')) {
    unknownSecrets = await measureUnknownSecrets({
      stage,
      noteProblems,
      rounds: 2 * options.rounds,
      seconds: options.quick ? 1 : 4,
    });
  }
  let workers: WorkersFigures | undefined;
  if (options.wanted('workers')) {
    // Several workers are faster than one worker only on several cores.
    workers = await measureWorkers({
      ...common,
      stage: { ...stage, subjectCpus: allCpus },
      rounds: options.rounds,
      backendPid: backend.pid,
      warmUpSeconds: options.quick ? warmUpSeconds : firstWarmUpSeconds,
      seconds: options.quick ? 1 : 3,
    });
  }
  const ofCapabilities = partsOfCapabilities
    .filter(({ name }) => options.wanted(name))
    .map(({ name, title, head, measure }) => {
      console.log(name);
      return { title, head, rows: measure(options) };
    });
  let hotKeyOnCluster: HotKeyFigures | undefined;
  if (options.wanted('hot-key-cluster')) hotKeyOnCluster = await measureHotKey(stage, options);
  redis.close();

  const report: Report = {
    ...reportOf(figures, options.rounds),
    connections,
    tls,
    keys,
    ...(metrics && { metrics }),
    ...(record && { record }),
    ...(unknownSecrets && { unknownSecrets }),
    ...(workers && { workers }),
    ofCapabilities,
    ...(hotKeyOnCluster && { hotKeyOnCluster }),
  };
  unfinished = undefined;
  return writeReport(report);
}

/** Appends the samples of later rounds to the samples of earlier rounds. */
function joinRounds(
  earlier: readonly ScenarioFigures[],
  later: readonly ScenarioFigures[],
): ScenarioFigures[] {
  return later.map(({ subjects, ...scenario }, place) => ({
    ...scenario,
    subjects: subjects.map(({ samples, ...subject }, index) => ({
      ...subject,
      samples: [...(earlier[place]?.subjects[index]?.samples ?? []), ...samples],
    })),
  }));
}

/** The report names a peer that is missing or does not start. If the gateway does not start, the benchmark fails. */
async function startSubjects(subjects: readonly Subject[], stage: Stage) {
  const running: RunningSubject[] = [];
  const missing: string[] = [];
  for (const subject of subjects) {
    const hint = subject.missing();
    if (hint !== undefined) {
      missing.push(`${subject.name} (${hint})`);
      continue;
    }
    try {
      const started = await subject.start(stage);
      running.push({ subject, started });
      if (subject.limits) await spendFloodKey(started.origin, stage.credentials);
    } catch (error) {
      if (subject === tollgate) throw error;
      missing.push(`${subject.name} (did not start: ${error instanceof Error ? error.message : error})`);
    }
  }
  for (const line of missing) console.log(`missing: ${line}`);
  return { running, missing };
}

/** @throws Error that names the wrong option */
function readOptions(): Options {
  const { values } = parseArgs({
    options: {
      quick: { type: 'boolean', default: false },
      rounds: { type: 'string' },
      only: { type: 'string', multiple: true, default: [] },
      against: { type: 'string' },
    },
  });
  const rounds = Number(values.rounds ?? (values.quick ? 3 : values.against === undefined ? 9 : 12));
  if (!Number.isInteger(rounds) || rounds < 1) throw new Error('--rounds: a number of at least 1');
  const unknown = values.only.find((name) => !names.includes(name));
  if (unknown !== undefined) throw new Error(`--only: no measurement is called ${unknown}`);
  const scenarioNames = scenarios.map(({ name }) => name);
  const usual = values.quick ? quickNames : values.against === undefined ? names : scenarioNames;
  return {
    quick: values.quick,
    rounds,
    against: values.against,
    wanted: (name) => (values.only.length > 0 ? values.only : usual).includes(name),
  };
}

const options = readOptionsOrEnd(usage, readOptions);
const dir = mkdtempSync(join(tmpdir(), 'tollgate-bench-'));
process.on('exit', () => {
  killAllProcesses();
  if (existsSync(dir)) rmSync(dir, { recursive: true, force: true });
});
let isStopping = false;
const stop = async (why: string, exitCode: number) => {
  // When the benchmark is stopped, the current measurement fails. This failure must not stop the benchmark a second time.
  if (isStopping) return;
  isStopping = true;
  if (unfinished !== undefined) writeReport({ ...unfinished, endedEarly: why });
  console.error(why);
  await endAllProcesses();
  process.exit(exitCode);
};
process.once('SIGINT', () => stop('stopped', 130));
process.once('SIGTERM', () => stop('stopped', 143));
setTimeout(() => stop(`not done after ${deadlineMs / 60_000} minutes`, 1), deadlineMs).unref();

try {
  const exitCode = await bench(options, dir);
  await endAllProcesses();
  process.exit(exitCode);
} catch (error) {
  await stop(error instanceof Error ? error.message : String(error), 1);
}
