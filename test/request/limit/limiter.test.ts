import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import type { Decision, Key, KeyStatus, StaleKey } from '../../../gateway/shared/model.ts';
import { defaultBounds } from '../../../gateway/shared/timeouts-and-sizes.ts';
import { freshWindows } from '../../support/fresh-windows.ts';
import { limitsOf } from '../../support/limits-of.ts';
import { freshPrefix, redisUrl } from '../../support/redis.ts';
import { startRedis } from '../../support/start-redis.ts';
import { startTcpRelay } from '../../support/tcp-relay.ts';
import { patientStore, steadyStore } from '../../support/tuning.ts';
import { until } from '../../support/until.ts';
import {
  count,
  decideInTurn,
  decideTogether,
  keyOf,
  type LoggedLimiter,
  noBans,
  openLimiter,
  openLimiters,
  untilAway,
  untilBack,
} from './limiter-fixture.ts';

const bans = { after: 100, withinMs: 60_000, forMs: 60_000, maxMs: 600_000 };

describe.each(['redis', 'memory'])('on %s', (store) => {
  const open = () => openLimiter(store === 'redis' ? { url: redisUrl() } : {});

  it('gives each request of one event-loop turn its own remaining', async () => {
    const decisions = await decideTogether(open(), keyOf(5, 100), 8);
    expect(decisions.map(({ kind, rateLimit }) => [kind, rateLimit.inForce.remaining])).toEqual([
      ...[4, 3, 2, 1, 0].map((remaining) => ['admitted', remaining]),
      ...[0, 0, 0].map((remaining) => ['refused', remaining]),
    ]);
    const counts = store === 'redis' ? 'shared' : 'memory';
    expect(decisions.map(({ source }) => source)).toEqual(Array(8).fill(counts));
  });

  it('decides requests of one key and turn by their own limits when a reload separates them', async () => {
    const limiter = open();
    const before = keyOf(2, 100);
    const after = { ...before, limits: limitsOf({ perMinute: 4, perDay: 100 }) };
    const decisions = await Promise.all([
      ...[1, 2, 3].map(() => limiter.decide(before, noBans)),
      ...[1, 2, 3].map(() => limiter.decide(after, noBans)),
    ]);
    expect(decisions.map(({ kind, rateLimit }) => [kind, rateLimit.inForce.limit])).toEqual([
      ...[
        ['admitted', 2],
        ['admitted', 2],
        ['refused', 2],
      ],
      ...[
        ['admitted', 4],
        ['admitted', 4],
        ['refused', 4],
      ],
    ]);
  });

  it('decides requests of one key and turn in the order of arrival, at any cost', async () => {
    const limiter = open();
    const key = keyOf(12, 100);
    const costs = [5, 5, 1, 5, 1, 0, 2, 1, 0];
    const decisions = await Promise.all(costs.map((units) => limiter.decide(key, noBans, units)));
    expect(decisions.map(({ kind, rateLimit }) => [kind, rateLimit.inForce.remaining])).toEqual([
      ...[
        ['admitted', 7],
        ['admitted', 2],
        ['admitted', 1],
        ['refused', 1],
      ],
      ...[
        ['admitted', 0],
        ['admitted', 0],
        ['refused', 0],
        ['refused', 0],
        ['admitted', 0],
      ],
    ]);
    const [minute] = decisions.map(({ rateLimit }) => rateLimit.windows[0]);
    expect(decisions[3]).toMatchObject({ units: 5, retryAtMs: minute?.resetMs });
  });

  it('refuses from memory the requests without room, and admits the others', async () => {
    const limiter = open();
    const key = keyOf(12, 100);
    const kinds: string[] = [];
    for (const units of [10, 3, 3, 2, 3, 1, 0]) kinds.push((await limiter.decide(key, noBans, units)).kind);
    expect(kinds).toEqual(['admitted', 'refused', 'refused', 'admitted', 'refused', 'refused', 'admitted']);
  });

  it('gives each banned request the time when it will be admitted, at any cost of the request before', async () => {
    const limiter = open();
    const key = keyOf(12, 100);
    const afterOne = { ...bans, after: 1 };
    await limiter.decide(key, afterOne, 10);
    const { rateLimit } = await limiter.decide(key, afterOne, 3);
    const minuteEndMs = rateLimit.windows[0]?.resetMs;
    for (const [units, retryAtMs] of [
      [3, minuteEndMs],
      [1, rateLimit.ban?.untilMs],
      [3, minuteEndMs],
      [0, rateLimit.ban?.untilMs],
    ]) {
      expect(await limiter.decide(key, afterOne, units)).toMatchObject({ kind: 'banned', units, retryAtMs });
    }
  });

  it('shows remaining 0, never less, when a limit falls below the used requests', async () => {
    const limiter = open();
    const key = keyOf(10, 100);
    await decideTogether(limiter, key, 8);
    const [decision] = await decideTogether(
      limiter,
      { ...key, limits: limitsOf({ perMinute: 5, perDay: 100 }) },
      1,
    );
    expect([decision?.kind, decision?.rateLimit.inForce.remaining]).toEqual(['refused', 0]);
  });

  it('admits at once when a reload raised the limit of a key that was refused', async () => {
    const limiter = open();
    const key = keyOf(1, 100);
    await decideTogether(limiter, key, 3);
    limiter.forgetRefusals();
    const [decision] = await decideTogether(
      limiter,
      { ...key, limits: limitsOf({ perMinute: 2, perDay: 100 }) },
      1,
    );
    expect(decision?.kind).toBe('admitted');
  });

  it('shows a refused key that moved to another plan its used requests in the windows of that plan', async () => {
    const limiter = open();
    const monthly: Key = { ...keyOf(1, 1), limits: limitsOf({ perMinute: 2, perMonth: 100 }) };
    const daily: Key = { ...monthly, limits: limitsOf({ perMinute: 3, perDay: 10 }) };
    await decideInTurn(limiter, monthly, 2, noBans);
    const refused = await decideInTurn(limiter, daily, 2, noBans);
    expect(refused.map(({ kind }) => kind)).toEqual(['admitted', 'refused']);
    const [moved] = await decideInTurn(limiter, monthly, 1, noBans);
    expect(moved?.rateLimit.windows).toMatchObject([
      { name: 'minute', remaining: 0 },
      { name: 'month', remaining: 98 },
    ]);
  });

  it('bans on the refusal that reaches the threshold, also when refusals come from memory', async () => {
    const limiter = open();
    const decisions = await decideInTurn(limiter, keyOf(5, 1000), 150, bans);
    const kinds = decisions.map(({ kind }) => kind);
    expect(kinds.slice(0, 5)).toEqual(Array(5).fill('admitted'));
    expect(kinds.indexOf('banned')).toBe(5 + 99);
    expect(kinds.slice(104).every((kind) => kind === 'banned')).toBe(true);
    const retryAtMs = decisions.slice(104).map((decision) => 'retryAtMs' in decision && decision.retryAtMs);
    expect(new Set(retryAtMs).size).toBe(1);
  });
});

