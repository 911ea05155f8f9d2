import { pino } from 'pino';
import { expect, it, onTestFinished } from 'vitest';
import { createThresholdEvents } from '../../../gateway/capabilities/webhooks/events/threshold-events.ts';
import { createNotify } from '../../../gateway/capabilities/webhooks/notify.ts';
import type { QuotaThreshold } from '../../../gateway/fleet/kinds/key-notices.ts';
import type { Bounds } from '../../../gateway/shared/timeouts-and-sizes.ts';
import {
  decideInTurn,
  keyOf,
  openLimiter,
  untilAway,
  untilBack,
} from '../../request/limit/limiter-fixture.ts';
import { connectRedis } from '../../support/connect-redis.ts';
import { freshPrefix } from '../../support/redis.ts';
import { startRedis } from '../../support/start-redis.ts';
import { tunedBounds } from '../../support/tuned-bounds.ts';
import { steadyStore } from '../../support/tuning.ts';
import { until } from '../../support/until.ts';

/** The tests do not start the sender, so the receiver gets no event. */
const receiver = {
  id: 'aaaaaaaaaaaa',
  url: 'http://127.0.0.1:1/',
  secrets: [`whsec_${'a'.repeat(32)}`],
  events: ['quota.threshold'] as const,
  at: [80, 100],
};

async function openEvents(tuning: Partial<Bounds>) {
  const redis = await startRedis();
  onTestFinished(() => redis.stop());
  const prefix = freshPrefix();
  const limiter = openLimiter({ url: redis.url, prefix, tuning: steadyStore, thresholds: [80, 100] });
  const bounds = tunedBounds({ ...steadyStore, ...tuning });
  const connection = await connectRedis({ prefix, place: { url: redis.url }, bounds });
  const notify = createNotify({
    receivers: [receiver],
    redis: connection,
    planOf: () => Promise.resolve(undefined),
    processId: 'p1',
    nowMs: limiter.storeNowMs,
    log: pino({ level: 'silent' }),
    bounds,
  });
  onTestFinished(async () => {
    await notify.close();
    connection.close();
  });
  const events = createThresholdEvents({ notify, limiter, bounds });
  return { redis, limiter, notify, events };
}

it('a threshold is marked in the counts of its key when the queue has its event', async () => {
  const { limiter, notify, events } = await openEvents({});
  const key = keyOf(1_000, 10);
  await decideInTurn(limiter, key, 10);
  for (const report of limiter.reported) await events.record(report);
  expect((await notify.queue.counts())?.events).toBe(2);
  for (const report of limiter.reported) {
    expect(await limiter.confirmTold({ ...report, percent: 1 })).toMatchObject({ isStored: true });
  }
  await limiter.adjust(key.id, { reset: true, bans: { after: 1, withinMs: 1, forMs: 1, maxMs: 60_000 } });
  await decideInTurn(limiter, key, 10);
  for (const report of limiter.reported) await events.record(report);
  expect((await notify.queue.counts())?.events).toBe(4);
});

it('a report is merged until the window ends if the counts of the key do not have its mark', async () => {
  const { limiter, notify, events } = await openEvents({ thresholdMergedMs: 1 });
  // Redis does not have the counts of this key yet, as after decisions without Redis.
  const threshold: QuotaThreshold = {
    ...{ kind: 'quota_threshold', keyId: 'acme', plan: 'free', window: 'day', index: 20_000, percent: 80 },
    ...{ used: 8, limit: 10, resetMs: 0, endsAtMs: limiter.storeNowMs() + 600_000, source: 'local' },
  };
  await events.record(threshold);
  // Each report takes several calls to Redis, so more than a millisecond passes.
  for (let report = 0; report < 20; report++) await events.record(threshold);
  expect((await notify.queue.counts())?.events).toBe(1);
});

it('while Redis is away, repeated reports of a threshold take the place of no other event', async () => {
  const { redis, limiter, notify, events } = await openEvents({ webhooksMax: 5 });
  const reports = [1, 2, 3, 4].map(
    (at): QuotaThreshold => ({
      ...{ kind: 'quota_threshold', keyId: `key ${at}`, plan: 'free', window: 'day', index: 20_000 },
      ...{ percent: 80, used: 8, limit: 10, resetMs: 0, endsAtMs: limiter.storeNowMs() + 600_000 },
      source: 'shared',
    }),
  );
  redis.freeze();
  try {
    await untilAway(limiter);
    for (let repeat = 0; repeat < 10; repeat++) for (const report of reports) void events.record(report);
  } finally {
    redis.thaw();
  }
  await untilBack(limiter);
  await until('the queue has the events', async () => (await notify.queue.counts())?.events === 4);
  expect(await notify.queue.counts()).toMatchObject({ dropped: 0, unsent: 0 });
});
