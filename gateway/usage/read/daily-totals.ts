import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import { groupCounts } from '../groups.ts';
import {
  dayOutcomesField,
  daysField,
  dayUnitsField,
  groupField,
  groupsIn,
  talliesOfHour,
} from '../record-fields.ts';
import { addPacked, type Counts, type PackedCounts, packCounts } from '../store/counts.ts';
import type { Fields, RecordName, StoredRecord, UsageStore } from '../store/usage-store.ts';
import {
  firstOutcomes,
  laterNumber,
  outcomes,
  sumOf,
  type Tally,
  talliesIn,
  tallyNumber,
  unitsNumber,
} from '../tally.ts';
import { hoursOfDay, type UsageCalendar } from '../usage-calendar.ts';

/** Days are numbered since 1970. */
export type DailyTotals = ReadonlyMap<number, Tally>;

/** Stores the daily totals of keys, because the counts of each minute are deleted earlier. */
export interface DailyTotalsKeeper {
  /** Called when a key sends requests on a new day, so that its earlier days are added to its totals. */
  enqueue(keyId: string): void;
  close(): void;
}

/** How long totals are kept. The time is rounded up to whole months, because one field contains one month. */
export const totalsKeptDays = 400;

/** All processes send totals under this name. The number of the day is the number of the batch, so the store adds each day only once. */
const sender = 'days';

/**
 * Adds the counts of a key's day to the totals, one full day after the end of that day. The delay of one day lets every
 * process send its counts first. The totals of a key are updated when the key sends requests on a new day. Once a day,
 * the totals of all recently active keys are also updated.
 */
export function createDailyTotals({
  store,
  calendar,
  keepDays,
  nowMs,
  bounds,
}: {
  readonly store: UsageStore;
  readonly calendar: UsageCalendar;
  readonly keepDays: number;
  readonly nowMs: () => number;
  readonly bounds: Pick<Bounds, 'usageTotalsPauseMs' | 'usageTotalsWaitingMax'>;
}): DailyTotalsKeeper {
  const { dayMs } = calendar;
  const waiting = new Set<string>();
  let walkedDay = 0;
  let isBusy = false;
  const timer = setInterval(() => void addNext(), bounds.usageTotalsPauseMs).unref();

  return {
    enqueue(keyId) {
      if (waiting.size < bounds.usageTotalsWaitingMax) waiting.add(keyId);
    },
    close() {
      clearInterval(timer);
    },
  };

  async function addNext(): Promise<void> {
    if (isBusy) return;
    isBusy = true;
    await walk();
    const [keyId] = waiting;
    if (keyId !== undefined) {
      waiting.delete(keyId);
      // A key whose write failed moves to the end of the queue, because the Redis servers of other keys may be
      // available.
      if (!(await addDays(keyId))) waiting.add(keyId);
    }
    isBusy = false;
  }

  /** Enqueues all recently active keys, once a day and when the process starts. */
  async function walk(): Promise<void> {
    const today = Math.floor(nowMs() / dayMs);
    if (walkedDay === today) return;
    const active = await store.active();
    if (active === undefined) return;
    walkedDay = today;
    for (const { keyId, lastSeenMs } of active) {
      if (lastSeenMs >= (today - keepDays - 1) * dayMs && waiting.size < bounds.usageTotalsWaitingMax) {
        waiting.add(keyId);
      }
    }
  }

  async function addDays(keyId: string): Promise<boolean> {
    const lastDay = Math.floor(nowMs() / dayMs) - 2;
    const totals: RecordName = { kind: 'totals', keyId };
    if (store.pausedBecause(totals) !== undefined) return false;
    const [known] = (await store.read([{ record: totals }])) ?? [];
    if (known === undefined) return false;
    const firstDay = Math.max((known.batches.get(sender) ?? 0) + 1, lastDay - keepDays);
    // All days of a new key are unread, so the function reads the days in one turn.
    const days = Array.from({ length: Math.max(0, lastDay - firstDay + 1) }, (_, index) => firstDay + index);
    const records =
      days.length === 0 ? [] : await store.read(days.map((day) => ({ record: { kind: 'day', keyId, day } })));
    for (const [index, day] of days.entries()) {
      const record = records?.[index];
      if (record === undefined) return false;
      const tally = tallyOf(record.fields);
      if (tally === undefined) continue;
      const fields = fieldsOf(day, tally);
      const expiresMs = nowMs() + totalsKeptDays * dayMs;
      if ((await store.add({ record: totals, sender, number: day, fields, expiresMs })) === 'failed')
        return false;
    }
    const oldest = monthOf(lastDay - totalsKeptDays).month;
    return store.remove(
      totals,
      [...known.fields.keys()].filter((field) => monthIn(field) < oldest),
    );
  }
}

