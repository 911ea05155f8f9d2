import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { pino } from 'pino';
import { expect, it } from 'vitest';
import { replayKey } from '../../../../gateway/capabilities/simulate/replay/replay-key.ts';
import { toLimitFields, toLimits } from '../../../../gateway/keys/limits/limit-fields.ts';
import { openRedis } from '../../../../gateway/redis/open-redis.ts';
import type { WindowsMs } from '../../../../gateway/shared/calendar-windows.ts';
import { createUsage } from '../../../../gateway/usage/usage.ts';
import { createGateway } from '../../../support/create-gateway.ts';
import { makeKey } from '../../../support/gateway-process.ts';
import { freshPrefix, redisUrl } from '../../../support/redis.ts';
import { settingsOf } from '../../../support/settings-of.ts';
import { tunedBounds } from '../../../support/tuned-bounds.ts';
import { patientStore } from '../../../support/tuning.ts';
import { until } from '../../../support/until.ts';
import { editedOnce } from './twin-keys.ts';

/** Each window ends several times in the few seconds of this test, on the clock of Redis. */
const windowsMs: WindowsMs = { second: 50, minute: 150, hour: 450, day: 1_350, month: 2_700 };
const calendar = { minuteMs: windowsMs.minute, windowsMs };
const bounds = tunedBounds({
  windowsMs,
  ...patientStore,
  // The gateways send their last counts when they stop.
  usageCloseTimeoutMs: 20_000,
  storeCloseTimeoutMs: 20_000,
});

const max = (most: number) => fc.option(fc.integer({ min: 1, max: most }), { nil: undefined });
const limits = fc
  .record({ perMinute: max(6), perHour: max(12), perDay: max(30), perMonth: max(50) })
  .map(toLimits)
  .filter((stated) => stated.length > 0);

it('the simulator reproduces two gateways on one Redis with random plans and very short windows', async () => {
  const plans = fc.sample(limits, 12).map((stated, index) => ({ name: `plan-${index}`, stated }));
  const keys = plans.map(({ name, stated }) => ({
    stated,
    ...makeKey({ id: `key-of-${name}`, plan: name }),
  }));
  const redis = { url: redisUrl(), prefix: freshPrefix() };
  const settings = await settingsOf({
    redis,
    plans: Object.fromEntries(plans.map(({ name, stated }) => [name, toLimitFields(stated)])),
    keys: keys.map(({ entry }) => entry),
    upstream: { url: 'http://127.0.0.1:1' },
    bans: { after: 1_000_000 },
  });
  const log = { logger: pino({ level: 'silent' }), access: () => {} };
  const gateways = [1, 2].map(() => createGateway({ settings, log, bounds }));
  const started = await Promise.all(gateways.map((gateway) => gateway.start()));
  const startMs = Date.now();
  const admitted = new Map<string, number>();
  let refused = 0;
  const send = async (index: number) => {
    const { secret, entry } = keys[index % keys.length] ?? { secret: '', entry: { id: '' } };
    const port = started[index % 2]?.listen.port;
    const headers = { authorization: `Bearer ${secret}` };
    const response = await fetch(`http://127.0.0.1:${port}/v1/nothing`, { headers });
    await response.arrayBuffer();
    if (response.status === 404) admitted.set(entry.id, (admitted.get(entry.id) ?? 0) + 1);
    if (response.status === 429) refused += 1;
  };
  // The loop continues until requests were refused, because limits that are never exhausted would not test
  // the simulator.
  while (Date.now() < startMs + 4_000 || refused <= 50) {
    const burst = Array.from({ length: Math.floor(Math.random() * 12) }, () =>
      Math.floor(Math.random() * 120),
    );
    await Promise.all(burst.map(send));
    await sleep(Math.random() * 20);
  }
  await Promise.all(gateways.map((gateway) => gateway.drain({ graceMs: 0 })));

  const records = openRedis(redis, bounds);
  await until('Redis is available', () => records.isReady(''));
  const usage = createUsage({
    redis: records,
    keepDays: 8,
    minuteMs: windowsMs.minute,
    nowMs: Date.now,
    bounds,
  });
  const period = { fromMs: startMs - 10_000, toMs: Date.now() + 10_000 };
  const read = await usage.reader.minutesOf(
    keys.map(({ entry }) => entry.id),
    period,
  );
  await usage.close();
  records.close();

  let refusals = 0;
  for (const [index, { entry, stated }] of keys.entries()) {
    const minutes = read?.[index];
    if (minutes === undefined) throw new Error('there is a record');
    const terms = editedOnce(stated, stated, settings.bans);
    const differences: unknown[] = [];
    const replayed: number[] = [];
    const verdict = replayKey({ minutes, fromMinute: 0, ...terms }, calendar, {
      onDifference: (...difference) => differences.push(difference),
      onMinute: (_minute, requests) => replayed.push(requests),
    });
    expect([entry.id, differences]).toEqual([entry.id, []]);
    expect([entry.id, replayed]).toEqual([entry.id, [...minutes.admitted]]);
    expect(verdict.offered - verdict.refusedThen).toBe(admitted.get(entry.id) ?? 0);
    refusals += verdict.replayedRefusals;
  }
  expect(refusals).toBeGreaterThan(50);
});
