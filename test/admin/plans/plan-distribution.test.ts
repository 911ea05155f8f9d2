import { expect, it, onTestFinished } from 'vitest';
import { bucketsOf, createPlanDistributions } from '../../../gateway/admin/plans/plan-distribution.ts';
import { openRedis } from '../../../gateway/redis/open-redis.ts';
import type { Decision, Settings } from '../../../gateway/shared/model.ts';
import { createUsage, type Usage } from '../../../gateway/usage/usage.ts';
import { askAdmin, makeToken } from '../../support/admin-client.ts';
import { startGatewayHere } from '../../support/gateway-here.ts';
import { makeKey, testConfig } from '../../support/gateway-process.ts';
import { startRecordingBackend } from '../../support/recording-backend.ts';
import { freshPrefix, redisUrl } from '../../support/redis.ts';
import { settingsOf } from '../../support/settings-of.ts';
import { stopClock } from '../../support/stopped-clock.ts';
import { tunedBounds } from '../../support/tuned-bounds.ts';
import { patientStore } from '../../support/tuning.ts';
import { until } from '../../support/until.ts';

const minuteMs = 60_000;
const dayMs = 86_400_000;
const bounds = tunedBounds({ ...patientStore, planDistributionTimeoutMs: 60_000 });
const upstream = { url: 'http://127.0.0.1:1' };
const plans = { free: { perMinute: 60, perDay: 1_000 }, paid: { perMinute: 600 } };

it('a distribution counts keys on a scale of 1, 2, 5, 10, …, and each bound begins its bucket', () => {
  expect(bucketsOf([])).toEqual([]);
  expect(bucketsOf([0, 0])).toEqual([]);
  expect(bucketsOf([1, 2, 4, 5, 0])).toEqual([
    { from: 1, to: 2, keys: 1 },
    { from: 2, to: 5, keys: 2 },
    { from: 5, to: 10, keys: 1 },
  ]);
  expect(bucketsOf([10, 99, 100])).toEqual([
    { from: 10, to: 20, keys: 1 },
    { from: 20, to: 50, keys: 0 },
    { from: 50, to: 100, keys: 1 },
    { from: 100, to: 200, keys: 1 },
  ]);
  // One value equals the limit, and one value exceeds the limit.
  expect(bucketsOf([60, 61, 100], 60)).toEqual([
    { from: 50, to: 61, keys: 1 },
    { from: 61, to: 100, keys: 1 },
    { from: 100, to: 200, keys: 1 },
  ]);
  expect(bucketsOf([49, 50], 49)).toEqual([
    { from: 20, to: 50, keys: 1 },
    { from: 50, to: 100, keys: 1 },
  ]);
  expect(bucketsOf([10 ** 12])).toEqual([{ from: 10 ** 12, to: 2 * 10 ** 12, keys: 1 }]);
});

/** Counts a request that was decided at a given time. */
function count(
  usage: Usage,
  keyId: string,
  atMs: number,
  kind: 'admitted' | 'refused' = 'admitted',
  units = 1,
): void {
  const inForce = { name: 'minute', limit: 60, remaining: 1, resetMs: 0, windowSeconds: 60 } as const;
  const rateLimit = { nowMs: atMs, windows: [inForce], inForce };
  usage.recorder.decided(
    keyId,
    { kind, units, rateLimit, source: 'shared' } as Decision,
    '192.0.2.1',
    '01234567',
  );
}

async function recordIn(redis: boolean, settings: Settings, nowMs: () => number) {
  const records = redis ? openRedis({ url: redisUrl(), prefix: freshPrefix() }, bounds) : undefined;
  if (records) await until('Redis is available', () => records.isReady(''));
  const usage = createUsage({ ...(records && { redis: records }), keepDays: 8, minuteMs, nowMs, bounds });
  onTestFinished(async () => {
    await usage.close();
    records?.close();
  });
  const distributionWith = (own: Partial<typeof bounds> = {}) =>
    createPlanDistributions({ settings: () => settings, usage, nowMs, bounds: { ...bounds, ...own } });
  return { usage, distributionWith };
}

it('the limit of a distribution is the limit of all operations, and not the limit of a group', async () => {
  const groups = { reports: { operations: ['listPets'], perMinute: 5, perDay: 50 } };
  const settings = await settingsOf({ upstream, plans: { free: { perDay: 1_000, groups } } });
  const { distributionWith } = await recordIn(false, settings, Date.now);
  const { minute, day } = (await distributionWith()('free', 24)) ?? {};
  expect([minute?.limit, day?.limit]).toEqual([undefined, 1_000]);
});

