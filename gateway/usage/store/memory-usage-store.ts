import { hourIn } from '../record-fields.ts';
import type { UsageCalendar } from '../usage-calendar.ts';
import { addPacked, type Counts, type PackedCounts, packCounts } from './counts.ts';
import type { ActiveKey, RecordName, StoredRecord, UsageStore } from './usage-store.ts';

interface Kept {
  readonly fields: Map<string, PackedCounts>;
  readonly batches: Map<string, number>;
  readonly expiresMs: number;
  /** The first hour whose minutes were kept at the last look, numbered since 1970. */
  firstHour: number;
}

/** Stores the usage record in the memory of this process, for the most recently active keys. */
export function createMemoryUsageStore({
  nowMs,
  keysMax,
  minutesKept,
}: {
  readonly nowMs: () => number;
  /** The largest number of keys. If there are more keys, the store drops the keys whose last activity is oldest. */
  readonly keysMax: number;
  /** How many hours of minutes the store keeps, beside the present hour; by default all hours of a record. */
  readonly minutesKept?: { readonly hours: number; readonly calendar: UsageCalendar } | undefined;
}): UsageStore {
  /** The records by key id, with the most recently active key last. */
  const keys = new Map<string, { lastSeenMs: number; readonly records: Map<string, Kept> }>();
  const operations = new Map<string, Kept>();

  function recordsOf(record: RecordName): Map<string, Kept> | undefined {
    return record.kind === 'operations' ? operations : keys.get(record.keyId)?.records;
  }

  return {
    add(batch) {
      const { record, sender, number, fields, expiresMs } = batch;
      if (record.kind !== 'operations') touch(record.keyId, 0);
      const records = recordsOf(record) ?? operations;
      for (const [name, kept] of records) if (kept.expiresMs <= nowMs()) records.delete(name);
      const name = nameOf(record);
      const kept = records.get(name) ?? { fields: new Map(), batches: new Map(), expiresMs, firstHour: 0 };
      records.set(name, kept);
      dropOldHours(kept, record);
      if ((kept.batches.get(sender) ?? 0) < number) {
        kept.batches.set(sender, number);
        for (const [field, packed] of fields) {
          kept.fields.set(field, sumOf(kept.fields.get(field) ?? [], packed));
        }
      }
      return Promise.resolve('added');
    },
    // All records are in the same memory, so no place is better than another.
    placeOf: () => Math.random(),
    remove(record, fields) {
      const kept = recordsOf(record)?.get(nameOf(record));
      for (const field of fields) kept?.fields.delete(field);
      return Promise.resolve(true);
    },
    read(reads) {
      return Promise.resolve(
        reads.map(({ record, fields }): StoredRecord => {
          const kept = recordsOf(record)?.get(nameOf(record));
          if (kept === undefined || kept.expiresMs <= nowMs())
            return { fields: new Map(), batches: new Map() };
          const batches = new Map(kept.batches);
          if (fields === undefined) return { fields: new Map(kept.fields), batches };
          const found = fields.flatMap((field) => {
            const packed = kept.fields.get(field);
            return packed === undefined ? [] : [[field, packed] as const];
          });
          return { fields: new Map(found), batches };
        }),
      );
    },
    noteActive(active) {
      for (const { keyId, lastSeenMs } of active) touch(keyId, lastSeenMs);
      return Promise.resolve(true);
    },
    active() {
      const found = [...keys].map(([keyId, { lastSeenMs }]): ActiveKey => ({ keyId, lastSeenMs }));
      return Promise.resolve(found.sort((a, b) => b.lastSeenMs - a.lastSeenMs));
    },
    lastSeen: (keyIds) => Promise.resolve(keyIds.map((keyId) => keys.get(keyId)?.lastSeenMs ?? 0)),
    pausedBecause: () => undefined,
    close() {},
  };

  /** Drops the minutes of hours that the store no longer keeps, once an hour. */
  function dropOldHours(kept: Kept, record: RecordName): void {
    if (minutesKept === undefined || record.kind === 'totals') return;
    const { hourMs, dayMs } = minutesKept.calendar;
    const firstHour = Math.floor(nowMs() / hourMs) - minutesKept.hours;
    if (firstHour === kept.firstHour) return;
    kept.firstHour = firstHour;
    for (const field of kept.fields.keys()) {
      const hour = hourIn(field);
      if (hour !== undefined && (record.day * dayMs) / hourMs + hour < firstHour) kept.fields.delete(field);
    }
  }

  function touch(keyId: string, lastSeenMs: number): void {
    const known = keys.get(keyId) ?? { lastSeenMs, records: new Map() };
    known.lastSeenMs = Math.max(known.lastSeenMs, lastSeenMs);
    keys.delete(keyId);
    keys.set(keyId, known);
    for (const oldest of keys.keys()) {
      if (keys.size <= keysMax) break;
      keys.delete(oldest);
    }
  }
}

function nameOf(record: RecordName): string {
  return record.kind === 'totals' ? 'totals' : String(record.day);
}

function sumOf(one: PackedCounts, other: PackedCounts): PackedCounts {
  const counts: Counts = new Map();
  addPacked(counts, one);
  addPacked(counts, other);
  return packCounts(counts);
}
