import { createHash, randomBytes } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { makeCredentials } from './credentials.ts';
import { residentBytes } from './measure-cpu.ts';
import { endProcess } from './processes.ts';
import {
  hotKey,
  type Sample,
  type SampleOptions,
  scenarios,
  spendFloodKey,
  takeSample,
  warmUp,
} from './scenarios.ts';
import { type Spread, spreadOf } from './statistics.ts';
import type { Stage } from './subjects/subject.ts';
import { type StartedTollgate, startTollgate } from './subjects/tollgate.ts';

/** Measures the cost of the usage record: a request with the record and without it, and a list of keys. */
export interface RecordFigures {
  readonly loads: readonly {
    readonly load: string;
    readonly atMost: number;
    /** The gateways with and without the record are measured in the same rounds. */
    readonly on: readonly Sample[];
    readonly off: readonly Sample[];
  }[];
  readonly list: {
    readonly keys: number;
    readonly active: number;
    /** The time of `/api/v1/keys?limit=50&sort=refused`, from the request to the last octet. */
    readonly ms: Spread;
    /** The memory that the usage record adds to a process, after all keys were active. */
    readonly activeKeysBytes: number;
    readonly activeKeys: number;
  };
}

/** The largest permitted costs. */
export const recordAtMost = { forwarded: 1.03, refused: 1.04, listMs: 100, activeKeysBytes: 60_000_000 };

const [keys, active] = [10_000, 1_000];

/**
 * The CPU time per request differs by up to a tenth between two processes of the same program, because V8 optimises each process
 * differently.
 */
const pairs = 4;

export async function measureRecord({
  stage,
  rounds,
  warmUpSeconds,
  ...common
}: Omit<SampleOptions, 'scenario' | 'subject' | 'where'> & {
  readonly stage: Stage;
  readonly rounds: number;
  readonly warmUpSeconds: number;
}): Promise<RecordFigures> {
  console.log('with and without the usage record');
  const flood = scenarios.find(({ name }) => name === 'flood') ?? hotKey;
  const loads = [
    { scenario: hotKey, load: 'forwarded', atMost: recordAtMost.forwarded },
    { scenario: flood, load: 'refused', atMost: recordAtMost.refused },
  ].map((load) => ({ ...load, on: [] as Sample[], off: [] as Sample[] }));
  for (let pair = 0; pair < pairs; pair++) {
    const on = await startTollgate(stage, { name: `record-on-${pair}` });
    const off = await startTollgate(stage, {
      name: `record-off-${pair}`,
      settings: 'usage: { keepDays: 0 }',
    });
    for (const subject of [on, off]) {
      await spendFloodKey(subject.origin, stage.credentials);
      for (const { scenario, load } of loads) {
        await warmUp({ ...common, scenario, subject, seconds: warmUpSeconds, where: `record, ${load}` });
      }
    }
    for (let round = 0; round < rounds / pairs; round++) {
      for (const { scenario, load, ...samples } of loads) {
        const turns = [
          { subject: on, into: samples.on },
          { subject: off, into: samples.off },
        ];
        for (const { subject, into } of round % 2 === 0 ? turns : turns.reverse()) {
          into.push(await takeSample({ ...common, scenario, subject, where: `record, ${load}` }));
        }
      }
    }
    await Promise.all([endProcess(on.pid), endProcess(off.pid)]);
  }
  return {
    loads: loads.map(({ load, atMost, on, off }) => ({ load, atMost, on, off })),
    list: await measureList(stage),
  };
}

async function measureList(stage: Stage): Promise<RecordFigures['list']> {
  const dir = join(stage.dir, 'record');
  mkdirSync(dir);
  const credentials = makeCredentials(keys, dir);
  const token = randomBytes(24).toString('hex');
  const sha256 = createHash('sha256').update(token).digest('hex');
  const adminMembers = `, tokens: [{ name: bench, sha256: ${sha256}, may: read }]`;
  const gateway = await startTollgate({ ...stage, dir, credentials }, { name: 'record-list', adminMembers });
  const secrets = credentials.all.map(({ secret }) => secret);
  await callAll(gateway, secrets.slice(0, active));
  await sleep(flushMs);

  const readList = async () => {
    const startedMs = performance.now();
    const response = await fetch(`${gateway.adminOrigin}/api/v1/keys?limit=50&sort=refused`, {
      headers: { Authorization: `Bearer ${token}` },
    });
    await response.arrayBuffer();
    if (response.status !== 200) throw new Error(`the list was answered ${response.status}`);
    return performance.now() - startedMs;
  };
  for (let warmUp = 0; warmUp < 5; warmUp++) await readList();
  const times: number[] = [];
  for (let sample = 0; sample < 40; sample++) times.push(await readList());

  const settings = 'usage: { keepDays: 0 }';
  const without = await startTollgate({ ...stage, dir, credentials }, { name: 'record-none', settings });
  // A process frees the memory of requests late. The two processes get the same number of requests, so that this memory does not affect the
  // comparison.
  await callAll(without, secrets.slice(0, active));
  for (const subject of [gateway, without]) await callAll(subject, secrets.slice(0, keys));
  const activeKeysBytes = residentBytes(gateway.pid) - residentBytes(without.pid);
  await endProcess(without.pid);
  await endProcess(gateway.pid);
  return { keys, active, ms: spreadOf(times), activeKeysBytes, activeKeys: keys };
}

/** The wait is long enough for the recorder to send the counts of each active key. */
const flushMs = 12_000;

/** Sends one request with each key, a few at a time. */
async function callAll({ origin }: StartedTollgate, secrets: readonly string[]): Promise<void> {
  const left = secrets.values();
  const caller = async () => {
    for (const secret of left) {
      const response = await fetch(`${origin}/v1/pets`, { headers: { Authorization: `Bearer ${secret}` } });
      await response.arrayBuffer();
    }
  };
  await Promise.all(Array.from({ length: 16 }, caller));
}
