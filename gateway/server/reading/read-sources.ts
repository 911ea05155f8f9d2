import type { ReadSources } from '../../admin/api/read-sources.ts';
import type { KeySources } from '../../admin/keys/key-sources.ts';
import type { RedisSettings, Settings } from '../../shared/model.ts';
import { readTotals } from '../../usage/read/daily-totals.ts';
import { createUsageReader } from '../../usage/read/usage-reader.ts';
import { usageCalendar } from '../../usage/usage-calendar.ts';
import type { KeptInRedis } from './kept-in-redis.ts';
import type { Kept, Lent, ReadingData } from './reading-messages.ts';
import { createRemembering } from './remembering.ts';

/** Opens the data sources of the routes in the reading thread: Redis over a separate connection, or the memory of the main thread. */
export async function openReadSources({
  data: { bounds, keptDays, hasDirectory },
  settings,
  nowMs,
  leakOf,
  lent,
  closed,
}: {
  readonly data: ReadingData;
  readonly settings: () => Settings;
  readonly nowMs: () => number;
  readonly leakOf: KeySources['leakOf'];
  readonly lent: Lent;
  /** Closes the connection to Redis. */
  readonly closed: AbortSignal;
}): Promise<ReadSources> {
  const { redis } = settings();
  const inRedis = redis && (await openKept(redis));
  const own = inParts(lent);
  const kept: Kept = inRedis === undefined ? own : createRemembering(inRedis, own, readHeldKeys, bounds);
  const store = { read: kept.readRecords, active: kept.readActive, lastSeen: kept.readLastSeen };
  const usage: KeySources['usage'] =
    keptDays === undefined
      ? undefined
      : {
          reader: createUsageReader({
            store,
            recorder: {
              unsent: (records) => manyOf(records, (part) => lent.unsent(part)),
              lastSeen: () => lent.lastSeen(),
            },
            calendar: usageCalendar(bounds.windowsMs.minute),
            bounds,
          }),
          // The memory store keeps usage records for one day.
          totals: async (keyIds, month) =>
            redis === undefined
              ? keyIds.map(() => new Map())
              : readTotals(store, keyIds, { month, atOnce: bounds.usageReadsPerTurnMax }),
          state: () => ({ keptDays }),
        };
  return {
    keys: {
      settings,
      async readStatus(keys) {
        const read = await kept.readStatuses(keys);
        return read.kind === 'read' ? read.keys : undefined;
      },
      readMembers: (ids) => lent.readMembers(ids),
      ...(hasDirectory && kept.directory && { directory: kept.directory, readHeldKeys }),
      leakOf,
      planFigures: () => lent.planFigures(),
      usage,
      nowMs,
      bounds,
    },
    events: { read: (page) => lent.readEvents(page) },
    changes: { read: (page) => lent.readChanges(page) },
    presence: { read: () => lent.readProcesses() },
    redis: inRedis?.connection,
    lent,
  };

  /** Loads the Redis library only when Redis is configured. */
  async function openKept(redis: RedisSettings): Promise<KeptInRedis> {
    const { keptInRedis } = await import('./kept-in-redis.ts');
    return keptInRedis(redis, bounds, closed);
  }

  function readHeldKeys(ids: readonly string[]) {
    return manyOf(ids, async (part) => (await lent.readHeldKeys(part)) ?? part.map(() => undefined));
  }

  /** Reads the main thread's memory in small queries. The main thread answers each query in a fraction of a millisecond. */
  function inParts(all: Lent): Kept {
    return {
      async readStatuses(keys) {
        const found = await manyOf(keys, async (part) => {
          return (await all.readStatuses(part)) ?? part.map(() => undefined);
        });
        return { kind: 'read', keys: found };
      },
      readRecords: (reads) => manyOf(reads, async (part) => (await all.readRecords(part)) ?? []),
      readActive: () => all.readActive(),
      readLastSeen: (ids) => all.readLastSeen(ids),
    };
  }

  async function manyOf<Item, Found>(
    items: readonly Item[],
    ask: (part: readonly Item[]) => readonly Found[] | Promise<readonly Found[]>,
  ): Promise<readonly Found[]> {
    const found: Found[] = [];
    for (let from = 0; from < items.length; from += bounds.readingAskedAtOnceMax) {
      found.push(...(await ask(items.slice(from, from + bounds.readingAskedAtOnceMax))));
    }
    return found;
  }
}
