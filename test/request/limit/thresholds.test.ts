import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { QuotaThreshold } from '../../../gateway/fleet/kinds/key-notices.ts';
import type { Key } from '../../../gateway/shared/model.ts';
import { freshWindows } from '../../support/fresh-windows.ts';
import { limitsOf } from '../../support/limits-of.ts';
import { freshPrefix } from '../../support/redis.ts';
import { type RedisServer, startRedis } from '../../support/start-redis.ts';
import { steadyStore } from '../../support/tuning.ts';
import {
  decideInTurn,
  decideTogether,
  keyOf,
  type LoggedLimiter,
  noBans,
  openLimiter,
  untilAway,
  untilBack,
} from './limiter-fixture.ts';

const thresholds = [80, 100];

let server: RedisServer;
beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server.stop());

describe.each(['redis', 'memory'] as const)('with the counts in %s', (store) => {
  const open = (options = {}) =>
    openLimiter({ thresholds, ...(store === 'redis' && { url: server.url }), ...options });

  it('a process reports each threshold of a key once, with the figures of the window, until it is confirmed', async () => {
    const limiter = open();
    const key = keyOf(1_000, 10);
    await decideInTurn(limiter, key, 9);
    expect(limiter.reported).toMatchObject([
      { keyId: key.id, plan: 'free', window: 'day', percent: 80, used: 8, limit: 10, resetMs: 0 },
    ]);
    const [first] = limiter.reported;
    if (first === undefined) throw new Error('no report');
    expect(first.source).toBe(store === 'redis' ? 'shared' : 'memory');
    expect(first.endsAtMs).toBeGreaterThan(Date.now());
    expect(await limiter.confirmTold(first)).toEqual({ kind: 'confirmed', isStored: true });
    await decideTogether(limiter, key, 5);
    expect(percentsOf(limiter)).toEqual([80, 100]);
  });

  it('a report that is not confirmed is repeated, and a confirmed report is not', async () => {
    let nowMs = Date.now();
    const limiter = open({ nowMs: () => nowMs });
    const key = keyOf(1_000, 10);
    await decideInTurn(limiter, key, 10);
    expect(percentsOf(limiter)).toEqual([80, 100]);
    nowMs += 59_000;
    await decideInTurn(limiter, key, 1);
    expect(percentsOf(limiter)).toEqual([80, 100]);
    nowMs += 2_000;
    await decideInTurn(limiter, key, 1);
    expect(percentsOf(limiter)).toEqual([80, 100, 80, 100]);
    for (const report of limiter.reported) await limiter.confirmTold(report);
    nowMs += 61_000;
    await decideInTurn(limiter, key, 1);
    expect(percentsOf(limiter)).toEqual([80, 100, 80, 100]);
  });

  it('a reset begins the thresholds anew', async () => {
    const limiter = open();
    const key = keyOf(1_000, 10);
    await decideInTurn(limiter, key, 8);
    for (const report of limiter.reported) await limiter.confirmTold(report);
    await limiter.adjust(key.id, { reset: true, bans: noBans });
    await decideInTurn(limiter, key, 8);
    expect(percentsOf(limiter)).toEqual([80, 80]);
    const [before, after] = limiter.reported;
    expect(after?.resetMs).toBeGreaterThan(before?.resetMs ?? 0);
  });

  it('a process remembers a limited number of reports', async () => {
    const limiter = open({ tuning: { reportedThresholdsMax: 2 } });
    const keys = [1, 2, 3].map(() => keyOf(1_000, 1));
    for (const key of keys) await decideInTurn(limiter, key, 1);
    const raised = keys.map((key) => ({ ...key, limits: limitsOf({ perMinute: 1_000, perDay: 2 }) }));
    const lowered = raised.map((key) => ({ ...key, limits: limitsOf({ perMinute: 999, perDay: 1 }) }));
    const before = limiter.reported.length;
    // The store decides a request if the limits of the key have changed. The process has forgotten the report on the first key.
    for (const key of [lowered[1], lowered[2]]) await decideInTurn(limiter, key as Key, 1);
    expect(limiter.reported.length).toBe(before);
    await decideInTurn(limiter, lowered[0] as Key, 1);
    expect(limiter.reported.length).toBe(before + 2);
  });
});

