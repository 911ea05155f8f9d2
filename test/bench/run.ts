import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { type Credentials, makeCredentials } from './credentials.ts';
import { findProgram } from './find-program.ts';
import { type ConnectionsFigures, measureConnections } from './growth-connections.ts';
import { type KeysFigures, measureKeys } from './growth-keys.ts';
import { installPeers } from './install-peers.ts';
import { describeMachine } from './machine.ts';
import { endAllProcesses, killAllProcesses } from './processes.ts';
import { type BenchRedis, startRedis } from './redis.ts';
import { type Report, type ScenarioFigures, writeReport } from './report.ts';
import { hotKey, type Sample, type Scenario, scenarios, spendFloodKey, takeSample } from './scenarios.ts';
import { createDirect, startBackend } from './subjects/direct.ts';
import { haproxy } from './subjects/haproxy.ts';
import { nginxLua } from './subjects/nginx-lua.ts';
import { nodePeers } from './subjects/node-peers.ts';
import type { Stage, StartedSubject, Subject } from './subjects/subject.ts';
import { countDecidedLocally, tollgate } from './subjects/tollgate.ts';

/** Whatever hangs, the benchmark ends. */
const deadlineMs = 60 * 60_000;
/** V8 needs tens of thousands of requests before a program costs what it will cost. */
const warmUpSeconds = 6;
const usage = `npm run bench -- [--quick] [--rounds N] [--only NAME]
  --quick      two short rounds and few sizes: a look, not a measurement
  --rounds N   rounds of each scenario (default 5, quick 2)
  --only NAME  one of: ${[...scenarios.map(({ name }) => name), 'connections', 'keys'].join(', ')}; may be repeated`;

interface Options {
  readonly quick: boolean;
  readonly rounds: number;
  readonly wanted: (name: string) => boolean;
}

/** Measures everything, prints and writes the report. Gives the exit code: 1 when a run was invalid. */
async function bench(options: Options, dir: string): Promise<number> {
  if (findProgram('wrk') === undefined) throw new Error('wrk is missing: apt-get install wrk');
  await installPeers();

  const credentials = makeCredentials(1_000, dir);
  const redis = await startRedis(dir);
  const backend = await startBackend(dir);
  const stage: Stage = { dir, backendPort: backend.port, redisPort: redis.port, credentials };
  const seconds = options.quick ? 1 : 3;

  const started = new Date();
  const machine = describeMachine();
  const { running, missing } = await startSubjects(
    [createDirect(backend), tollgate, nginxLua, ...nodePeers, haproxy],
    stage,
  );
  for (const { started: subject } of running) {
    await takeSample({ scenario: hotKey, subject, redis, credentials, seconds: warmUpSeconds });
  }
  const figures: ScenarioFigures[] = [];
  for (const scenario of scenarios.filter(({ name }) => options.wanted(name))) {
    figures.push(
      await measureScenario({ scenario, running, redis, credentials, seconds, rounds: options.rounds }),
    );
  }

  let connections: ConnectionsFigures[] = [];
  if (options.wanted('connections')) {
    connections = await measureConnections({ running, redis, credentials, quick: options.quick });
  }
  let keys: KeysFigures[] = [];
  if (options.wanted('keys')) keys = await measureKeys({ stage, redis, quick: options.quick });
  redis.close();

  const own = running.find(({ subject }) => subject === tollgate);
  const report: Report = {
    started: started.toISOString(),
    machine,
    quick: options.quick,
    rounds: options.rounds,
    missing,
    decidedLocally: own === undefined ? 0 : countDecidedLocally(own.started),
    scenarios: figures,
    connections,
    keys,
  };
  return writeReport(report);
}

interface RunningSubject {
  readonly subject: Subject;
  readonly started: StartedSubject;
}

/** A peer that is missing or does not start is named in the report; without the gateway itself there is none. */
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

interface ScenarioRun {
  readonly scenario: Scenario;
  readonly running: readonly RunningSubject[];
  readonly redis: BenchRedis;
  readonly credentials: Credentials;
  readonly seconds: number;
  readonly rounds: number;
}

/** Every round visits all subjects, each time beginning with another one, so that a slow minute hits all alike. */
async function measureScenario(run: ScenarioRun): Promise<ScenarioFigures> {
  const { scenario, redis, credentials, seconds, rounds } = run;
  const suited = run.running.filter(({ subject }) => scenario.suits(subject));
  const samples = new Map<string, Sample[]>(suited.map(({ subject }) => [subject.name, []]));
  for (let round = 0; round < rounds; round++) {
    console.log(`${scenario.name}: round ${round + 1} of ${rounds}`);
    const first = round % suited.length;
    for (const { subject, started } of [...suited.slice(first), ...suited.slice(0, first)]) {
      const sample = await takeSample({ scenario, subject: started, redis, credentials, seconds });
      samples.get(subject.name)?.push(sample);
      for (const problem of sample.problems)
        console.error(`INVALID: ${scenario.name}, ${subject.name}: ${problem}`);
    }
  }
  return {
    name: scenario.name,
    title: scenario.title,
    subjects: suited.map(({ subject }) => ({
      name: subject.name,
      job: subject.job,
      samples: samples.get(subject.name) ?? [],
    })),
  };
}

function readOptions(): Options | undefined {
  const { values } = parseArgs({
    options: {
      quick: { type: 'boolean', default: false },
      rounds: { type: 'string' },
      only: { type: 'string', multiple: true, default: [] },
    },
  });
  const rounds = Number(values.rounds ?? (values.quick ? 2 : 5));
  const names = [...scenarios.map(({ name }) => name), 'connections', 'keys'];
  if (!Number.isInteger(rounds) || rounds < 1 || values.only.some((name) => !names.includes(name))) {
    return undefined;
  }
  return {
    quick: values.quick,
    rounds,
    wanted: (name) => values.only.length === 0 || values.only.includes(name),
  };
}

const options = readOptions();
if (options === undefined) {
  console.error(usage);
  process.exit(1);
}
const dir = mkdtempSync(join(tmpdir(), 'tollgate-bench-'));
process.on('exit', () => {
  killAllProcesses();
  if (existsSync(dir)) rmSync(dir, { recursive: true, force: true });
});
let isStopping = false;
const stop = async (why: string, exitCode: number) => {
  // What was under way fails when its processes end; that is not another reason.
  if (isStopping) return;
  isStopping = true;
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
