import type { RedisConnection } from '../redis/redis-connection.ts';
import type { Bounds } from '../shared/timeouts-and-sizes.ts';
import { createDailyTotals, type DailyTotals, readTotals } from './read/daily-totals.ts';
import { createUsageReader, type UsageReader } from './read/usage-reader.ts';
import type { LongUse } from './record/dead-secrets.ts';
import { createUsageRecorder, type UsageRecorder } from './record/recorder.ts';
import { createMemoryUsageStore } from './store/memory-usage-store.ts';
import { createRedisUsageStore } from './store/redis-usage-store.ts';
import type { UsageStore } from './store/usage-store.ts';
import { type UsageCalendar, usageCalendar } from './usage-calendar.ts';

/** The usage record, which counts the requests of each key and their outcomes. */
export interface Usage {
  readonly recorder: UsageRecorder;
  readonly reader: UsageReader;
  /** The store of the usage record. A reader in another thread reads from this store. */
  readonly store: Pick<UsageStore, 'read' | 'active' | 'lastSeen'>;
  /**
   * The counts that this process has recorded itself. With Redis, they are kept for `usageRememberedHours` and `usageRememberedKeysMax` keys,
   * for operators while Redis is away.
   */
  readonly remembered: Pick<UsageStore, 'read' | 'active' | 'lastSeen'>;
  /**
   * Returns the daily totals of each key for up to 400 days, or for one month such as 2026-11. Totals also exist for
   * days whose minutes are already deleted. The result is undefined when the store does not answer.
   */
  totals(keyIds: readonly string[], month?: string): Promise<readonly DailyTotals[] | undefined>;
  state(): UsageState;
  /** Returns the time at which the record of a key's day expires. The argument is a time of this day. Both are epoch ms. */
  keptUntilMs(atMs: number): number;
  /** Sends the remaining counts, for at most `bounds.usageCloseTimeoutMs`. */
  close(): Promise<void>;
}

export interface UsageState {
  /** The number of days for which minutes are kept; 1 without Redis. */
  readonly keptDays: number;
  /** The reason why recording is paused; absent while recording is not paused. */
  readonly pausedBecause?: string | undefined;
  /** The number of requests of this process that were not recorded because the store was away or full for too long. */
  readonly lostRequests: number;
}

/**
 * The number of days for which a record is kept beyond `keepDays`, so that the record still contains the first minute of
 * the oldest day.
 */
const graceDays = 2;

export function createUsage({
  redis,
  keepDays,
  minuteMs,
  nowMs,
  onPause,
  onLongUse,
  bounds,
}: {
  /** The Redis connection; without it, the record is in memory and keeps one day. */
  readonly redis?: RedisConnection | undefined;
  readonly keepDays: number;
  /** The length of a minute: 60,000 ms, or less in tests. */
  readonly minuteMs: number;
  /** Returns the time of the store's clock, epoch ms. */
  readonly nowMs: () => number;
  /** Called with the reason when recording pauses, and with undefined when it resumes. */
  readonly onPause?: ((reason: string | undefined) => void) | undefined;
  /** Called when a secret that is not valid was used for an hour. */
  readonly onLongUse?: ((use: LongUse) => void) | undefined;
  readonly bounds: Bounds;
}): Usage {
  const calendar = usageCalendar(minuteMs);
  const keptMs = (redis === undefined ? 1 : keepDays + graceDays) * calendar.dayMs;
  const allKeptMs =
    redis === undefined
      ? keptMs
      : (Math.max(keepDays, bounds.usageOfAllDaysMin) + graceDays) * calendar.dayMs;
  const inMemory = createMemoryUsageStore(
    redis === undefined
      ? { nowMs, keysMax: bounds.usageKeysInMemoryMax }
      : {
          nowMs,
          keysMax: bounds.usageRememberedKeysMax,
          minutesKept: { hours: bounds.usageRememberedHours, calendar },
        },
  );
  const store =
    redis === undefined
      ? inMemory
      : remembering(createRedisUsageStore({ redis, keptMs, onPause, bounds }), inMemory, calendar);
  // The memory store keeps one day only, so it has no totals.
  const totals = redis && createDailyTotals({ store, calendar, keepDays, nowMs, bounds });
  const recorder = createUsageRecorder({
    store,
    calendar,
    keptMs,
    allKeptMs,
    onLongUse,
    bounds,
    ...(totals && { onNewDay: totals.enqueue }),
  });
  return {
    recorder,
    store,
    remembered: inMemory,
    reader: createUsageReader({ store, recorder, calendar, bounds }),
    totals: (keyIds, month) =>
      totals === undefined
        ? Promise.resolve(keyIds.map(() => new Map()))
        : readTotals(store, keyIds, { month, atOnce: bounds.usageReadsPerTurnMax }),
    keptUntilMs: (atMs) => (Math.floor(atMs / calendar.dayMs) + 1) * calendar.dayMs + keptMs,
    state() {
      return {
        keptDays: redis === undefined ? 1 : keepDays,
        pausedBecause: store.pausedBecause(),
        lostRequests: recorder.lost(),
      };
    },
    async close() {
      totals?.close();
      await recorder.close();
      store.close();
    },
  };
}

/** A store that also adds each batch to a store in memory, once the first store has it. */
function remembering(store: UsageStore, memory: UsageStore, { dayMs }: UsageCalendar): UsageStore {
  return {
    ...store,
    async add(batch) {
      const result = await store.add(batch);
      if (result === 'added' && batch.record.kind !== 'totals') {
        // Memory keeps the record of a day until the end of the next day.
        await memory.add({ ...batch, expiresMs: (batch.record.day + 2) * dayMs });
      }
      return result;
    },
    async noteActive(keys) {
      await memory.noteActive(keys);
      return store.noteActive(keys);
    },
  };
}