describe('refusals from memory', () => {
  const prefix = freshPrefix();
  let client: Redis;
  beforeAll(() => {
    client = new Redis(redisUrl());
  });
  afterAll(() => client.disconnect());

  it('cost at most one call to Redis for ten refusals', async () => {
    // This test needs its own Redis, because other tests would add to the count of calls.
    const server = await startRedis();
    onTestFinished(() => server.stop());
    const limiter = openLimiter({ url: server.url });
    const decisions = await decideInTurn(limiter, keyOf(5, 1000), 2_000);
    expect(count(decisions, 'refused')).toBe(1_995);
    expect(await scriptCalls(server.url)).toBeLessThan(200);
  });

  it('are reported to the store, so that another process counts them towards a ban', async () => {
    const key = keyOf(1, 1000);
    const shared = { url: redisUrl(), prefix, windowsMs: freshWindows(Date.now()) };
    const first = openLimiter({ ...shared, tuning: { ...patientStore, storeCloseTimeoutMs: 20_000 } });
    await decideInTurn(first, key, 41, bans);
    await first.close();
    const second = openLimiter(shared);
    const decisions = await decideInTurn(second, key, 70, bans);
    expect(decisions.findIndex(({ kind }) => kind === 'banned')).toBe(59);
  });

  it('are reported in time for the ban at its threshold, over any number of processes', async () => {
    const shared = { url: redisUrl(), prefix, windowsMs: freshWindows(Date.now()), tuning: patientStore };
    const limiters = [openLimiter(shared), openLimiter(shared), openLimiter(shared)];
    const refusalsOf = async (after: number) => {
      const key = keyOf(1, 1000);
      for (let refused = 0; ; ) {
        for (const limiter of limiters) {
          const { kind } = await limiter.decide(key, { ...bans, after });
          if (kind === 'banned') return refused;
          if (kind === 'refused') refused += 1;
        }
      }
    };
    expect(await refusalsOf(100)).toBe(99);
    // With a large threshold for bans, each process may have up to 1 % of the threshold in unreported refusals. The
    // unreported refusals of all processes delay the ban, so the number of refusals before the ban can exceed the threshold.
    expect(await refusalsOf(400)).toBeLessThan(399 + 3 * 4);
  });

  it('end when the store has lost its counts', async () => {
    const key = keyOf(1, 1000);
    const limiter = openLimiter({ url: redisUrl(), prefix });
    await decideInTurn(limiter, key, 2, { ...bans, after: 1 });
    await client.del(`${prefix}:{${key.id}}`);
    await until('it is admitted', async () => (await limiter.decide(key, bans)).kind === 'admitted');
  });

  it('end at the announced instant and not before, even if the clock of the process is wrong', async () => {
    const windowsMs = { minute: 2_000, day: 86_400_000 };
    const limiter = openLimiter({ url: redisUrl(), windowsMs, nowMs: () => Date.now() + 90_000 });
    let refusedBefore = 0;
    // Tries another key if no request of the inner loop was refused.
    while (refusedBefore === 0) {
      const key = keyOf(1, 1000);
      const [, refused] = await decideTogether(limiter, key, 2);
      if (refused?.kind !== 'refused') throw new Error('expected a refusal');
      // Sends one request every 20 ms. The time in each decision shows whether the request came before or after `retryAtMs`.
      const decisions = [];
      while (decisions.at(-1)?.kind !== 'admitted') {
        decisions.push(await limiter.decide(key, noBans));
        await sleep(20);
      }
      const admitted = decisions.pop();
      expect(admitted?.rateLimit.nowMs).toBeGreaterThanOrEqual(refused.retryAtMs);
      for (const { kind, rateLimit } of decisions) {
        expect([kind, rateLimit.nowMs < refused.retryAtMs]).toEqual(['refused', true]);
      }
      refusedBefore = decisions.length;
    }
  });
});

