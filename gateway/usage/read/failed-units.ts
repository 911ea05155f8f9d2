import type { Period } from '../../shared/schema/dates-and-durations.ts';
import { others } from '../record/key-usage.ts';
import {
  type Bucket,
  failedField,
  failedGroupsNumber,
  failedHourNumber,
  failedIn,
  failedNumber,
  hoursField,
} from '../record-fields.ts';
import type { Counts } from '../store/counts.ts';
import type { RecordRead } from '../store/usage-store.ts';
import { daysOf, hourOfDay, hoursWithin, isWithin, type UsageCalendar } from '../usage-calendar.ts';

/** Reads the failed units of keys: the units of requests whose 5xx or cut the gateway or the upstream caused. */
export interface FailedUnitsReader {
  /**
   * Returns the failed units of each key by hour, bucket and upstream, in the order of the ids. The element of a key is undefined if its record
   * cannot be read. The whole result is undefined if the store does not answer.
   *
   * @param period the minutes that contain `fromMs` and `toMs`, and all minutes in between
   * @param options.known the names of the upstreams that are read first. If they do not account for all failed units of a key, or if a
   *   group has failed units, the whole record of the key's day is read.
   * @param options.only reads the failed units of this upstream only
   */
  failedUnits(
    keyIds: readonly string[],
    period: Period,
    options: { readonly known: readonly string[]; readonly only?: string | undefined },
  ): Promise<readonly (readonly FailedHour[] | undefined)[] | undefined>;
}

/** The units that failed requests have charged to one bucket of a key in one hour at one upstream. */
export interface FailedHour {
  readonly bucket: Bucket;
  /** The number of the hour since 1970. */
  readonly hour: number;
  /** The name of the upstream, or `*` for upstreams that are not recorded separately. */
  readonly upstream: string;
  /** At least one minute, in ascending order. `minute` is the position in the hour, from 0 to 59. */
  readonly minutes: readonly { readonly minute: number; readonly units: number }[];
}

type Records = readonly (ReadonlyMap<string, Counts> | undefined)[];

export function createFailedUnitsReader({
  readKnown,
  calendar,
}: {
  /** Reads records. A record is undefined if it cannot be read. The result is undefined if the store does not answer. */
  readonly readKnown: (reads: readonly RecordRead[]) => Promise<Records | undefined>;
  readonly calendar: UsageCalendar;
}): FailedUnitsReader {
  const { minuteMs, hourMs } = calendar;

  return {
    async failedUnits(keyIds, period, { known, only }) {
      const ofDays = keyIds.flatMap((keyId) => daysOf(period, calendar).map((day) => ({ keyId, day })));
      const sums = await readKnown(ofDays.map((one) => ({ record: recordOf(one), fields: [hoursField] })));
      if (sums === undefined) return undefined;
      const unread = new Set(
        ofDays.flatMap(({ keyId }, index) => (sums[index] === undefined ? [keyId] : [])),
      );
      const failing = ofDays.flatMap((one, index) => failingDay(one, sums[index]?.get(hoursField), period));
      const names = only === undefined ? [...known, others] : [only];
      const first = await readDays(failing, names);
      // The configuration may no longer have an upstream with failed units.
      const isWhole = (one: FailingDay) =>
        !one.hasGroups && (only !== undefined || unitsIn(first.get(one) ?? []) >= one.units);
      const second = await readDays(failing.filter((one) => first.get(one) !== undefined && !isWhole(one)));
      const found = new Map<string, FailedHour[]>(keyIds.map((keyId) => [keyId, []]));
      for (const one of failing) {
        const hours = second.has(one) ? second.get(one) : first.get(one);
        if (hours === undefined) unread.add(one.keyId);
        else {
          const wanted = hours.filter(({ upstream }) => only === undefined || upstream === only);
          found.get(one.keyId)?.push(...wanted.flatMap((hour) => partIn(period, hour)));
        }
      }
      return keyIds.map((keyId) => (unread.has(keyId) ? undefined : found.get(keyId)));
    },
  };

  function failingDay(
    { keyId, day }: OfDay,
    sums: Counts | undefined,
    period: Period,
  ): readonly FailingDay[] {
    const hours = hoursWithin(day, period, calendar).filter((hour) => sums?.has(failedHourNumber(hour)));
    const units = hours.reduce((sum, hour) => sum + (sums?.get(failedHourNumber(hour)) ?? 0), 0);
    const hasGroups = hours.some((hour) => sums?.has(failedGroupsNumber(hour)));
    return hours.length === 0 ? [] : [{ keyId, day, hours, units, hasGroups }];
  }

  /**
   * Reads the failed units of whole hours.
   *
   * @param names the upstreams to read; undefined reads all of them
   * @returns undefined for a day whose record cannot be read
   */
  async function readDays(
    days: readonly FailingDay[],
    names?: readonly string[],
  ): Promise<ReadonlyMap<FailingDay, readonly FailedHour[] | undefined>> {
    const records = await readKnown(
      days.map((one) => ({
        record: recordOf(one),
        fields: names && one.hours.flatMap((hour) => fieldsOf(hour, names)),
      })),
    );
    return new Map(days.map((one, index) => [one, hoursIn(one, records?.[index])]));
  }

  /** Returns the minutes of an hour that belong to the period; an empty list if there are none. */
  function partIn(period: Period, { hour, minutes, ...of }: FailedHour): readonly FailedHour[] {
    const startMs = hour * hourMs;
    const within = minutes.filter(({ minute }) => isWithin(startMs + minute * minuteMs, minuteMs, period));
    return within.length === 0 ? [] : [{ ...of, hour, minutes: within }];
  }
}

interface OfDay {
  readonly keyId: string;
  readonly day: number;
}

interface FailingDay extends OfDay {
  readonly hours: readonly number[];
  /** The failed units of the plan in these hours. */
  readonly units: number;
  /** Whether groups have failed units in these hours. */
  readonly hasGroups: boolean;
}

function recordOf({ keyId, day }: OfDay): RecordRead['record'] {
  return { kind: 'day', keyId, day };
}

function hoursIn(
  { hours }: FailingDay,
  record: ReadonlyMap<string, Counts> | undefined,
): readonly FailedHour[] | undefined {
  return (
    record &&
    [...record].flatMap(([field, counts]) => {
      const failed = failedIn(field);
      const hour = hours.find((one) => hourOfDay(one) === failed?.hour);
      if (failed === undefined || hour === undefined) return [];
      const { bucket, upstream } = failed;
      return [{ bucket, hour, upstream, minutes: minutesIn(counts) }];
    })
  );
}

function fieldsOf(hour: number, upstreams: readonly string[]): readonly string[] {
  return ['plan', 'trial'].flatMap((bucket) =>
    upstreams.map((upstream) => failedField(hour, upstream, bucket)),
  );
}

function minutesIn(counts: Counts): FailedHour['minutes'] {
  return [...counts]
    .map(([number, units]) => ({ minute: number - failedNumber(0), units }))
    .sort((a, b) => a.minute - b.minute);
}

/** Returns the sum of the failed units of the plan. */
export function unitsIn(hours: readonly FailedHour[]): number {
  return hours
    .filter(({ bucket }) => bucket === 'plan')
    .reduce((sum, { minutes }) => minutes.reduce((all, { units }) => all + units, sum), 0);
}