it('processes that share the counts report a threshold together until it is confirmed, and then no process does', async () => {
  const shared = { url: server.url, prefix: freshPrefix(), windowsMs: freshWindows(Date.now()) };
  const open = () => openLimiter({ ...shared, thresholds });
  const limiters = [open(), open(), open()];
  const key = keyOf(100_000, 1_000);
  await Promise.all(
    limiters.flatMap((limiter) => Array.from({ length: 100 }, () => limiter.decide(key, noBans, 5))),
  );
  await Promise.all(limiters.map((limiter) => decideInTurn(limiter, { ...key }, 3)));
  for (const limiter of limiters) expect(percentsOf(limiter)).toEqual([80, 100]);

  // This process was killed before it could confirm, or has started later.
  const next = open();
  await decideInTurn(next, key, 1);
  expect(percentsOf(next)).toEqual([80, 100]);
  for (const report of next.reported) await next.confirmTold(report);
  const last = open();
  await decideInTurn(last, key, 2);
  expect(percentsOf(last)).toEqual([]);
});

it('while Redis is away, each process reports a threshold once, and reports nothing again when Redis is back', async () => {
  const prefix = freshPrefix();
  const windowsMs = { hour: 86_400_000, day: 86_400_000, month: 86_400_000 };
  const shared = { tuning: steadyStore, url: server.url, prefix, windowsMs, thresholds };
  const [one, other] = [openLimiter(shared), openLimiter(shared)];
  const key = keyOf(100_000, 10);
  await decideInTurn(one, key, 5);
  server.freeze();
  try {
    await untilAway(one, other);
    await decideInTurn(one, key, 5);
    await decideInTurn(one, key, 5);
    await decideInTurn(other, key, 9);
    expect(reportsOn(one, key)).toMatchObject([
      { percent: 80, source: 'local', used: 8 },
      { percent: 100, source: 'local', used: 10 },
    ]);
    expect(percentsOf(other, key)).toEqual([80]);
  } finally {
    server.thaw();
  }
  await untilBack(one, other);
  await decideInTurn(one, key, 1);
  expect(percentsOf(one, key)).toEqual([80, 100]);
  for (const report of reportsOn(one, key)) {
    expect(await one.confirmTold(report)).toMatchObject({ kind: 'confirmed', isStored: true });
  }
  const next = openLimiter(shared);
  await decideInTurn(next, key, 1);
  expect(percentsOf(next)).toEqual([]);
});

it('a threshold that is reached by decisions without Redis is also reported by the report of these decisions', async () => {
  const prefix = freshPrefix();
  const shared = { tuning: steadyStore, url: server.url, prefix, thresholds };
  const [one, other] = [openLimiter(shared), openLimiter(shared)];
  const key = keyOf(100_000, 10);
  await decideInTurn(one, key, 4);
  await decideInTurn(other, key, 1);
  server.freeze();
  try {
    await untilAway(one, other);
    // Each process alone stays below the threshold.
    await decideInTurn(one, key, 2);
    await decideInTurn(other, key, 2);
    expect([...percentsOf(one, key), ...percentsOf(other, key)]).toEqual([]);
  } finally {
    server.thaw();
  }
  await untilBack(one, other);
  const reported = () => [...percentsOf(one, key), ...percentsOf(other, key)];
  await expect.poll(reported, { timeout: 30_000 }).toEqual([80]);
});

/** The percentages that a limiter has reported, for all keys or for one key. `untilAway` uses other keys. */
function percentsOf(limiter: LoggedLimiter, key?: Key): number[] {
  return reportsOn(limiter, key).map(({ percent }) => percent);
}

function reportsOn({ reported }: LoggedLimiter, key?: Key): readonly QuotaThreshold[] {
  return reported.filter(({ keyId }) => key === undefined || keyId === key.id);
}
