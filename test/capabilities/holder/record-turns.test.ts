import { expect, it } from 'vitest';
import { RecordTurns } from '../../../gateway/capabilities/holder/usage/record-turns.ts';
import type { Period } from '../../../gateway/shared/schema/dates-and-durations.ts';
import { type Bounds, defaultBounds } from '../../../gateway/shared/timeouts-and-sizes.ts';

const week = { fromMs: Date.UTC(2026, 10, 17, 12), toMs: Date.UTC(2026, 10, 24, 11) };
const waiting = { isAnswerable: true };

/**
 * Makes a function that reads the usage record. The reads take turns. `begun` lists each read that has begun, with the
 * first hour of its day.
 */
function start(bounds: Partial<Bounds> = {}) {
  const turns = new RecordTurns({ ...defaultBounds, ownReadsRestFactor: 0, ...bounds });
  const begun: string[] = [];
  let reading = 0;
  let readingMax = 0;
  const read = (key: string, period: Period = week, client = waiting) =>
    turns.readDays(key, client, period, async ({ fromMs, toMs }) => {
      begun.push(`${key} ${new Date(fromMs).toISOString().slice(5, 13)}`);
      expect(toMs - fromMs).toBeLessThan(86_400_000);
      readingMax = Math.max(readingMax, ++reading);
      await new Promise(setImmediate);
      reading--;
      return [fromMs];
    });
  return { read, begun, readingMax: () => readingMax };
}

it('a key that reads its usage many times at once delays another key by one day of the record at a time', async () => {
  const { read, begun, readingMax } = start();
  const greedy = Promise.all(Array.from({ length: 5 }, () => read('greedy')));
  const day = { fromMs: Date.UTC(2026, 10, 24), toMs: week.toMs };
  expect(await read('calm', day)).toEqual([day.fromMs]);
  expect(begun.indexOf('calm 11-24T00')).toBeLessThan(3);
  const rows = await greedy;
  expect(rows[4]).toHaveLength(8);
  expect(begun).toHaveLength(5 * 8 + 1);
  expect(begun).toContain('greedy 11-17T12');
  expect(readingMax()).toBe(1);
  const ofGreedy = begun.filter((one) => one.startsWith('greedy'));
  expect(ofGreedy.slice(0, 8)).toEqual([...new Set(ofGreedy)]);
});

it('reads of one key beyond its share are refused, and another key is still read', async () => {
  const { read } = start({ ownReadsMax: 8 });
  const greedy = Array.from({ length: 8 }, () => read('greedy'));
  expect(await read('calm')).toHaveLength(8);
  expect((await Promise.all(greedy)).filter((days) => days === 'busy').length).toBeGreaterThan(0);
  expect(await read('greedy')).toHaveLength(8);
});

it('a read ends early when its client is gone or its time is over', async () => {
  const { read, begun } = start();
  expect(await read('gone', week, { isAnswerable: false })).toBe('busy');
  expect(await start({ ownReadTimeoutMs: -1 }).read('late')).toBe('busy');
  expect(begun).toEqual([]);
});
