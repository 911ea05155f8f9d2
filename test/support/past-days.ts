import type { RedisConnection } from '../../gateway/redis/redis-connection.ts';
import { dayMs } from '../../gateway/shared/words/figures.js';
import { firstDayOf } from '../../gateway/usage/read/daily-totals.ts';
import { admittedNumber, daysField, hoursField, offeredNumber } from '../../gateway/usage/record-fields.ts';
import { latest, packCounts } from '../../gateway/usage/store/counts.ts';
import { createRedisUsageStore } from '../../gateway/usage/store/redis-usage-store.ts';
import { outcomes, tallyNumber } from '../../gateway/usage/tally.ts';
import { tunedBounds } from './tuned-bounds.ts';

/** The admitted and refused requests of a past day. `daysAgo` is 1 for yesterday. */
export interface PastDay {
  readonly daysAgo: number;
  readonly admitted: number;
  /** The requests that the limit a month refused. */
  readonly refusedByMonth?: number;
}

/**
 * Writes the minutes of past days of a key, with all requests in the first minute of a day. Days before yesterday also get
 * the totals that a gateway adds one full day after their end.
 */
export async function recordPastDays(
  redis: RedisConnection,
  keyId: string,
  days: readonly PastDay[],
  nowMs: number,
): Promise<void> {
  const store = createRedisUsageStore({ redis, keptMs: 400 * dayMs, bounds: tunedBounds({}) });
  const today = Math.floor(nowMs / dayMs);
  for (const { daysAgo, admitted, refusedByMonth = 0 } of days.toSorted((a, b) => b.daysAgo - a.daysAgo)) {
    const day = today - daysAgo;
    const month = new Date(day * dayMs).toISOString().slice(0, 7);
    const place = day - firstDayOf(month);
    const countsAt = (place: number) =>
      packCounts(
        new Map([
          [tallyNumber(place, outcomes.indexOf('admitted')), admitted],
          [tallyNumber(place, outcomes.indexOf('month')), refusedByMonth],
        ]),
      );
    const expiresMs = nowMs + 400 * dayMs;
    const hours = new Map([
      [latest, 1],
      [admittedNumber(0), admitted],
      [offeredNumber(0), admitted + refusedByMonth],
    ]);
    const minutes = new Map([
      ['minutes:00', countsAt(0)],
      [hoursField, packCounts(hours)],
    ]);
    const ofDay = { kind: 'day', keyId, day } as const;
    await store.add({ record: ofDay, sender: 'past', number: 1, fields: minutes, expiresMs });
    if (daysAgo < 2) continue;
    const totals = new Map([[daysField(month), countsAt(place)]]);
    const ofKey = { kind: 'totals', keyId } as const;
    await store.add({ record: ofKey, sender: 'days', number: day, fields: totals, expiresMs });
  }
  store.close();
}
