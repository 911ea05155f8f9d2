import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, it } from 'vitest';
import type { Bounds } from '../../../gateway/shared/timeouts-and-sizes.ts';
import { KeyUsage } from '../../../gateway/usage/record/key-usage.ts';
import { UnsentRoom } from '../../../gateway/usage/unsent-counts.ts';
import { usageCalendar } from '../../../gateway/usage/usage-calendar.ts';
import { tunedBounds } from '../../support/tuned-bounds.ts';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;
const calendar = usageCalendar(60_000);

const bounds = tunedBounds({ usageSecretsPerKeyMax: 8 });

function keyOf(room: UnsentRoom, own: Bounds = bounds): KeyUsage {
  return new KeyUsage('acme', { calendar, room, bounds: own });
}

function heapBytes(): number {
  collectGarbage();
  return process.memoryUsage().heapUsed + process.memoryUsage().arrayBuffers;
}

it('a key that thousands of addresses share takes no more memory than one that comes from a single address', () => {
  const keys = 300;
  const room = new UnsentRoom(10_000_000);
  const fill = (addresses: number) =>
    Array.from({ length: keys }, (_, index) => {
      const key = new KeyUsage(`key-${index}`, { calendar, room, bounds });
      for (let address = 0; address < addresses; address++) {
        key.decided(0, 1, 1_000, `10.${index % 256}.${address >> 8}.${address & 255}`, '01234567');
      }
      key.close();
      // Removes the counts, as a recorder does when it sends them.
      while (key.unsent.takeDay(250) !== undefined);
      return key;
    });
  const excessOfSharedKey = () => {
    const before = heapBytes();
    const single = fill(1);
    const between = heapBytes();
    const shared = fill(4_000);
    const after = heapBytes();
    expect(shared.length + single.length).toBe(2 * keys);
    return (after - between - (between - before)) / keys;
  };
  // Other parts of the process may allocate memory during a measurement.
  const excesses = Array.from({ length: 3 }, excessOfSharedKey);
  expect(Math.min(...excesses)).toBeLessThan(1_000);
});

it('an address without room is counted as soon as there is room', () => {
  const room = new UnsentRoom(0);
  const key = keyOf(room);
  key.decided(0, 1, 1_000, '192.0.2.1', '01234567');
  key.decided(0, 1, 1_000, '192.0.2.2', '01234567');
  room.give(1_000);
  key.decided(0, 1, 2_000, '192.0.2.1', '01234567');
  expect(key.unsent.of(0)?.get('addresses')?.size).toBe(1);
});

it('a key with hundreds of secrets records only when the first few secrets of a day were used', () => {
  const room = new UnsentRoom(1_000);
  const key = keyOf(room);
  for (const atMs of [1_000, 2_000]) {
    for (let secret = 0; secret < 300; secret++) key.decided(0, 1, atMs, '192.0.2.1', `secret-${secret}`);
  }
  key.close();
  const recorded = [...(key.unsent.of(0) ?? [])].filter(([field]) => field.startsWith('secret:'));
  expect(recorded.map(([field, counts]) => [field, [...counts]])).toEqual(
    Array.from({ length: 8 }, (_, secret) => [`secret:secret-${secret}`, [[0, 2_000]]]),
  );
});

it('a stolen secret that is used from many networks records only the first few of a day by name, and is no use of the key', () => {
  const room = new UnsentRoom(1_000);
  const key = keyOf(room, { ...bounds, usageNetworksPerKeyMax: 2 });
  for (const atMs of [1_000, 2_000])
    for (const network of ['a', 'b', 'c', 'd']) key.refusedAddress(atMs, network);
  key.close();
  const counted = (requests: number) =>
    new Map([
      [0, 2_000],
      [1, requests],
    ]);
  expect(key.unsent.of(0)).toEqual(
    new Map([
      ['network:a', counted(2)],
      ['network:b', counted(2)],
      ['network:*', counted(4)],
    ]),
  );
  expect(key.lastSeenMs).toBe(0);
});

it('a trial that is edited again and again gets a limited number of fields a day', () => {
  const key = keyOf(new UnsentRoom(100_000), { ...bounds, usageTrialsPerKeyMax: 3 });
  const dayMs = 86_400_000;
  const fieldsOf = (day: number) =>
    [...(key.unsent.of(day)?.keys() ?? [])].filter((field) => field.startsWith('trial:')).toSorted();
  for (const day of [0, 1]) {
    for (const edit of [1, 2, 3, 4, 5]) {
      key.decided(0, 1, day * dayMs + edit * 1_000, '192.0.2.1', '01234567');
      key.decidedByTrial(`minute${edit}`, 0, false);
    }
    key.close();
    expect(fieldsOf(day)).toEqual(['trial:00:minute1', 'trial:00:minute2', 'trial:00:minute3']);
  }
});
