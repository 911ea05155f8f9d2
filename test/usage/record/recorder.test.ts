import { expect, it, onTestFinished } from 'vitest';
import type { Decision } from '../../../gateway/shared/model.ts';
import { createUsageRecorder } from '../../../gateway/usage/record/recorder.ts';
import { usageCalendar } from '../../../gateway/usage/usage-calendar.ts';
import { tunedBounds } from '../../support/tuned-bounds.ts';
import { until } from '../../support/until.ts';
import { redisStoreSubject } from '../store/usage-stores.ts';

const window = { name: 'minute', limit: 60, remaining: 59, resetMs: 0, windowSeconds: 60 } as const;

/** A recorder that has counted one request for each of 50 keys. */
async function countFifty({
  usageKeysMax,
  usageFlushIntervalMs = 50,
}: {
  readonly usageKeysMax: number;
  readonly usageFlushIntervalMs?: number;
}) {
  const subject = await redisStoreSubject();
  const store = subject.open();
  const recorder = createUsageRecorder({
    store,
    calendar: usageCalendar(60_000),
    keptMs: 60_000,
    bounds: tunedBounds({
      usageKeysMax,
      usageFlushIntervalMs,
      usageSlicesPerFlush: 1,
      usageCallTimeoutMs: 100,
      // The limit is so large that the recorder never drops a key, even on a slow machine.
      usageIdleRoundsMax: 1_000_000,
    }),
  });
  onTestFinished(async () => {
    await recorder.close();
    await subject.close();
  });
  const nowMs = Date.now();
  const rateLimit = { nowMs, windows: [window], inForce: window };
  const decision: Decision = { kind: 'admitted', units: 1, rateLimit, source: 'shared' };
  for (let key = 0; key < 50; key++) recorder.decided(`key-${key}`, decision, '192.0.2.1', '01234567');
  return { recorder, subject };
}

it('keys above the bound are dropped as soon as all their counts are sent, and no count is lost', async () => {
  const { recorder, subject } = await countFifty({ usageKeysMax: 10 });
  await until('no more keys are remembered than may be', () => recorder.lastSeen().size <= 10);
  expect(recorder.lost()).toBe(0);
  expect((await subject.keys()).filter((name) => name.includes('{key-'))).toHaveLength(50);
});

it('keys within the bound are kept while they have no requests', async () => {
  const { recorder, subject } = await countFifty({ usageKeysMax: 50 });
  await until(
    'all is sent',
    async () => (await subject.keys()).filter((name) => name.includes('{key-')).length === 50,
  );
  await new Promise((resolve) => setTimeout(resolve, 400));
  expect(recorder.lastSeen().size).toBe(50);
});

it('all counts can be sent at once, before their turn', async () => {
  const { recorder, subject } = await countFifty({ usageKeysMax: 50, usageFlushIntervalMs: 600_000 });
  expect(await subject.keys()).toEqual([]);
  expect(await recorder.send()).toBe(true);
  expect((await subject.keys()).filter((name) => name.includes('{key-'))).toHaveLength(50);
});
