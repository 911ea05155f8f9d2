import { afterAll, beforeAll, expect, it } from 'vitest';
import { redisKeys } from '../../../../gateway/redis/redis-keys.ts';
import { createRedisQuotaStore } from '../../../../gateway/request/limit/store/redis-quota-store.ts';
import { type RedisSubject, redisSubject } from '../../../contract/redis-subject.ts';
import { inspect } from '../../../support/inspect.ts';
import { oneRun } from '../../../support/one-run.ts';
import { type RedisServer, startRedis } from '../../../support/start-redis.ts';

const windowsMs = { second: 1_000, minute: 60_000, hour: 3_600_000, day: 86_400_000, month: 0 };
const bans = { after: 100, withinMs: 60_000, forMs: 60_000, maxMs: 86_400_000 };
const callOf = (keyId: string, requests = 1) => ({
  keyId,
  limits: [{ window: 'day' as const, max: 10 }],
  bans,
  runs: oneRun(requests),
});

let server: RedisServer;
let subject: RedisSubject;
beforeAll(async () => {
  server = await startRedis();
  subject = await redisSubject(createRedisQuotaStore, { url: server.url });
});
afterAll(async () => {
  await subject.close();
  await server.stop();
});

it('foreign data under the name of one key fails only this key of a batch', async () => {
  const store = await subject.open(windowsMs);
  const inspector = inspect(server.url);
  await inspector.set(redisKeys.quota.name(subject.prefix, 'broken'), 'no hash');
  for (const order of [['broken', 'a', 'b'], ['c', 'broken', 'd'], ['e', 'f', 'broken'], ['broken']]) {
    const replies = await store.decide(order.map((keyId) => callOf(keyId)));
    expect(replies).toEqual(
      order.map((keyId) =>
        keyId === 'broken'
          ? {
              kind: 'failed',
              mayHaveRun: false,
              reason: expect.stringContaining('WRONGTYPE'),
              keyOnly: true,
            }
          : { kind: 'decided', outcome: expect.objectContaining({ admitted: 1 }) },
      ),
    );
  }
  inspector.disconnect();
});

it('a field that is no number fails only its key', async () => {
  const store = await subject.open(windowsMs);
  const inspector = inspect(server.url);
  await store.decide([callOf('junk')]);
  await inspector.hset(redisKeys.quota.name(subject.prefix, 'junk'), 'dayUsed', 'many');
  const [before, junk, after] = await store.decide([callOf('before'), callOf('junk'), callOf('after')]);
  const decided = { kind: 'decided', outcome: expect.objectContaining({ admitted: 1 }) };
  expect([before, after]).toEqual([decided, decided]);
  expect(junk).toEqual({
    kind: 'failed',
    mayHaveRun: false,
    reason: expect.stringContaining('dayUsed'),
    keyOnly: true,
  });
  inspector.disconnect();
});

it('no key of a batch is charged while Redis is out of memory', async () => {
  const store = await subject.open(windowsMs);
  const inspector = inspect(server.url);
  const calls = [callOf('full-a', 3), callOf('full-b', 4), callOf('full-c', 5)];
  await inspector.config('SET', 'maxmemory', '1');
  const replies = await store.decide(calls);
  await inspector.config('SET', 'maxmemory', '0');
  const failed = { kind: 'failed', mayHaveRun: false, reason: expect.stringContaining('OOM') };
  expect(replies).toEqual([failed, failed, failed]);
  const read = await store.read(calls.map(({ keyId }) => keyId));
  expect(read).toMatchObject({ kind: 'read', states: calls.map(() => ({ dayUsed: 0 })) });
  inspector.disconnect();
});

it('keys beyond the size of one call are all decided, each with its own reply', async () => {
  const store = await subject.open(windowsMs);
  const calls = Array.from({ length: 8 }, (_, index) => callOf(`many-${index}`, index));
  const replies = await store.decide(calls);
  expect(replies).toMatchObject(calls.map(({ runs }) => ({ outcome: { admitted: runs[0].requests } })));
});

it('a change of the counts changes nothing while Redis is out of memory', async () => {
  const store = await subject.open(windowsMs);
  const inspector = inspect(server.url);
  const name = redisKeys.quota.name(subject.prefix, 'full');
  const before = { day: '7', dayUsed: '9', strikes: '3', grant: '1795 day 5 leaked 1795', told: 'day 7 80' };
  await inspector.hset(name, before);
  await inspector.config('SET', 'maxmemory', '1');
  const changes = [
    { reset: true, bans },
    { lift: true, bans, grant: 'none' },
    { units: [['day', 7, 2]] },
  ] as const;
  for (const change of changes)
    expect(await store.adjust('full', change)).toMatchObject({ kind: 'failed', mayHaveRun: false });
  await inspector.config('SET', 'maxmemory', '0');
  expect(await inspector.hgetall(name)).toEqual(before);
  expect(await inspector.pttl(name)).toBe(-1);
  inspector.disconnect();
});