it('a ban ends at the announced instant also when the clock of the process is set back meanwhile', async () => {
  const brief = { after: 1, withinMs: 60_000, forMs: 500, maxMs: 60_000 };
  const windowsMs = { minute: 100, day: 86_400_000 };
  let aheadMs = 0;
  const limiter = openLimiter({ url: redisUrl(), windowsMs, nowMs: () => Date.now() + aheadMs });
  const key = keyOf(1, 1000);
  let untilMs = 0;
  await until('the key is banned', async () => {
    const decision = await limiter.decide(key, brief);
    if (decision.kind === 'banned') untilMs = decision.retryAtMs;
    return decision.kind === 'banned';
  });
  aheadMs = -3_600_000;
  await until('the key is admitted', async () => {
    const decision = await limiter.decide(key, brief);
    if (decision.kind === 'admitted') expect(decision.rateLimit.nowMs).toBeGreaterThanOrEqual(untilMs);
    return decision.kind === 'admitted';
  });
});

it('a banned key that floods gets the same refusal until the ban ends, and is then admitted', async () => {
  let nowMs = Date.now();
  const windowsMs = { minute: 1_000, day: 2_000 };
  const limiter = openLimiter({ nowMs: () => nowMs, windowsMs });
  const key = keyOf(1, 100);
  await decideInTurn(limiter, key, 4, { ...bans, after: 3 });
  const ban = await limiter.decide(key, bans);
  if (ban.kind !== 'banned') throw new Error(`the key is ${ban.kind}`);
  expect(await limiter.decide(key, bans)).toMatchObject({ kind: 'banned', retryAtMs: ban.retryAtMs });
  nowMs = ban.retryAtMs - 1;
  expect(await limiter.decide(key, bans)).toMatchObject({ kind: 'banned', retryAtMs: ban.retryAtMs });
  nowMs = ban.retryAtMs;
  expect(await limiter.decide(key, bans)).toMatchObject({ kind: 'admitted' });
});

