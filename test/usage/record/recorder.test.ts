import { expect, it, onTestFinished, vi } from 'vitest';
import type { Decision } from '../../../gateway/shared/model.ts';
import { createUsageRecorder } from '../../../gateway/usage/record/recorder.ts';
import { createMemoryUsageStore } from '../../../gateway/usage/store/memory-usage-store.ts';
import type { UsageStore } from '../../../gateway/usage/store/usage-store.ts';
import { usageCalendar } from '../../../gateway/usage/usage-calendar.ts';
import { tunedBounds } from '../../support/tuned-bounds.ts';
import { until } from '../../support/until.ts';
import { redisStoreSubject } from '../store/usage-stores.ts';

const window = { name: 'minute', limit: 60, remaining: 59, resetMs: 0, windowSeconds: 60 } as const;

const rateLimit = { nowMs: Date.now(), windows: [window], inForce: window };
const decision: Decision = { kind: 'admitted', units: 1, rateLimit, source: 'shared' };

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
    allKeptMs: 60_000,
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

/** A recorder whose flushes happen only when the test calls `flush`. */
function startStopped(own: Parameters<typeof tunedBounds>[0] = {}) {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] });
  onTestFinished(() => void vi.useRealTimers());
  const bounds = tunedBounds({
    usageSlicesPerFlush: 1,
    usageQuietRequestsMax: 20,
    usageQuietRounds: 6,
    ...own,
  });
  const sent: string[] = [];
  const inMemory = createMemoryUsageStore({ nowMs: Date.now, keysMax: 1_000 });
  const store: UsageStore = {
    ...inMemory,
    add(batch) {
      sent.push(batch.record.kind === 'day' ? batch.record.keyId : batch.record.kind);
      return inMemory.add(batch);
    },
  };
  const recorder = createUsageRecorder({
    store,
    calendar: usageCalendar(60_000),
    keptMs: 60_000,
    allKeptMs: 60_000,
    bounds,
  });
  onTestFinished(() => recorder.close());
  return {
    recorder,
    count(keyId: string, requests: number) {
      for (let request = 0; request < requests; request++)
        recorder.decided(keyId, decision, '192.0.2.1', '01234567');
    },
    /** @param ms the time that passes. @returns the keys whose counts were sent in this time */
    async flush(ms = bounds.usageFlushIntervalMs): Promise<string[]> {
      vi.advanceTimersByTime(ms);
      // The replies of the store arrive in microtasks.
      await new Promise(setImmediate);
      return sent.splice(0);
    },
  };
}

it('a key with 20 unsent requests is sent by the next flush, and a key with fewer requests by the sixth flush', async () => {
  const { count, flush } = startStopped();
  for (let round = 1; round <= 12; round++) {
    count('busy', 20);
    count('quiet', 1);
    expect(await flush()).toEqual(round % 6 === 0 ? ['busy', 'quiet'] : ['busy']);
  }
  expect(await flush()).toEqual([]);
});

it('a timer that fires late delays a flush by less than one interval of the timer', async () => {
  const { count, flush } = startStopped({ usageFlushIntervalMs: 10_000, usageSlicesPerFlush: 100 });
  const now = vi.spyOn(performance, 'now');
  onTestFinished(() => now.mockRestore());
  const startMs = performance.now();
  for (let key = 0; key < 300; key++) count(`key-${key}`, 1);
  const unsent = new Set(Array.from({ length: 300 }, (_, key) => `key-${key}`));
  // Each timer of 100 ms takes 105 ms.
  let passedMs = 0;
  for (; unsent.size > 0; passedMs += 105) {
    now.mockReturnValue(startMs + passedMs);
    for (const keyId of await flush(100)) unsent.delete(keyId);
  }
  expect(passedMs - 105).toBeLessThanOrEqual(60_000 + 105);
});

it('after a pause of the process, the late slices are flushed a few at a time', async () => {
  const { count, flush } = startStopped({ usageFlushIntervalMs: 10_000, usageSlicesPerFlush: 100 });
  const now = vi.spyOn(performance, 'now');
  onTestFinished(() => now.mockRestore());
  for (let key = 0; key < 300; key++) count(`key-${key}`, 20);
  now.mockReturnValue(performance.now() + 3_600_000);
  const sent = await flush(100);
  expect(sent.length).toBeGreaterThan(0);
  expect(sent.length).toBeLessThan(100);
  for (let more = 0; more < 9; more++) sent.push(...(await flush(100)));
  expect(new Set(sent.filter((record) => record !== 'operations')).size).toBe(300);
});

it('a key that stays below 20 requests for some flushes is sent by the flush after its 20th request', async () => {
  const { count, flush } = startStopped();
  count('slow', 10);
  expect(await flush()).toEqual([]);
  count('slow', 9);
  expect(await flush()).toEqual([]);
  count('slow', 1);
  expect(await flush()).toEqual(['slow']);
});

it('the end of a request is sent by the sixth flush too, and many ends by the next flush', async () => {
  const { recorder, count, flush } = startStopped();
  count('slow', 20);
  expect(await flush()).toEqual(['slow']);
  const ended = { operationId: 'listPets', atMs: rateLimit.nowMs, status: 200, ending: 'served' } as const;
  const end = () => recorder.ended({ ...ended, keyId: 'slow', ownMs: 1, upstreamMs: 1 });
  for (let request = 0; request < 20; request++) end();
  expect((await flush()).toSorted()).toEqual(['operations', 'slow']);
  end();
  const flushes: string[][] = [];
  for (let round = 1; round <= 6; round++) flushes.push(await flush());
  expect(flushes.map((keys) => keys.includes('slow'))).toEqual([false, false, false, false, false, true]);
});

it('quiet keys are sent early while there are too many keys', async () => {
  const many = startStopped({ usageKeysMax: 10 });
  for (let key = 0; key < 30; key++) many.count(`key-${key}`, 1);
  await new Promise(setImmediate);
  expect((await many.flush()).length).toBeGreaterThanOrEqual(30);
  expect(many.recorder.lost()).toBe(0);
});

it('quiet keys are sent early while more than half of the room for unsent counts is used', async () => {
  const { recorder, flush } = startStopped({ usageUnsentCountsMax: 700 });
  const count = (key: number, addresses: number) => {
    for (let address = 0; address < addresses; address++)
      recorder.decided(`key-${key}`, decision, `192.0.2.${address}`, '01234567');
  };
  // Each address is an unsent count at once.
  for (let key = 0; key < 40; key++) count(key, 10);
  expect((await flush()).length).toBe(40);
  for (let key = 0; key < 40; key++) count(key, 5);
  expect(await flush()).toEqual([]);
  expect(recorder.lost()).toBe(0);
});

it('an unsent count of a quiet key is in the answer of this process, and a fleet flush sends it', async () => {
  const { recorder, count, flush } = startStopped();
  count('quiet', 3);
  const day = Math.floor(rateLimit.nowMs / 86_400_000);
  const unsent = () => recorder.unsent([{ kind: 'day', keyId: 'quiet', day }])[0];
  expect(unsent()?.counted.get('hours')).toBeDefined();
  expect(await recorder.send()).toBe(true);
  expect(unsent()?.counted.size).toBe(0);
  expect(await flush()).toEqual(['quiet']);
});
