import { expect, it, onTestFinished } from 'vitest';
import { createPresence } from '../../gateway/fleet/presence.ts';
import { openRedis } from '../../gateway/redis/open-redis.ts';
import { inspect } from '../support/inspect.ts';
import { processState } from '../support/process-state.ts';
import { freshPrefix, redisUrl } from '../support/redis.ts';
import { startRedis } from '../support/start-redis.ts';
import { tunedBounds } from '../support/tuned-bounds.ts';
import { patientStore } from '../support/tuning.ts';

const bounds = tunedBounds({ ...patientStore, presenceIntervalMs: 50 });

function startPresence(id: string, redis: { url: string; prefix: string }, own = bounds) {
  const records = openRedis(redis, own);
  const presence = createPresence({ records, processId: id, own: () => [processState(id)], bounds: own });
  presence.start();
  onTestFinished(async () => {
    await presence.close();
    records.close();
  });
  return {
    presence,
    /** Imitates a killed process, which sends no last report. */
    vanish: () => records.close(),
    ids: async () => (await presence.read()).processes.map((process) => process.id),
  };
}

it('every process lists all processes, a killed process until its expiry and a closed one no longer', async () => {
  const shared = { url: redisUrl(), prefix: freshPrefix() };
  const short = { ...bounds, presenceExpiryMs: 3_000 };
  const [a, b, c] = ['a', 'b', 'c'].map((id) => startPresence(id, shared, short));
  if (!a || !b || !c) throw new Error('three were made');
  for (const one of [a, b, c]) await expect.poll(one.ids).toEqual(['a', 'b', 'c']);
  c.vanish();
  await expect.poll(a.ids).toEqual(['a', 'b']);
  await b.presence.close();
  expect(await a.ids()).toEqual(['a']);
});

it('a process without a reachable Redis lists only itself', async () => {
  const alone = createPresence({
    records: undefined,
    processId: 'm',
    own: () => [processState('m')],
    bounds,
  });
  expect(await alone.read()).toEqual({
    isComplete: true,
    answeredBy: 'm',
    processes: [{ ...processState('m'), ageMs: 0 }],
  });

  const server = await startRedis();
  onTestFinished(() => server.stop());
  const shared = { url: server.url, prefix: freshPrefix() };
  const [a, b] = [startPresence('a', shared), startPresence('b', shared)];
  await expect.poll(a.ids).toEqual(['a', 'b']);
  await server.kill();
  await expect.poll(async () => (await a.presence.read()).isComplete).toBe(false);
  expect(await a.ids()).toEqual(['a']);
  await server.restart();
  for (const one of [a, b]) await expect.poll(one.ids).toEqual(['a', 'b']);
});

it('a process of another version does not prevent the list of all other processes', async () => {
  const shared = { url: redisUrl(), prefix: freshPrefix() };
  const [a, b] = [startPresence('a', shared), startPresence('b', shared)];
  await expect.poll(a.ids).toEqual(['a', 'b']);
  const redis = inspect(shared.url);
  onTestFinished(() => redis.disconnect());
  const [hash, set] = [`${shared.prefix}:fleet:{processes}`, `${shared.prefix}:fleet:{processes}:seen`];
  const strange = [
    '',
    '{',
    'null',
    '[]',
    '{"id":"x"}',
    '{"id":"x","upstreams":[{}]}',
    '{"id":1,"upstreams":[]}',
  ];
  for (const [index, text] of strange.entries()) {
    await redis.hset(hash, `x${index}`, text);
    await redis.zadd(set, Date.now(), `x${index}`);
  }
  expect(await b.ids()).toEqual(['a', 'b']);
});

it('the list keeps at most the maximum number of processes, and the data in Redis expires', async () => {
  const shared = { url: redisUrl(), prefix: freshPrefix() };
  const few = { ...bounds, presenceProcessesMax: 3 };
  const all = Array.from({ length: 6 }, (_, index) => startPresence(`p${index}`, shared, few));
  const redis = inspect(shared.url);
  onTestFinished(() => redis.disconnect());
  const names = async () => (await redis.keys(`${shared.prefix}*`)).sort();
  const seen = `${shared.prefix}:fleet:{processes}:seen`;
  const states = all.map((_, index) => `${shared.prefix}:fleet:{processes}:state:p${index}`);
  await expect.poll(names).toEqual([seen, ...states]);
  for (let look = 0; look < 20; look++) {
    expect(await redis.zcard(seen)).toBeLessThanOrEqual(3);
    for (const name of [seen, ...states]) {
      const expiresMs = await redis.pttl(name);
      expect(expiresMs).toBeGreaterThanOrEqual(0);
      expect(expiresMs).toBeLessThanOrEqual(few.presenceExpiryMs);
    }
  }
  expect((await all[0]?.presence.read())?.processes.length).toBeLessThanOrEqual(4);
});

it('a process of a large fleet lists all processes and all unhealthy targets, and the healthy targets of some processes', async () => {
  const shared = { url: redisUrl(), prefix: freshPrefix() };
  const large = { ...bounds, presenceDetailedMax: 10, presenceReadAtOnce: 7, presenceIntervalMs: 600_000 };
  const reader = startPresence('reader', shared, large);
  const redis = inspect(shared.url);
  onTestFinished(() => redis.disconnect());
  const target = { inFlight: 0, tunnels: 0, full: false, sinceAt: '2026-11-22T00:00:00.000Z' };
  const targets = [true, true, false].map((healthy, index) => ({
    ...target,
    address: `t:${index}`,
    healthy,
  }));
  const ids = Array.from({ length: 2_000 }, (_, index) => `p${String(index).padStart(4, '0')}`);
  const pipeline = redis.pipeline();
  for (const id of ids) {
    const state = processState(id, { upstreams: [{ name: 'default', url: 'http://t', targets }] });
    pipeline.set(`${shared.prefix}:fleet:{processes}:state:${id}`, JSON.stringify(state));
    pipeline.zadd(`${shared.prefix}:fleet:{processes}:seen`, Date.now() + 60_000, id);
  }
  await pipeline.exec();
  const [one, other] = await Promise.all([reader.presence.read(), reader.presence.read()]);
  expect(one).toEqual(other);
  const listed = one.processes.filter(({ id }) => id !== 'reader');
  expect(listed.map(({ id }) => id)).toEqual(ids);
  const shown = listed.map(({ upstreams: [upstream] }) => [
    upstream?.targets.length,
    upstream?.omittedTargets,
  ]);
  expect(shown.slice(0, 10)).toEqual(Array(10).fill([3, undefined]));
  expect(shown.slice(10)).toEqual(Array(1_990).fill([1, 2]));
});
