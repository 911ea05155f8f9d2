import { expect, it, onTestFinished } from 'vitest';
import type { Decision } from '../../../gateway/shared/model.ts';
import { createUsageRecorder } from '../../../gateway/usage/record/recorder.ts';
import type { UsageStore } from '../../../gateway/usage/store/usage-store.ts';
import { usageCalendar } from '../../../gateway/usage/usage-calendar.ts';
import { tunedBounds } from '../../support/tuned-bounds.ts';
import { until } from '../../support/until.ts';
import { redisStoreSubject } from '../store/usage-stores.ts';

const window = { name: 'minute', limit: 60, remaining: 59, resetMs: 0, windowSeconds: 60 } as const;

/** A recorder that has counted one request for each of 50 keys. */
async function countFifty({
  usageKeysMax,
  usageFlushIntervalMs = 50,
  ...more
}: {
  readonly usageKeysMax: number;
  readonly usageFlushIntervalMs?: number;
  readonly usageActiveKeysMax?: number;
  readonly usageActiveNotedMs?: number;
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
      ...more,
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
  return { recorder, subject, store };
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

it('at most as many keys are added to the index of active keys as it has room for, and the others later', async () => {
  const bounds = { usageKeysMax: 50, usageFlushIntervalMs: 600_000, usageActiveKeysMax: 20 };
  const few = await countFifty({ ...bounds, usageActiveNotedMs: 3_600_000 });
  const noted = watchNoted(few.store);
  await few.recorder.send();
  await few.recorder.send();
  expect(noted).toHaveLength(20);

  const soon = await countFifty({ ...bounds, usageActiveNotedMs: 400 });
  const all = watchNoted(soon.store);
  await until('each key is in the index', async () => {
    await soon.recorder.send();
    return new Set(all).size === 50;
  });
});

/** Returns a list to which each key is added that the recorder adds to the index of active keys. */
function watchNoted(store: UsageStore): string[] {
  const noted: string[] = [];
  const { noteActive } = store;
  store.noteActive = (keys) => {
    noted.push(...keys.map(({ keyId }) => keyId));
    return noteActive(keys);
  };
  return noted;
}