describe.each(['redis', 'memory'])('on %s, lifting a ban', (store) => {
  it('takes effect at once on its process, and returns the state of the key before and after', async () => {
    const limiter = openLimiter(store === 'redis' ? { url: redisUrl() } : {});
    const key = keyOf(5, 1000);
    await decideInTurn(limiter, key, 110, bans);
    const [banned] = await readKeys(limiter, key);
    expect(banned).toMatchObject({ banLevel: 1, rateLimit: { inForce: { name: 'minute', remaining: 0 } } });
    expect(banned?.rateLimit.ban?.untilMs).toBeGreaterThan(banned?.rateLimit.nowMs ?? Number.NaN);
    await limiter.adjust(key.id, { lift: true, bans });
    expect((await limiter.decide(key, bans)).kind).toBe('refused');
    const raised = { ...key, limits: limitsOf({ perMinute: 6, perDay: 1000 }) };
    expect((await limiter.decide(raised, bans)).kind).toBe('admitted');
    const [free] = await readKeys(limiter, raised);
    expect(free?.rateLimit.ban).toBeUndefined();
    expect(free?.rateLimit.windows.map(({ name, remaining }) => [name, remaining])).toEqual([
      ['minute', 0],
      ['day', 994],
    ]);
  });

  it('leaves no counts when the quota is reset', async () => {
    const limiter = openLimiter(store === 'redis' ? { url: redisUrl() } : {});
    const key = keyOf(5, 1000);
    await decideInTurn(limiter, key, 110, bans);
    await limiter.adjust(key.id, { reset: true, bans });
    const [status] = await readKeys(limiter, key);
    expect(status).toMatchObject({ strikes: 0, banLevel: 0 });
    expect(status?.rateLimit.windows.map(({ remaining }) => remaining)).toEqual([5, 1000]);
    expect(count(await decideInTurn(limiter, key, 6), 'admitted')).toBe(5);
  });
});

it('a ban that one process decided alone, without Redis, does not return after another process lifted it', async () => {
  const server = await startRedis();
  onTestFinished(() => server.stop());
  const relay = await startTcpRelay(server.port);
  onTestFinished(() => relay.stop());
  const prefix = freshPrefix();
  const windowsMs = freshWindows(Date.now());
  const away = openLimiter({
    url: `redis://127.0.0.1:${relay.port}`,
    prefix,
    windowsMs,
    tuning: steadyStore,
  });
  const near = openLimiter({ url: server.url, prefix, windowsMs });
  const key = keyOf(5, 1000);
  await decideInTurn(away, key, 5, bans);
  relay.switchTo(1);
  relay.cut();
  await untilAway(away);
  const alone = await decideInTurn(away, key, 150, bans);
  expect(alone.at(-1)).toMatchObject({ kind: 'banned', source: 'local' });
  await near.adjust(key.id, { lift: true, bans });
  relay.switchTo(server.port);
  await untilBack(away);
  await until('what was collected has arrived', async () => {
    const [decision] = await decideTogether(away, key, 1, bans);
    return decision?.source === 'shared';
  });
  const raised = { ...key, limits: limitsOf({ perMinute: 20, perDay: 1000 }) };
  for (const limiter of [away, near]) {
    limiter.forgetRefusals();
    expect((await limiter.decide(raised, bans)).kind).toBe('admitted');
  }
});

