/**
 * Measures what a decision costs Redis: `node test/bench/measure-decision.ts [--against FOLDER] [--rounds N] [--only KIND]`. FOLDER is another checkout of
 * Tollgate. For each kind of key and each number of keys in a call, the program prints the CPU time of Redis for one key. It compares the
 * Redis Function, a plain key with two windows, the same source as a script, and the version in FOLDER. All subjects are measured in turn, so other programs disturb all of
 * them. The ratios are medians of the ratios of each round.
 */

import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import type { QuotaCall } from '../../gateway/quota/decide-key.ts';
import type { Run } from '../../gateway/quota/runs.ts';
import { createRedisQuotaStore } from '../../gateway/request/limit/store/redis-quota-store.ts';
import type { Limits } from '../../gateway/shared/model.ts';
import { connectRedis } from '../support/connect-redis.ts';
import { freshWindows } from '../support/fresh-windows.ts';
import { limitsOf } from '../support/limits-of.ts';
import { startRedis } from '../support/start-redis.ts';
import { ratioOf, spreadOf } from './statistics.ts';

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '15' },
    against: { type: 'string' },
    only: { type: 'string', default: '' },
  },
});
const decisionsPerRound = 2_000;
const keysPerCall = [1, 10, 100];
const bans = { after: 1_000_000_000, withinMs: 60_000, forMs: 60_000, maxMs: 600_000 };
const roomy = 1_000_000_000;
const two = limitsOf({ perMinute: roomy, perDay: roomy });
const four = limitsOf({ perMinute: roomy, perHour: roomy, perDay: roomy, perMonth: roomy });
const concurrency = { max: 1_000_000, process: 'p1', active: 3, leaseMs: 30_000 };

type Terms = Pick<QuotaCall, 'limits' | 'trial' | 'bans' | 'thresholds' | 'concurrency'> & {
  readonly operation?: string;
};

const tried = (limits: Limits, trial?: Limits): Terms => ({ limits: limits, trial: trial, bans });
const withGroups = (count: number): Limits => {
  const groups = Array.from({ length: count }, (_, at) => {
    const group = { operations: [`operation${at}`], perMinute: roomy };
    return [`group-${at}`, group] as const;
  });
  return limitsOf({ perMinute: roomy, perDay: roomy, groups: Object.fromEntries(groups) });
};
const [oneGroup, tenGroups] = [withGroups(1), withGroups(10)];
const operation = 'operation0';
const plain = tried(two);
const kinds: Readonly<Record<string, Terms>> = {
  'two windows': tried(two),
  'four windows': tried(four),
  thresholds: { ...tried(two), thresholds: [80, 100] },
  concurrency: { ...tried(two), concurrency },
  'trial, equal counts': tried(two, two),
  'trial, which refuses': tried(two, limitsOf({ perMinute: roomy, perDay: 1 })),
  'one group': { ...tried(oneGroup), operation },
  'trial with one group': { ...tried(oneGroup, oneGroup), operation },
  'ten groups, one is charged': { ...tried(tenGroups), operation },
};

const server = await startRedis(['--user', 'script', 'on', '>script', '~*', '&*', '+@all', '-fcall']);
const place = { url: server.url };
const redis = await connectRedis({ prefix: 'function', place });
const asScript = await connectRedis({
  prefix: 'script',
  place: { ...place, username: 'script', password: 'script' },
});
const before = await connectRedis({ prefix: 'before', place });
const pid = Number(/process_id:(\d+)/.exec(await redis.commands.info('server'))?.[1]);
const windowsMs = freshWindows(Date.now());
const deadlines = { deadlineMs: 20_000, patientDeadlineMs: 20_000, functionRetryMs: 3_600_000 };
const makeBefore: typeof createRedisQuotaStore | undefined = values.against
  ? (await import(resolve(values.against, 'gateway/request/limit/store/redis-quota-store.ts')))
      .createRedisQuotaStore
  : undefined;

const head = [
  '',
  'keys a call',
  'function, µs',
  'plain, µs',
  'script, µs',
  'function to plain',
  ...(makeBefore ? ['before, µs', 'function to before', 'script to before'] : []),
];
console.log(`| ${head.join(' | ')} |\n|${'---|'.repeat(head.length)}`);
for (const [kind, terms] of Object.entries(kinds)) {
  if (!kind.includes(values.only)) continue;
  for (const count of keysPerCall) {
    const deps = { windowsMs, keysPerCallMax: count, ...deadlines };
    const subjects = [
      createRedisQuotaStore({ ...deps, redis }),
      createRedisQuotaStore({ ...deps, redis }),
      createRedisQuotaStore({ ...deps, redis: asScript }),
      ...(makeBefore ? [makeBefore({ ...deps, redis: before })] : []),
    ];
    const { operation: asked, ...rest } = terms;
    const callsOf = (name: string, of: Terms, run: Run) =>
      Array.from({ length: count }, (_, at) => ({
        ...{ keyId: `${name} ${count} ${at}`, ...of, runs: [run] },
        // Earlier commits have the run in the call itself.
        ...{ requests: 1, units: 1 },
      }));
    const calls = callsOf(kind, rest, { requests: 1, units: 1, ...(asked && { operation: asked }) });
    const plainCalls = callsOf('plain', plain, { requests: 1, units: 1 });
    const figures: number[][] = subjects.map(() => []);
    for (let round = 0; round <= Number(values.rounds); round++) {
      for (const [at, store] of subjects.entries()) {
        const startNs = cpuNs();
        const sends = Math.ceil(decisionsPerRound / count);
        for (let sent = 0; sent < sends; sent += 20) {
          await Promise.all(Array.from({ length: 20 }, () => store.decide(at === 1 ? plainCalls : calls)));
        }
        // The first round loads the scripts.
        if (round > 0) figures[at]?.push((cpuNs() - startNs) / 1_000 / (Math.ceil(sends / 20) * 20 * count));
      }
    }
    const [ofFunction = [], ofPlain = [], ofScript = [], ofBefore = []] = figures;
    const median = (us: readonly number[]) => spreadOf(us).median.toFixed(1);
    const ratio = (us: readonly number[], to: readonly number[]) => ratioOf(us, to)?.median.toFixed(2) ?? '';
    const cells = [
      ...[kind, count, median(ofFunction), median(ofPlain), median(ofScript), ratio(ofFunction, ofPlain)],
      ...(makeBefore ? [median(ofBefore), ratio(ofFunction, ofBefore), ratio(ofScript, ofBefore)] : []),
    ];
    console.log(`| ${cells.join(' | ')} |`);
  }
}
for (const connection of [redis, asScript, before]) connection.close();
await server.stop();

/** The CPU time of Redis so far, without the time in which Redis waited for a CPU. */
function cpuNs(): number {
  return Number(readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')[0]);
}
