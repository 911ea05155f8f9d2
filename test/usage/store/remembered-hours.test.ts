import { expect, it } from 'vitest';
import { hourIn } from '../../../gateway/usage/record-fields.ts';
import { packCounts } from '../../../gateway/usage/store/counts.ts';
import { createMemoryUsageStore } from '../../../gateway/usage/store/memory-usage-store.ts';
import { usageCalendar } from '../../../gateway/usage/usage-calendar.ts';

it.each([
  ['minutes:07', 7],
  ['outcomes:23', 23],
  ['failed:05:store', 5],
  ['failed/reports:05:store', 5],
  ['group/reports:09', 9],
  ['trial:11:abc', 11],
  ['ended:00', 0],
  ['13:listPets', 13],
  ['hours', undefined],
  ['operation:07', undefined],
  ['secret:07a1b2c3', undefined],
  ['network:10.0.0.0/8', undefined],
])('the field %s has the hour %s', (field, hour) => {
  expect(hourIn(field)).toBe(hour);
});

it('a store that keeps the minutes of some hours drops earlier minutes, and no other field', async () => {
  const calendar = usageCalendar(60_000);
  let nowMs = 10 * calendar.dayMs + 8 * calendar.hourMs;
  const store = createMemoryUsageStore({
    nowMs: () => nowMs,
    keysMax: 5,
    minutesKept: { hours: 2, calendar },
  });
  const record = { kind: 'day', keyId: 'acme', day: 10 } as const;
  const counts = packCounts(new Map([[1, 1]]));
  const add = (number: number, ...fields: string[]) =>
    store.add({
      record,
      sender: 'me',
      number,
      fields: new Map(fields.map((field) => [field, counts])),
      expiresMs: 12 * calendar.dayMs,
    });
  await add(1, 'minutes:07', 'minutes:08', 'hours');
  nowMs += 2 * calendar.hourMs;
  await add(2, 'minutes:10');
  const [found] = (await store.read([{ record }])) ?? [];
  expect([...(found?.fields.keys() ?? [])]).toEqual(['minutes:08', 'hours', 'minutes:10']);
});
