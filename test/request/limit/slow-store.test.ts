import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { Decision } from '../../../gateway/shared/model.ts';
import { inspect } from '../../support/inspect.ts';
import { type RedisServer, startRedis } from '../../support/start-redis.ts';
import { startTcpRelay, type TcpRelay } from '../../support/tcp-relay.ts';
import { tunedBounds } from '../../support/tuned-bounds.ts';
import { steadyStore } from '../../support/tuning.ts';
import { until } from '../../support/until.ts';
import {
  count,
  dayUsed,
  decideInTurn,
  decideTogether,
  expectOneOutage,
  keyOf,
  openLimiter,
  openLimiters,
  untilBack,
} from './limiter-fixture.ts';

/** The silence timeout is longer than the delay of a late reply, so the connection never counts as silent. */
const tuning = { ...steadyStore, storeSilenceMaxMs: 20_000 };
const bounds = tunedBounds(tuning);
const inTime = { toServerMs: 50, toClientMs: 50 };
const late = { toServerMs: bounds.storeDeadlineMs, toClientMs: bounds.storeDeadlineMs };
const atOnce = { toServerMs: 0, toClientMs: 0 };

let server: RedisServer;
let inspector: Redis;
let relay: TcpRelay;
let url: string;
beforeEach(async () => {
  server = await startRedis();
  inspector = inspect(server.url);
  relay = await startTcpRelay(server.port);
  url = `redis://127.0.0.1:${relay.port}`;
});
afterEach(async () => {
  inspector.disconnect();
  await relay.stop();
  await server.stop();
});

it('a Redis that replies slowly but in time decides every request, exactly', async () => {
  const { limiters } = openLimiters(2, url);
  relay.delay(inTime);
  const key = keyOf(40, 1_000);
  const turns = limiters.flatMap((limiter) =>
    Array.from({ length: 5 }, async (_, turn) => {
      await sleep(20 * turn);
      return decideTogether(limiter, key, 10);
    }),
  );
  const decisions = (await Promise.all(turns)).flat();
  expect(new Set(decisions.map(({ source }) => source))).toEqual(new Set(['shared']));
  expect([count(decisions, 'admitted'), count(decisions, 'refused')]).toEqual([40, 60]);
  expect(limiters.flatMap(({ logged }) => logged)).toEqual([]);
});

it('every request is decided locally while Redis replies too late; the outage begins and ends once, and no request is charged twice', async () => {
  const { limiters, prefix } = openLimiters(2, url, tuning);
  const roomy = keyOf(1_000_000, 1_000_000);
  const tight = keyOf(1_000_000, 40);
  const admitted = { roomy: 0, tight: 0 };
  const ask = async (requests: number): Promise<Decision[]> => {
    const both = limiters.map(async (limiter) => {
      const [free, scarce] = await Promise.all([
        decideTogether(limiter, roomy, requests),
        decideTogether(limiter, tight, requests),
      ]);
      admitted.roomy += count(free, 'admitted');
      admitted.tight += count(scarce, 'admitted');
      return [...free, ...scarce];
    });
    return (await Promise.all(both)).flat();
  };
  await ask(5);
  relay.delay(late);
  // Ten rounds of this loop last long enough for several probes of Redis. Each probe waits until the deadline.
  for (let turn = 0; turn < 10; turn++) {
    const decisions = await ask(3);
    expect(new Set(decisions.map(({ source }) => source))).toEqual(new Set(['local']));
    await sleep(0.3 * bounds.storeDeadlineMs);
  }
  const logged = limiters.map((limiter) => limiter.logged.map(({ msg, reason }) => [msg, reason]));
  expect(logged).toEqual(limiters.map(() => [['Redis is away', 'no reply within the deadline']]));
  relay.delay(atOnce);
  await untilBack(...limiters);
  await until('all is shared', async () => (await ask(1)).every(({ source }) => source === 'shared'));
  expectOneOutage(limiters);

  // All late calls have run, so Redis counts exactly the admitted requests.
  await until('all is written back', async () => {
    await ask(1);
    const counted = await Promise.all([dayUsed(inspector, prefix, roomy), dayUsed(inspector, prefix, tight)]);
    return counted[0] === admitted.roomy && counted[1] === admitted.tight;
  });
  expect(admitted.tight).toBeGreaterThanOrEqual(40);
  expect(admitted.tight).toBeLessThanOrEqual(40 + 2 * 40);
});

it('requests under `refuse` are refused as unavailable while Redis replies too late', async () => {
  const limiter = openLimiter({ tuning, url, onFailure: 'refuse' });
  const key = keyOf(100, 100);
  await decideInTurn(limiter, key, 1);
  relay.delay(late);
  const decisions = await decideInTurn(limiter, key, 20);
  expect(count(decisions, 'unavailable')).toBe(20);
  relay.delay(atOnce);
  await untilBack(limiter);
  expect((await decideInTurn(limiter, key, 1))[0]).toMatchObject({ kind: 'admitted', source: 'shared' });
});

it('a Redis that is fast when idle and too slow under load needs more successful probes after every further failure', async () => {
  // The deadline may be short, because this test passes even if a busy machine causes further outages.
  const limiter = openLimiter({ url, tuning: { ...steadyStore, storeDeadlineMs: 150 } });
  const keys = Array.from({ length: 50 }, () => keyOf(1_000_000, 1_000_000));
  const ask = () => Promise.all(keys.map((key) => decideTogether(limiter, key, 1)));
  const returns = () => limiter.logged.filter(({ msg }) => msg === 'Redis is back');
  await ask();
  // A probe takes almost no time, but the calls of 50 keys take longer than the deadline.
  relay.throttle(20);
  const untilThreeReturns = async () => {
    await ask();
    return returns().length >= 3;
  };
  await until('Redis has come back three times', untilThreeReturns);
  // The first outage ends after at least one probe, the second after two, and the third after four. The duration of an outage is at least
  // the sum of the pauses between its probes. Timers may fire slightly early.
  const [, second, third] = returns().map(({ awayMs }) => Number(awayMs) / bounds.storeProbeIntervalMs);
  expect(second).toBeGreaterThan(1 - 0.1);
  expect(third).toBeGreaterThan(3 - 0.1);
});
