import type { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { redisKeys } from '../../../gateway/redis/redis-keys.ts';
import type { Decision, Key } from '../../../gateway/shared/model.ts';
import { freshWindows } from '../../support/fresh-windows.ts';
import { inspect } from '../../support/inspect.ts';
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

let redis: Redis;
beforeAll(() => {
  redis = inspect(redisUrl());
});
afterAll(() => redis.disconnect());

describe.each(['redis', 'memory'])('on %s, a grant', (store) => {
  const open = (nowMs = Date.now) => openLimiter({ nowMs, ...(store === 'redis' && { url: redisUrl() }) });

  it('begins at once on the process that gives it, and ends at once on the process that removes it', async () => {
    const limiter = open();
    const key = keyOf(2, 1_000);
    const grant = { limits: limitsOf({ perMinute: 5, perMonth: 1 }), untilMs: Date.now() + 600_000 };
    expect(count(await decideInTurn(limiter, key, 4), 'admitted')).toBe(2);
    expect(await limiter.adjust(key.id, { grant })).toMatchObject({ kind: 'changed', state: { grant } });
    const under = await decideInTurn(limiter, key, 4);
    expect(under.map(({ kind, rateLimit }) => [kind, rateLimit.inForce.limit])).toEqual([
      ...[3, 4, 5].map(() => ['admitted', 5]),
      ['refused', 5],
    ]);
    const [status] = await readOne(limiter, key);
    expect(status).toMatchObject({
      grant,
      used: [5, 5],
      rateLimit: { windows: [{ limit: 5 }, { limit: 1_000 }] },
    });
    await limiter.adjust(key.id, { grant: 'none' });
    const [after] = await decideInTurn(limiter, key, 1);
    expect(after).toMatchObject({ kind: 'refused', rateLimit: { inForce: { limit: 2, remaining: 0 } } });
    expect((await readOne(limiter, key))[0]?.grant).toBeUndefined();
  });
});

it('a grant and its end apply exactly on every process, wherever the key was refused before', async () => {
  const { limiters } = openLimiters(3, redisUrl());
  const [first] = limiters;
  const key = keyOf(6, 1_000);
  for (const limiter of limiters) await decideInTurn(limiter, key, 4);
  await first?.adjust(key.id, {
    grant: { limits: limitsOf({ perMinute: 30 }), untilMs: Date.now() + 600_000 },
  });
  const admitted = await spend(limiters, key, 30);
  expect(admitted).toBe(24);
  await first?.adjust(key.id, { grant: 'none' });
  expect(await spend(limiters, key, 6)).toBe(0);
});

it('a change of a ban on one process applies to all processes, even to those with unreported refusals', async () => {
  // This limiter does not report strikes to Redis during the test, even if the test runs slowly.
  const reportsNothing = { reportIntervalMs: 600_000, refusalRememberedMs: 600_000 };
  const shared = { url: redisUrl(), prefix: freshPrefix(), windowsMs: freshWindows(Date.now()) };
  const [first, third] = [openLimiter(shared), openLimiter(shared)];
  const second = openLimiter({ ...shared, tuning: { ...patientStore, ...reportsNothing } });
  const { prefix } = shared;
  const strikes = async (key: Key) =>
    Number(await redis.hget(redisKeys.quota.name(prefix, key.id), 'strikes'));
  for (const verb of ['lift', 'reset'] as const) {
    const key = keyOf(5, 1_000);
    await decideInTurn(first, key, 110, bans);
    // The second process refuses from memory, because it has a recent reply from the store. The second process has not yet reported the
    // strikes of its refusals to Redis.
    const withRefusals = keyOf(5, 1_000);
    await decideInTurn(second, withRefusals, 5 + 40, { ...bans, after: 10_000 });
    expect(await strikes(withRefusals)).toBeLessThan(40);

    const change = verb === 'lift' ? ({ lift: true, bans } as const) : ({ reset: true, bans } as const);
    await third.adjust(key.id, change);
    await third.adjust(withRefusals.id, change);
    const raised = (of: Key) => ({ ...of, limits: limitsOf({ perMinute: 8, perDay: 1_000 }) });
    for (const limiter of [second, first, third]) {
      await until(`the ban is lifted on every process by ${verb}`, async () => {
        return (await limiter.decide(raised(key), bans)).kind === 'admitted';
      });
    }
    // If the 40 earlier refusals still counted, the ban would begin before the hundredth new refusal.
    second.forgetRefusals();
    const limits = limitsOf({ perMinute: 5, perDay: 1_000 });
    const next = await decideInTurn(second, { ...withRefusals, limits }, 110, bans);
    const room = verb === 'reset' ? 5 : 0;
    expect([verb, next.findIndex(({ kind }) => kind === 'banned')]).toEqual([verb, room + 99]);
  }
});

it('a process without Redis decides with the grant that it saw last, and ends the grant in time', async () => {
  const server = await startRedis();
  onTestFinished(() => server.stop());
  const relay = await startTcpRelay(server.port);
  onTestFinished(() => relay.stop());
  let aheadMs = 0;
  const limiter = openLimiter({
    url: `redis://127.0.0.1:${relay.port}`,
    windowsMs: freshWindows(Date.now()),
    tuning: steadyStore,
    nowMs: () => Date.now() + aheadMs,
  });
  const key = keyOf(5, 1_000);
  await decideInTurn(limiter, key, 1);
  await limiter.adjust(key.id, {
    grant: { limits: limitsOf({ perMinute: 50 }), untilMs: Date.now() + 60_000 },
  });
  await decideInTurn(limiter, key, 1);
  relay.switchTo(1);
  relay.cut();
  await untilAway(limiter);
  const alone = await decideTogether(limiter, key, 20);
  expect(alone.map(({ kind, source }) => [kind, source])).toEqual(Array(20).fill(['admitted', 'local']));
  expect(alone.at(-1)?.rateLimit.inForce).toMatchObject({ limit: 50, remaining: 28 });
  expect(await limiter.readOwn(key)).toMatchObject({ source: 'local', status: { used: [22, 22] } });
  aheadMs = 61_000;
  const [after] = await decideTogether(limiter, key, 1);
  expect(after).toMatchObject({ kind: 'refused', source: 'local', rateLimit: { inForce: { limit: 5 } } });
  aheadMs = 0;
  relay.switchTo(server.port);
  await untilBack(limiter);
  await until('all that was admitted is counted, beyond the limit of the plan too', async () => {
    const [decision] = await decideTogether(limiter, key, 1);
    return decision?.source === 'shared' && decision.rateLimit.inForce.limit === 50;
  });
});

describe('a key that was changed since it was read', () => {
  it('is stale for each request of the turn, which charges nothing, until the key is read again', async () => {
    const { limiter, key, quota } = openForKey(5);
    const before = { ...key, generation: 0 };
    expect((await limiter.decideFresh(before, noBans)).kind).toBe('admitted');
    await redis.hset(quota, 'changedMs', 7);
    const stale = await Promise.all([1, 2, 3].map(() => limiter.decideFresh(before, noBans)));
    expect(stale).toEqual(Array(3).fill({ kind: 'stale' }));
    expect(await redis.hget(quota, 'minuteUsed')).toBe('1');
    const now = { ...key, generation: 7 };
    // All four requests arrive in one turn of the event loop. Each request is decided with the version of the key that was read for the
    // request.
    const mixed = await Promise.all(
      [before, now, before, now].map((read) => limiter.decideFresh(read, noBans)),
    );
    expect(mixed.map(({ kind }) => kind)).toEqual(['stale', 'admitted', 'stale', 'admitted']);
    expect(await redis.hget(quota, 'minuteUsed')).toBe('3');
    expect(limiter.counts().calls.failed).toBe(0);
  });

  it('keeps the refusals of the stale call', async () => {
    const { limiter, key, quota } = openForKey(1);
    const read = { ...key, generation: 0 };
    for (let request = 0; request < 21; request++) await limiter.decideFresh(read, bans);
    await redis.hset(quota, 'changedMs', 7);
    limiter.forgetRefusals();
    expect(await limiter.decideFresh(read, bans)).toEqual({ kind: 'stale' });
    await limiter.decideFresh({ ...key, generation: 7 }, bans);
    expect(await redis.hget(quota, 'strikes')).toBe('21');
  });
});

/** A limiter, a key, and the name of the key's counts in Redis. */
function openForKey(perMinute: number) {
  const prefix = freshPrefix();
  const key = keyOf(perMinute, 1_000);
  return {
    limiter: openLimiter({ url: redisUrl(), prefix }),
    key,
    quota: redisKeys.quota.name(prefix, key.id),
  };
}

/**
 * Sends requests through every process until each process refuses a request because of this limit. @returns the number of admitted
 * requests
 */
async function spend(limiters: readonly LoggedLimiter[], key: Key, limit: number): Promise<number> {
  let admitted = 0;
  for (const limiter of limiters) {
    await until(`a limit of ${limit} is spent`, async () => {
      const decision: Decision = await limiter.decide(key, noBans);
      if (decision.kind === 'admitted') admitted += 1;
      return decision.kind === 'refused' && decision.rateLimit.inForce.limit === limit;
    });
  }
  return admitted;
}

async function readOne(limiter: LoggedLimiter, key: Key) {
  const read = await limiter.read([key]);
  if (read.kind === 'failed') throw new Error(read.reason);
  return read.keys;
}
