import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { directoryOf } from '../support/directory-of.ts';
import { freePort } from '../support/free-port.ts';
import { inventedSecret } from '../support/invented-secret.ts';
import { endProcess, type Running, startProcess, untilAnswers } from './processes.ts';
import { type Load, problemsOf, runWrk, type WrkFigures } from './run-wrk.ts';
import type { NoteProblems } from './scenarios.ts';
import type { Stage } from './subjects/subject.ts';
import { startTollgate } from './subjects/tollgate.ts';

/** Shows how floods of unknown secrets affect the requests of a directory key. */
export interface UnknownSecretsFigures {
  readonly loads: readonly UnknownSecretsLoad[];
}

/** The figures of one load with the key. Each list has one figure for each round. */
interface UnknownSecretsLoad {
  readonly connections: number;
  readonly requestsPerSecond: readonly number[];
  readonly p99Us: { readonly alone: readonly number[] } & Readonly<Record<Flood, readonly number[]>>;
  readonly floodPerSecond: Readonly<Record<Flood, readonly number[]>>;
}

/**
 * `lookedUp`: the gateway looks up each secret in the directory, because the secret has another prefix than Tollgate's secrets.
 * `wrongChecksum`: the secrets have the prefix and a wrong checksum, so the gateway refuses them without a look-up.
 * `otherProgram`: the requests of `wrongChecksum` go to `refusing-program.ts`, which has the CPUs of the gateway. This flood shows what any
 * program pays for as many refusals.
 */
export const floods = ['lookedUp', 'wrongChecksum', 'otherProgram'] as const;

type Flood = (typeof floods)[number];

/** Returns a new secret that no key has. */
const invent: Record<Flood, () => string> = {
  lookedUp: randomUUID,
  wrongChecksum: () => inventedSecret(),
  otherProgram: () => inventedSecret(),
};

const refusingProgram = fileURLToPath(new URL('./refusing-program.ts', import.meta.url));

/**
 * The numbers of connections with which the key sends requests. 8 connections send about 800 requests a second, and 32 connections send
 * about 3,000.
 */
export const connectionsOfKey = [8, 32] as const;

interface Options {
  readonly stage: Stage;
  readonly noteProblems: NoteProblems;
  readonly rounds: number;
  readonly seconds: number;
}

/** The flood has about 2,000 different secrets a second, because each connection pauses for 30 ms after each response. */
const floodLoad = { connections: 66, pauseMs: 30, perSecondAtLeast: 1_900, addresses: 5_000 };
/** The number of different secrets for each second of a flood. A flood repeats no secret. */
const secretsPerSecond = 4_000;
/**
 * The flood starts one second before the first request of the key, and ends one second after the last request of the key.
 */
const floodAroundSeconds = 2;
const loadPauseMs = 10;

export async function measureUnknownSecrets(options: Options): Promise<UnknownSecretsFigures> {
  const { stage, rounds } = options;
  const name = 'tollgate-directory';
  const gateway = await startTollgate(stage, {
    name,
    replaced: { keys: 'keys: { file: ./keys.yaml, directory: true }' },
    settings: 'trustedProxies: [127.0.0.1]\naddressBucket: { perMinute: 60 }',
  });
  const secretsFile = join(stage.dir, 'issued');
  const secret = randomUUID();
  writeFileSync(secretsFile, `${secret}\n`);
  const directory = await directoryOf({ url: `redis://127.0.0.1:${stage.redisPort}`, prefix: name });
  const limits = { perMinute: 1_000_000_000 };
  await directory.issue('issued', [secret], { plan: 'enterprise', limits });
  directory.close();

  const other = await startRefusingProgram(stage);
  const url = `${gateway.origin}/v1/pets`;
  const floodUrls: Record<Flood, string> = { lookedUp: url, wrongChecksum: url, otherProgram: other.url };
  const loads = connectionsOfKey.map((connections) => ({
    connections,
    requestsPerSecond: [] as number[],
    p99Us: { alone: [] as number[], ...noFigures() },
    floodPerSecond: noFigures(),
  }));
  const takeAlone = (connections: number) =>
    run({ url, secretsFile, connections, pauseMs: loadPauseMs, expectedStatus: 200 }, options);
  const takeBeside = async (connections: number, flood: Flood) => {
    const flooding = runFlood(floodUrls[flood], flood, options);
    await sleep((floodAroundSeconds / 2) * 1_000);
    const own = await takeAlone(connections);
    return { own, floodPerSecond: await flooding };
  };

  console.log('unknown secrets: warm-up');
  for (const { connections } of loads) for (const flood of floods) await takeBeside(connections, flood);
  for (let round = 0; round < rounds; round++) {
    console.log(`unknown secrets: round ${round + 1} of ${rounds}`);
    for (const load of loads) {
      const alone = await takeAlone(load.connections);
      load.p99Us.alone.push(alone.p99Us);
      load.requestsPerSecond.push(alone.requests / alone.seconds);
      for (const flood of floods) {
        const { own, floodPerSecond } = await takeBeside(load.connections, flood);
        load.p99Us[flood].push(own.p99Us);
        load.floodPerSecond[flood].push(floodPerSecond);
      }
    }
  }
  await endProcess(gateway.pid);
  await endProcess(other.pid);
  return { loads };
}

function noFigures(): Record<Flood, number[]> {
  return { lookedUp: [], wrongChecksum: [], otherProgram: [] };
}

async function startRefusingProgram({
  dir,
  subjectCpus,
}: Stage): Promise<Running & { readonly url: string }> {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}/v1/pets`;
  const place = { dir, name: 'refusing-program', cpus: subjectCpus };
  const running = startProcess(process.execPath, [refusingProgram, String(port)], place);
  await untilAnswers(url, running);
  return { ...running, url };
}

/** @returns the number of requests per second */
async function runFlood(url: string, flood: Flood, options: Options): Promise<number> {
  const seconds = options.seconds + floodAroundSeconds;
  const secretsFile = join(options.stage.dir, 'unknown');
  const secrets = Array.from({ length: seconds * secretsPerSecond }, () => `${invent[flood]()}\n`);
  writeFileSync(secretsFile, secrets.join(''));
  const { connections, pauseMs, addresses } = floodLoad;
  const load = { url, secretsFile, connections, pauseMs, addresses, expectedStatus: 401 };
  const sent = await run(load, { ...options, seconds });
  const perSecond = sent.requests / sent.seconds;
  if (perSecond < floodLoad.perSecondAtLeast) {
    options.noteProblems('unknown secrets', [`${flood}: only ${perSecond.toFixed(0)} a second`]);
  }
  return perSecond;
}

async function run(
  load: Pick<Load, 'url' | 'secretsFile' | 'connections' | 'expectedStatus' | 'pauseMs' | 'addresses'>,
  { seconds, noteProblems }: Pick<Options, 'seconds' | 'noteProblems'>,
): Promise<WrkFigures> {
  const whole: Load = { ...load, method: 'GET', body: '', seconds, mode: 'check' };
  const figures = await runWrk(whole);
  noteProblems('unknown secrets', problemsOf(figures, whole, 0));
  return figures;
}