it.each([
  ['in memory', false],
  ['in Redis', true],
])('a distribution has every minute of the last hours, across midnight, %s', async (_where, redis) => {
  const [calm, greedy, idle, paid] = [{}, {}, {}, { plan: 'paid' }].map((own) =>
    makeKey({ plan: 'free', ...own }),
  );
  if (!calm || !greedy || !idle || !paid) throw new Error('four were made');
  const keys = [calm, greedy, idle, paid].map((one) => one.entry);
  const settings = await settingsOf({ upstream, plans, keys });
  // It is half past midnight, so the last 24 hours begin yesterday.
  const nowMs = Math.floor(Date.now() / dayMs) * dayMs + 30 * minuteMs + 10_000;
  const { usage, distributionWith } = await recordIn(redis, settings, () => nowMs);
  const at = (hours: number, minutes = 0) => nowMs - hours * 60 * minuteMs - minutes * minuteMs;
  count(usage, calm.entry.id, at(25));
  for (let request = 0; request < 3; request++) count(usage, calm.entry.id, at(2));
  count(usage, calm.entry.id, at(0));
  // The requests in the first minute of the period, and in the minute before it.
  for (let request = 0; request < 60; request++) count(usage, greedy.entry.id, at(24, -1));
  for (let request = 0; request < 200; request++) count(usage, greedy.entry.id, at(24));
  for (let request = 0; request < 50; request++) count(usage, greedy.entry.id, at(23));
  for (let request = 0; request < 70; request++) {
    count(usage, greedy.entry.id, at(1), request < 60 ? 'admitted' : 'refused');
  }
  count(usage, paid.entry.id, at(1), 'admitted', 5);

  const read = distributionWith();
  expect(await read('free', 24)).toEqual({
    plan: 'free',
    hours: 24,
    keys: 3,
    activeKeys: 2,
    examinedKeys: 2,
    refusedKeys: 1,
    minute: {
      limit: 60,
      buckets: [
        { from: 2, to: 5, keys: 1 },
        { from: 5, to: 10, keys: 0 },
        { from: 10, to: 20, keys: 0 },
        { from: 20, to: 50, keys: 0 },
        { from: 50, to: 61, keys: 0 },
        { from: 61, to: 100, keys: 1 },
      ],
    },
    day: {
      limit: 1_000,
      buckets: [
        { from: 2, to: 5, keys: 1 },
        { from: 5, to: 10, keys: 0 },
        { from: 10, to: 20, keys: 0 },
        { from: 20, to: 50, keys: 0 },
        { from: 50, to: 100, keys: 0 },
        { from: 100, to: 200, keys: 1 },
      ],
    },
  });
  const ofFive = [{ from: 5, to: 10, keys: 1 }];
  expect(await read('paid', 24)).toMatchObject({
    ...{ keys: 1, activeKeys: 1, hasCosts: true },
    minute: { limit: 600, buckets: ofFive },
    day: { buckets: ofFive },
  });
  const lastHour = await read('free', 1);
  expect(lastHour?.day.buckets).toEqual([{ from: 1, to: 2, keys: 1 }]);
});

it('a distribution is cached for a moment, so that a repeated request reads nothing, and is then computed again', async () => {
  const key = makeKey({ plan: 'free' });
  const settings = await settingsOf({ upstream, plans, keys: [key.entry] });
  const { usage, distributionWith } = await recordIn(false, settings, Date.now);
  const planDistributionKeptMs = 600_000;
  const read = distributionWith({ planDistributionKeptMs });
  count(usage, key.entry.id, Date.now());
  const totals = async () => (await read('free', 24))?.day.buckets.map(({ from }) => from);
  expect(await totals()).toEqual([1]);
  count(usage, key.entry.id, Date.now());
  expect(await totals()).toEqual([1]);
  stopClock().pass(planDistributionKeptMs);
  expect(await totals()).toEqual([2]);
});

it('a distribution that runs out of time states how many keys it has read', async () => {
  const keys = Array.from({ length: 120 }, () => makeKey({ plan: 'free' }));
  const settings = await settingsOf({ upstream, plans, keys: keys.map((one) => one.entry) });
  const { usage, distributionWith } = await recordIn(false, settings, Date.now);
  for (const { entry } of keys) count(usage, entry.id, Date.now());
  expect(await distributionWith({ planDistributionTimeoutMs: 0 })('free', 24)).toMatchObject({
    keys: 120,
    activeKeys: 120,
    examinedKeys: 0,
    minute: { buckets: [] },
  });
  expect(await distributionWith()('free', 24)).toMatchObject({ activeKeys: 120, examinedKeys: 120 });
});

it('the admin API gives the distribution of a plan, and 404 for an unknown plan', async () => {
  const { token, entry } = makeToken('read');
  const key = makeKey({ plan: 'free' });
  const backend = await startRecordingBackend();
  onTestFinished(() => backend.close());
  const gateway = await startGatewayHere(
    testConfig({
      upstream: { url: backend.url, health: '/healthz' },
      plans,
      keys: [key.entry],
      redis: { url: redisUrl(), prefix: freshPrefix() },
      admin: { host: '127.0.0.1', port: 0, tokens: [entry] },
    }),
    { tuning: { bounds } },
  );
  onTestFinished(async () => void (await gateway.stop('SIGKILL')));
  const headers = { authorization: `Bearer ${key.secret}` };
  for (let request = 0; request < 7; request++) await fetch(`${gateway.baseUrl}/pets`, { headers });
  const ask = (path: string) =>
    askAdmin(Number(new URL(gateway.adminUrl).port), `/api/v1/plans${path}`, { token });
  const { status, body } = await ask('/free/distribution');
  expect([status, body.activeKeys, body.day.buckets]).toEqual([200, 1, [{ from: 5, to: 10, keys: 1 }]]);
  expect((await ask('/gold/distribution')).status).toBe(404);
  expect((await ask('/free/distribution?hours=25')).status).toBe(400);
});