async function readKeys(limiter: LoggedLimiter, ...keys: Key[]): Promise<readonly KeyStatus[]> {
  const read = await limiter.read(keys);
  if (read.kind === 'failed') throw new Error(read.reason);
  return read.keys.filter((status) => status !== undefined);
}

async function scriptCalls(url: string): Promise<number> {
  const client = new Redis(url);
  const statistics = await client.info('commandstats');
  client.disconnect();
  const calls = statistics.matchAll(/^cmdstat_eval(?:sha)?:calls=(\d+)/gm);
  return [...calls].reduce((sum, [, each]) => sum + Number(each), 0);
}

it('a flood beyond the concurrency limit waits for the next call, and the end of a request makes this call at once', async () => {
  const tuning = { ...patientStore, leaseMs: 3_600_000, crowdedPauseMs: 600_000 };
  const { limiters } = openLimiters(2, redisUrl(), tuning);
  const [one, other] = limiters as [LoggedLimiter, LoggedLimiter];
  const key = { ...keyOf(1_000, 1_000), concurrent: 2 };
  for (const limiter of [one, other]) expect((await limiter.decide(key, noBans)).kind).toBe('admitted');
  expect((await one.decide(key, noBans)).kind).toBe('crowded');
  const before = one.counts().calls.decided;
  const flood: Promise<Decision | StaleKey>[] = [];
  for (let turn = 0; turn < 50; turn++) {
    flood.push(one.decide(key, noBans));
    await new Promise(setImmediate);
  }
  expect(one.counts().calls.decided).toBe(before);
  one.release(key.id);
  const kinds = (await Promise.all(flood)).map(({ kind }) => kind);
  expect(kinds).toEqual(['admitted', ...Array(49).fill('crowded')]);
  expect(one.counts().calls.decided).toBe(before + 1);
  // A batch that is full is sent immediately, without the pause.
  expect((await one.decide(key, noBans)).kind).toBe('crowded');
  const many = Array.from({ length: defaultBounds.requestsPerCallMax + 1 }, () => one.decide(key, noBans));
  const full = await Promise.all(many.slice(0, -1));
  expect(full.every(({ kind }) => kind === 'crowded')).toBe(true);
  one.release(key.id);
  expect((await many.at(-1))?.kind).toBe('admitted');
});

it('a process that closes right after the end of its last request leaves no lease', async () => {
  const { limiters } = openLimiters(2, redisUrl(), { ...patientStore, leaseMs: 3_600_000 });
  const [one, other] = limiters as [LoggedLimiter, LoggedLimiter];
  const key = { ...keyOf(1_000, 1_000), concurrent: 1 };
  expect((await one.decide(key, noBans)).kind).toBe('admitted');
  one.release(key.id);
  await one.close();
  expect((await other.decide(key, noBans)).kind).toBe('admitted');
});

it('the last request of a key stops counting when it ends, even if it came while the end of an earlier request was reported', async () => {
  const tuning = { ...patientStore, leaseMs: 3_600_000 };
  const { limiters } = openLimiters(2, redisUrl(), tuning);
  const [one, other] = limiters as [LoggedLimiter, LoggedLimiter];
  const key = { ...keyOf(1_000, 1_000), concurrent: 1 };
  expect((await one.decide(key, noBans)).kind).toBe('admitted');
  one.release(key.id);
  // After this turn of the event loop, the end of the request has been reported to Redis, but the reply has not been read.
  await new Promise(setImmediate);
  expect((await one.decide(key, noBans)).kind).toBe('admitted');
  expect((await other.decide(key, noBans)).kind).toBe('crowded');
  one.release(key.id);
  await until('the place is free', async () => (await other.decide(key, noBans)).kind === 'admitted');
});
