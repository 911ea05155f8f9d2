import type { RedisConnection } from '../redis/redis-connection.ts';
import type { Bounds } from '../shared/timeouts-and-sizes.ts';
import { createDailyTotals, type DailyTotals, readTotals } from './daily-totals.ts';
import { createUsageRecorder, type UsageRecorder } from './recorder.ts';
import { createMemoryUsageStore } from './store/memory-usage-store.ts';
import { createRedisUsageStore } from './store/redis-usage-store.ts';
import type { UsageStore } from './store/usage-store.ts';
import { usageCalendar } from './usage-calendar.ts';
import { createUsageReader, type UsageReader } from './usage-reader.ts';

/** The usage record: what each key asked for and what it got. Nothing else is stored of requests. */
export interface Usage {
  readonly recorder: UsageRecorder;
  readonly reader: UsageReader;
  /** What the reader reads, for a reader in another thread. */
  readonly store: Pick<UsageStore, 'read' | 'active' | 'lastSeen'>;
  /**
   * Of each of these keys the days whose minutes may be gone, as far back as 400 days, or those of one month such as 2026-11;
   * undefined when the store gives no answer.
   */
  totals(keyIds: readonly string[], month?: string): Promise<readonly DailyTotals[] | undefined>;
  state(): UsageState;
  /** Adds what was counted last, for at most `bounds.usageCloseTimeoutMs`. */
  close(): Promise<void>;
}

export interface UsageState {
  /** For how many days minutes are kept: 1 without Redis. */
  readonly keptDays: number;
  /** Why nothing is recorded at the moment, if so. */
  readonly pausedBecause?: string;
  /** Requests of this process that are in no record: the store was away, or full, for too long. */
  readonly lostRequests: number;
}

/** How long a record stays after its last day is over, so that the first minute of the oldest day is still there. */
const graceDays = 2;

export function createUsage({
  redis,
  keepDays,
  minuteMs,
  nowMs,
  onPause,
  bounds,
}: {
  /** Absent: in memory, for a day. */
  readonly redis?: RedisConnection | undefined;
  readonly keepDays: number;
  /** How long a minute is; tests have shorter ones. */
  readonly minuteMs: number;
  /** The store's clock, epoch ms. */
  readonly nowMs: () => number;
  /** Hears why recording pauses; without a reason, that it goes on. */
  readonly onPause?: ((reason: string | undefined) => void) | undefined;
  readonly bounds: Bounds;
}): Usage {
  const calendar = usageCalendar(minuteMs);
  const keptMs = (redis === undefined ? 1 : keepDays + graceDays) * calendar.dayMs;
  const store =
    redis === undefined
      ? createMemoryUsageStore({ nowMs, keysMax: bounds.usageKeysInMemoryMax })
      : createRedisUsageStore({ redis, keptMs, onPause, bounds });
  // In memory nothing is older than a day.
  const totals = redis && createDailyTotals({ store, calendar, keepDays, nowMs, bounds });
  const recorder = createUsageRecorder({
    store,
    calendar,
    keptMs,
    bounds,
    ...(totals && { onNewDay: totals.enqueue }),
  });
  return {
    recorder,
    store,
    reader: createUsageReader({ store, recorder, calendar, bounds }),
    totals: (keyIds, month) =>
      totals === undefined
        ? Promise.resolve(keyIds.map(() => new Map()))
        : readTotals(store, keyIds, { month, atOnce: bounds.usageReadsPerTurnMax }),
    state() {
      const pausedBecause = store.pausedBecause();
      return {
        keptDays: redis === undefined ? 1 : keepDays,
        ...(pausedBecause !== undefined && { pausedBecause }),
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
