import type { RedisConnection } from '../../gateway/redis/redis-connection.ts';
import { dayMs } from '../../gateway/shared/words/figures.js';
import { firstDayOf } from '../../gateway/usage/read/daily-totals.ts';
import { admittedNumber, daysField, hoursField, offeredNumber } from '../../gateway/usage/record-fields.ts';
import { latest, packCounts } from '../../gateway/usage/store/counts.ts';
import { createRedisUsageStore } from '../../gateway/usage/store/redis-usage-store.ts';
import { outcomes, tallyNumber } from '../../gateway/usage/tally.ts';
import { connectRedis, removeAll } from './connect-redis.ts';
import { startGatewayHere } from './gateway-here.ts';
import { type makeKey, testConfig } from './gateway-process.ts';
import { freshPrefix, redisUrl } from './redis.ts';
import { tunedBounds } from './tuned-bounds.ts';
import { patientGateway } from './tuning.ts';

/** The admitted and refused requests of a past day. `daysAgo` is 1 for yesterday. */
export interface PastDay {
  readonly daysAgo: number;
  readonly admitted: number;
  /** The requests that the limit a month refused. */
  readonly refusedByMonth?: number;
}

/** Starts a gateway with past days of its keys. `stop` also removes these from the Redis server of the tests. */
export async function startWithPastDays({
  keys,
  token,
  days,
  nowMs,
}: {
  readonly keys: readonly ReturnType<typeof makeKey>[];
  /** The entry of the configuration. */
  readonly token: object;
  readonly days: Readonly<Record<string, readonly PastDay[]>>;
  readonly nowMs: number;
}) {
  const prefix = freshPrefix();
  const redis = await connectRedis({ prefix, place: { url: redisUrl() } });
  for (const [id, ofKey] of Object.entries(days)) await recordPastDays(redis, id, ofKey, nowMs);
  const gateway = await startGatewayHere(
    testConfig({
      upstream: { url: 'http://127.0.0.1:1' },
      redis: { url: redisUrl(), prefix },
      keys: keys.map((key) => key.entry),
      admin: { host: '127.0.0.1', port: 0, tokens: [token] },
    }),
    { tuning: { bounds: patientGateway } },
  );
  const stop = async () => {
    await gateway.stop('SIGKILL');
    await removeAll(redis);
  };
  return { gateway, stop };
}

/**
 * Writes the minutes of past days of a key, with all requests in the first minute of a day. Days before yesterday also get
 * the totals that a gateway adds one full day after their end.
 */
async function recordPastDays(
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