/**
 * Reads all days of each key, or the days of one month such as 2026-11. The result is undefined when the store does not
 * return the totals of every key.
 */
export async function readTotals(
  { read }: Pick<UsageStore, 'read'>,
  keyIds: readonly string[],
  { month, atOnce }: { readonly month?: string | undefined; readonly atOnce: number },
): Promise<readonly DailyTotals[] | undefined> {
  const fields =
    month === undefined ? {} : { fields: [daysField(month), dayOutcomesField(month), dayUnitsField(month)] };
  const found: DailyTotals[] = [];
  for (let from = 0; from < keyIds.length; from += atOnce) {
    const part = keyIds.slice(from, from + atOnce);
    const records = await read(part.map((keyId) => ({ record: { kind: 'totals', keyId }, ...fields })));
    const known = records?.filter((record) => record !== undefined);
    if (known?.length !== part.length) return undefined;
    found.push(...known.map(daysIn));
  }
  return found;
}

function daysIn({ fields }: StoredRecord): DailyTotals {
  const days = new Map<number, Tally>();
  const counts = unpackFields(fields);
  for (const month of new Set([...fields.keys()].map(monthIn))) {
    const tallies = talliesIn({
      counts: counts.get(daysField(month)),
      later: counts.get(dayOutcomesField(month)),
      units: counts.get(dayUnitsField(month)),
      groups: groupsIn(counts, month),
    });
    for (const [place, tally] of tallies) days.set(firstDayOf(month) + place, tally);
  }
  return days;
}

function monthIn(field: string): string {
  return field.slice(field.indexOf(':') + 1);
}

function fieldsOf(day: number, tally: Tally): Map<string, PackedCounts> {
  const { month, place } = monthOf(day);
  const [counts, later]: [Counts, Counts] = [new Map(), new Map()];
  for (const [index, outcome] of outcomes.entries()) {
    if (tally[outcome] === 0) continue;
    if (index < firstOutcomes) counts.set(tallyNumber(place, index), tally[outcome]);
    else later.set(laterNumber(place, index), tally[outcome]);
  }
  const fields = [
    [daysField(month), counts],
    [dayOutcomesField(month), later],
    [dayUnitsField(month), unitsIn(tally, place)],
    ...[...(tally.groups ?? [])].map(
      ([name, ofGroup]) => [groupField(name, month), groupCounts(place, ofGroup)] as const,
    ),
  ] as const;
  return new Map(
    fields.flatMap(([field, counts]) => (counts.size > 0 ? [[field, packCounts(counts)] as const] : [])),
  );
}

function unitsIn({ extraUnits, free }: Tally, place: number): Counts {
  const numbers = unitsNumber(place, 0);
  const counts: Counts = new Map();
  if (extraUnits > 0) counts.set(numbers.extra, extraUnits);
  if (free > 0) counts.set(numbers.free, free);
  return counts;
}

function unpackFields(fields: Fields): ReadonlyMap<string, Counts> {
  return new Map(
    [...fields].map(([field, packed]) => {
      const counts: Counts = new Map();
      addPacked(counts, packed);
      return [field, counts];
    }),
  );
}

/** Returns the number of the first day of a month such as 2026-11. */
export function firstDayOf(month: string): number {
  return Date.parse(`${month}-01T00:00:00Z`) / 86_400_000;
}

/** Returns the next month, for example 2027-01 for 2026-12. */
export function monthAfter(month: string): string {
  return monthOf(firstDayOf(month) + 31).month;
}

/** Returns the sum of all minutes in the record of a day; undefined without requests. */
function tallyOf(fields: Fields): Tally | undefined {
  if (fields.size === 0) return undefined;
  const counts = unpackFields(fields);
  const tallies = hoursOfDay.flatMap((hour) => [...talliesOfHour(counts, hour).values()]);
  return tallies.length === 0 ? undefined : sumOf(tallies);
}

/** Returns the month of a day, such as 2026-11, and the day's position in the month from 0. */
function monthOf(day: number): { readonly month: string; readonly place: number } {
  const date = new Date(day * 86_400_000).toISOString();
  return { month: date.slice(0, 7), place: Number(date.slice(8, 10)) - 1 };
}
