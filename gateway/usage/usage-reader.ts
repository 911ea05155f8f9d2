import { bucketsSeconds, quantileMs } from '../shared/structures/histogram.ts';
import type { Bounds } from '../shared/timeouts-and-sizes.ts';
import { estimateAddresses } from './address-estimate.ts';
import { type KeyMinutes, KeyMinutesBuilder } from './key-minutes.ts';
import {
  addressesField,
  admittedNumber,
  clientErrorsNumber,
  durationNumber,
  extraUnitsNumber,
  freeNumber,
  hoursField,
  invalidSecretField,
  invalidSecretNumber,
  isOperationField,
  offeredNumber,
  operationField,
  operationInHour,
  requestsNumber,
  secretField,
  serverErrorsNumber,
  unauthorizedField,
  unauthorizedNumber,
  unitsField,
  withCosts,
} from './record-fields.ts';
import { type Counts, latest } from './store/counts.ts';
import type { ActiveKey, RecordName, RecordRead, UsageStore } from './store/usage-store.ts';
import { emptyTally, offeredOf, sumOf, type Tally, talliesIn, unitsOf } from './tally.ts';
import { byMinute, type TrafficEnding, trafficEndings, trafficField } from './traffic.ts';
import { completeRecord, type UnsentRecord } from './unsent-counts.ts';
import { hourOfDay, minuteOfHour, minutesField, type UsageCalendar } from './usage-calendar.ts';

/** Reads the usage record from the store, with the counts that this process has not sent yet. */
export interface UsageReader {
  /** The minutes of the period in which a key sent requests, in ascending order. */
  minutes(keyId: string, period: Period): Promise<readonly UsageMinute[] | undefined>;
  /** The calls of a key by operation and hour. */
  operationsOf(keyId: string, period: Period): Promise<readonly OperationHour[] | undefined>;
  /** The use of each secret of a key within the period, by the first digits of the secret's digest. */
  secretsUsed(
    keyId: string,
    digestStarts: readonly string[],
    period: Period,
  ): Promise<ReadonlyMap<string, SecretUse> | undefined>;
  /** About how many client addresses a key used, on each day of the period. */
  addresses(keyId: string, period: Period): Promise<readonly AddressesOfDay[] | undefined>;
  /**
   * The last 24 hours of each key, including the current minute. A key is `unknown` if its record cannot be read now. A key
   * that was not seen for as long as records are kept is left out.
   */
  recent(
    keyIds: readonly string[],
    nowMs: number,
  ): Promise<ReadonlyMap<string, RecentUsage | 'unknown'> | undefined>;
  /** The requests of each key from `fromDay` to the day before `endDay`. Days are numbered since 1970. */
  requestsOf(
    keyIds: readonly string[],
    days: { readonly fromDay: number; readonly endDay: number },
  ): Promise<readonly Requests[] | undefined>;
  /** All minutes of each key in a period, in the order of the keys. Ask for few keys at once. */
  minutesOf(keyIds: readonly string[], period: Period): Promise<readonly KeyMinutes[] | undefined>;
  /** The keys that were active last, latest first: at most `usageActiveKeysMax`. */
  active(): Promise<readonly ActiveKey[] | undefined>;
  /** The active keys that called an operation, with their calls. */
  callers(operationId: string, period: Period): Promise<readonly Caller[] | undefined>;
  /** The requests of all clients by minute, without empty minutes. */
  traffic(period: Period): Promise<readonly TrafficMinute[] | undefined>;
  /** All operations, each with its hours in the period. */
  operations(period: Period): Promise<readonly OperationUsage[] | undefined>;
}

/** Includes the whole minute, hour or day of both instants. Epoch ms on the store's clock. */
export interface Period {
  readonly fromMs: number;
  readonly toMs: number;
}

export interface UsageMinute {
  /** When it begins, epoch ms. */
  readonly atMs: number;
  readonly tally: Tally;
  /** Requests with an invalid secret of the key, which no tally counts. Absent when there were none. */
  readonly unauthorized?: number;
}

/** Instants are epoch ms; 0 where there is none. */
export interface SecretUse {
  /** The decision on the last request with the secret. */
  readonly lastMs: number;
  /** Requests with the secret while the secret was not valid. */
  readonly unauthorized: number;
  readonly lastUnauthorizedMs: number;
}

export interface OperationHour extends Calls {
  readonly operationId: string;
  readonly atMs: number;
}

export interface AddressesOfDay {
  readonly atMs: number;
  readonly about: number;
}

export interface RecentUsage extends Requests {
  readonly lastSeenMs: number;
}

export interface Calls {
  readonly requests: number;
  readonly clientErrors: number;
  readonly serverErrors: number;
}

/** The requests of one key over some hours or days. */
export interface Requests {
  readonly offered: number;
  readonly admitted: number;
  /** The units that the windows were charged. */
  readonly units: number;
}

export interface Caller extends Calls {
  readonly keyId: string;
  readonly lastMs: number;
}

export interface OperationUsage {
  /** Empty: requests that matched no operation. */
  readonly operationId: string;
  readonly requests: number;
  readonly byStatus: ReadonlyMap<number, number>;
  readonly own: Durations;
  readonly upstream: Durations;
  readonly lastMs: number;
}

export interface TrafficMinute {
  readonly atMs: number;
  readonly ended: Readonly<Record<TrafficEnding, number>>;
  readonly own: Buckets;
  readonly upstream: Buckets;
}

/** How many durations fell into each bucket of a histogram (`shared/structures/histogram.ts`). */
export type Buckets = readonly number[];

/** Percentiles are estimates from a histogram (`quantileMs`). Undefined when no duration was counted. */
export interface Durations {
  readonly meanMs: number | undefined;
  readonly p50Ms: number | undefined;
  readonly p99Ms: number | undefined;
}

/** The recorder of this process, which may be in another thread. */
export interface UnsentSource {
  unsent(
    records: readonly RecordName[],
  ): readonly (UnsentRecord | undefined)[] | Promise<readonly (UnsentRecord | undefined)[]>;
  lastSeen(): ReadonlyMap<string, number> | Promise<ReadonlyMap<string, number>>;
}

/** Reads records by field, with the counts that this process has not sent yet. */
function createRecordReader(
  store: Pick<UsageStore, 'read'>,
  recorder: Pick<UnsentSource, 'unsent'>,
  bounds: Pick<Bounds, 'usageReadsPerTurnMax'>,
) {
  return { read, readKnown };

  /** Undefined when the store does not answer for one of the records. */
  async function read(reads: readonly RecordRead[]): Promise<readonly Map<string, Counts>[] | undefined> {
    const records = (await readKnown(reads)) ?? [undefined];
    const known = records.filter((record) => record !== undefined);
    return known.length === records.length ? known : undefined;
  }

  /** A record is undefined when the store does not answer for it. */
  async function readKnown(
    reads: readonly RecordRead[],
  ): Promise<readonly (Map<string, Counts> | undefined)[] | undefined> {
    const found: (Map<string, Counts> | undefined)[] = [];
    for (let from = 0; from < reads.length; from += bounds.usageReadsPerTurnMax) {
      const part = reads.slice(from, from + bounds.usageReadsPerTurnMax);
      const stored = await store.read(part);
      if (stored === undefined) return undefined;
      const unsent = await recorder.unsent(part.map(({ record }) => record));
      for (const [index, { fields }] of part.entries()) {
        const known = stored[index];
        if (known === undefined) {
          found.push(undefined);
          continue;
        }
        const complete = completeRecord(known, unsent[index]);
        if (fields !== undefined) {
          for (const field of complete.keys()) if (!fields.includes(field)) complete.delete(field);
        }
        found.push(complete);
      }
    }
    return found;
  }
}

export function createUsageReader({
  store,
  recorder,
  calendar,
  bounds,
}: {
  readonly store: Pick<UsageStore, 'read' | 'active' | 'lastSeen'>;
  readonly recorder: UnsentSource;
  readonly calendar: UsageCalendar;
  readonly bounds: Pick<Bounds, 'usageActiveKeysMax' | 'usageReadsPerTurnMax'>;
}): UsageReader {
  const { minuteMs, hourMs, dayMs } = calendar;
  const { read, readKnown } = createRecordReader(store, recorder, bounds);

  return {
    async minutes(keyId, { fromMs, toMs }) {
      const first = Math.floor(fromMs / minuteMs);
      const last = Math.floor(toMs / minuteMs);
      const days = daysOf({ fromMs, toMs });
      const records = await read(
        days.map((day) => {
          const hours = Array.from({ length: dayMs / hourMs }, (_, hour) => hour);
          const fields = [minutesField, unitsField, unauthorizedField].flatMap((nameOf) => hours.map(nameOf));
          return { record: { kind: 'day', keyId, day }, fields };
        }),
      );
      return records?.flatMap((fields, index) => {
        const firstHour = ((days[index] ?? 0) * dayMs) / hourMs;
        return hoursIn(fields, firstHour).filter(
          ({ atMs }) => atMs >= first * minuteMs && atMs <= last * minuteMs,
        );
      });
    },

    async operationsOf(keyId, period) {
      const days = daysOf(period);
      const records = await read(days.map((day) => ({ record: { kind: 'day', keyId, day } })));
      return records?.flatMap((fields, index) =>
        [...fields].flatMap(([field, counts]) => {
          const operationId = operationIn(field);
          if (operationId === undefined) return [];
          return callsByHour(counts, (days[index] ?? 0) * dayMs)
            .filter(({ atMs }) => isWithin(atMs, hourMs, period))
            .map((calls) => ({ operationId, ...calls }));
        }),
      );
    },

    async secretsUsed(keyId, digestStarts, period) {
      const days = daysOf(period);
      const fields = [...digestStarts.map(secretField), ...digestStarts.map(invalidSecretField)];
      const records = await read(days.map((day) => ({ record: { kind: 'day', keyId, day }, fields })));
      if (records === undefined) return undefined;
      return new Map(
        digestStarts.map((digestStart) => {
          let [lastMs, unauthorized, lastUnauthorizedMs] = [0, 0, 0];
          for (const [index, day] of days.entries()) {
            const used = records[index]?.get(secretField(digestStart));
            if (used !== undefined) lastMs = day * dayMs + (used.get(latest) ?? 0);
            const invalid = records[index]?.get(invalidSecretField(digestStart));
            if (invalid === undefined) continue;
            unauthorized += invalid.get(invalidSecretNumber) ?? 0;
            lastUnauthorizedMs = day * dayMs + (invalid.get(latest) ?? 0);
          }
          return [digestStart, { lastMs, unauthorized, lastUnauthorizedMs }];
        }),
      );
    },

    async addresses(keyId, period) {
      const days = daysOf(period);
      const records = await read(
        days.map((day) => ({ record: { kind: 'day', keyId, day }, fields: [addressesField] })),
      );
      return records?.flatMap((fields, index) => {
        const bits = fields.get(addressesField)?.size ?? 0;
        return bits === 0 ? [] : [{ atMs: (days[index] ?? 0) * dayMs, about: estimateAddresses(bits) }];
      });
    },

    async recent(keyIds, nowMs) {
      const lastMinute = Math.floor(nowMs / minuteMs);
      const firstMinute = lastMinute - dayMs / minuteMs + 1;
      const firstHour = Math.floor((firstMinute * minuteMs) / hourMs);
      const today = Math.floor(nowMs / dayMs);
      const yesterday = today - 1;
      const days = [yesterday, today] as const;
      const fields = [hoursField, minutesField(firstHour), unitsField(firstHour)];
      const [records, indexed] = await Promise.all([
        readKnown(
          keyIds.flatMap((keyId): RecordRead[] =>
            days.map((day) => ({ record: { kind: 'day', keyId, day }, fields })),
          ),
        ),
        store.lastSeen(keyIds),
      ]);
      if (records === undefined) return undefined;
      const recent = new Map<string, RecentUsage | 'unknown'>();
      for (const [index, keyId] of keyIds.entries()) {
        const sum = { offered: 0, admitted: 0, units: 0 };
        // Only the index has the last request of a key that was not active since yesterday.
        let lastSeenMs = indexed?.[index] ?? 0;
        const ofDays = records.slice(2 * index, 2 * index + 2);
        for (const [place, day] of days.entries()) {
          const found = ofDays[place] ?? new Map<string, Counts>();
          const hours: Counts = found.get(hoursField) ?? new Map();
          if (hours.size > 0) lastSeenMs = day * dayMs + (hours.get(latest) ?? 0);
          const dayStart = (day * dayMs) / hourMs;
          for (let hour = Math.max(firstHour + 1, dayStart); hour < dayStart + dayMs / hourMs; hour++)
            addHour(sum, hours, hourOfDay(hour));
          // The last 24 hours begin within the first hour, so earlier minutes are left out.
          if (firstHour < dayStart || firstHour >= dayStart + dayMs / hourMs) continue;
          const counts: Counts = found.get(minutesField(firstHour)) ?? new Map();
          for (const [minute, tally] of talliesIn(counts, found.get(unitsField(firstHour)))) {
            if (minute < minuteOfHour(firstMinute)) continue;
            sum.offered += offeredOf(tally);
            sum.admitted += tally.admitted;
            sum.units += unitsOf(tally);
          }
        }
        const isUnknown = ofDays.includes(undefined) || (lastSeenMs === 0 && indexed === undefined);
        if (isUnknown) recent.set(keyId, 'unknown');
        else if (lastSeenMs > 0) recent.set(keyId, { ...sum, lastSeenMs });
      }
      return recent;
    },

    async requestsOf(keyIds, { fromDay, endDay }) {
      const days = Array.from({ length: Math.max(0, endDay - fromDay) }, (_, index) => fromDay + index);
      const records = await read(
        keyIds.flatMap((keyId): RecordRead[] =>
          days.map((day) => ({ record: { kind: 'day', keyId, day }, fields: [hoursField] })),
        ),
      );
      return (
        records &&
        keyIds.map((_, index) => {
          const sum = { offered: 0, admitted: 0, units: 0 };
          for (const fields of records.slice(index * days.length, (index + 1) * days.length)) {
            const hours = fields.get(hoursField);
            for (let hour = 0; hours !== undefined && hour < dayMs / hourMs; hour++)
              addHour(sum, hours, hour);
          }
          return sum;
        })
      );
    },

    async minutesOf(keyIds, { fromMs, toMs }) {
      const [firstMinute, lastMinute] = [Math.floor(fromMs / minuteMs), Math.floor(toMs / minuteMs)];
      const [firstHour, lastHour] = [Math.floor(fromMs / hourMs), Math.floor(toMs / hourMs)];
      const days = daysOf({ fromMs, toMs }).map((day) => {
        const start = (day * dayMs) / hourMs;
        const hours = Array.from({ length: dayMs / hourMs }, (_, place) => start + place);
        return { day, hours: hours.filter((hour) => hour >= firstHour && hour <= lastHour) };
      });
      const records = await read(
        keyIds.flatMap((keyId): RecordRead[] =>
          days.map(({ day, hours }) => ({
            record: { kind: 'day', keyId, day },
            fields: [hoursField, ...hours.map(minutesField)],
          })),
        ),
      );
      if (records === undefined) return undefined;
      // Few keys have costs, so their days are read again with the costs.
      const withUnits = records.flatMap((found, place) =>
        found.get(hoursField)?.has(withCosts) ? [place] : [],
      );
      const readAgain = await read(
        withUnits.map((place): RecordRead => {
          const { day, hours } = days[place % days.length] ?? { day: 0, hours: [] };
          const keyId = keyIds[Math.floor(place / days.length)] ?? '';
          const fields = [...hours.map(minutesField), ...hours.map(unitsField)];
          return { record: { kind: 'day', keyId, day }, fields };
        }),
      );
      if (readAgain === undefined) return undefined;
      const complete = [...records];
      for (const [index, place] of withUnits.entries()) complete[place] = readAgain[index] ?? new Map();
      return keyIds.map((_, index) => {
        const minutes = new KeyMinutesBuilder();
        for (const [place, { hours }] of days.entries()) {
          const found = complete[index * days.length + place];
          for (const hour of hours) {
            const counts = found?.get(minutesField(hour));
            const units = found?.get(unitsField(hour));
            const start = (hour * hourMs) / minuteMs;
            if (counts !== undefined) minutes.addHour({ counts, units }, start, firstMinute, lastMinute);
          }
        }
        return minutes.finish();
      });
    },

    active,

    async callers(operationId, period) {
      const keys = await active();
      if (keys === undefined) return undefined;
      const callers: Caller[] = [];
      const field = operationField(operationId);
      for (const day of daysOf(period)) {
        const possible = keys.filter(({ lastSeenMs }) => lastSeenMs >= day * dayMs);
        const records = await read(
          possible.map(({ keyId }) => ({ record: { kind: 'day', keyId, day }, fields: [field] })),
        );
        if (records === undefined) return undefined;
        for (const [index, { keyId }] of possible.entries()) {
          const counts = records[index]?.get(field);
          if (counts === undefined) continue;
          const hours = callsByHour(counts, day * dayMs).filter(({ atMs }) => isWithin(atMs, hourMs, period));
          const lastMs = day * dayMs + (counts.get(latest) ?? 0);
          if (hours.length > 0) callers.push({ keyId, ...sumOfCalls(hours), lastMs });
        }
      }
      return [...Map.groupBy(callers, ({ keyId }) => keyId)]
        .map(([keyId, days]) => {
          return { keyId, ...sumOfCalls(days), lastMs: Math.max(...days.map(({ lastMs }) => lastMs)) };
        })
        .sort((a, b) => b.requests - a.requests);
    },

    async traffic(period) {
      const days = daysOf(period);
      const records = await read(days.map((day) => ({ record: { kind: 'operations', day } })));
      return records?.flatMap((fields, index) => {
        const firstHour = ((days[index] ?? 0) * dayMs) / hourMs;
        return Array.from({ length: dayMs / hourMs }, (_, place) => firstHour + place)
          .flatMap((hour) => trafficOfHour(fields, hour))
          .filter(({ atMs }) => isWithin(atMs, minuteMs, period));
      });
    },

    async operations(period) {
      const days = daysOf(period);
      const records = await read(days.map((day) => ({ record: { kind: 'operations', day } })));
      if (records === undefined) return undefined;
      const byOperation = new Map<string, { counts: Counts; lastMs: number }>();
      for (const [index, fields] of records.entries()) {
        const dayStartMs = (days[index] ?? 0) * dayMs;
        for (const [field, counts] of fields) {
          if (!isOperationField(field)) continue;
          const { hour, operationId } = operationInHour(field);
          if (!isWithin(dayStartMs + hour * hourMs, hourMs, period)) continue;
          const known = byOperation.get(operationId) ?? { counts: new Map(), lastMs: 0 };
          byOperation.set(operationId, known);
          known.lastMs = Math.max(known.lastMs, dayStartMs + (counts.get(latest) ?? 0));
          for (const [number, value] of counts) {
            if (number !== latest) known.counts.set(number, (known.counts.get(number) ?? 0) + value);
          }
        }
      }
      return [...byOperation].map(([operationId, { counts, lastMs }]) =>
        toUsage(operationId, counts, lastMs),
      );
    },
  };

  async function active(): Promise<readonly ActiveKey[] | undefined> {
    const known = await store.active();
    if (known === undefined) return undefined;
    const all = new Map(known.map(({ keyId, lastSeenMs }) => [keyId, lastSeenMs]));
    for (const [keyId, lastSeenMs] of await recorder.lastSeen()) {
      all.set(keyId, Math.max(all.get(keyId) ?? 0, lastSeenMs));
    }
    return [...all]
      .map(([keyId, lastSeenMs]) => ({ keyId, lastSeenMs }))
      .sort((a, b) => b.lastSeenMs - a.lastSeenMs)
      .slice(0, bounds.usageActiveKeysMax);
  }

  function daysOf({ fromMs, toMs }: Period): number[] {
    const first = Math.floor(fromMs / dayMs);
    return Array.from({ length: Math.floor(toMs / dayMs) - first + 1 }, (_, index) => first + index);
  }

  function hoursIn(fields: ReadonlyMap<string, Counts>, firstHour: number): UsageMinute[] {
    return Array.from({ length: dayMs / hourMs }, (_, place) => firstHour + place).flatMap((hour) => {
      const tallies = talliesIn(fields.get(minutesField(hour)) ?? new Map(), fields.get(unitsField(hour)));
      const unauthorized: Counts = fields.get(unauthorizedField(hour)) ?? new Map();
      const minutes = new Set([...tallies.keys(), ...[...unauthorized.keys()].map((number) => number - 1)]);
      return [...minutes]
        .sort((a, b) => a - b)
        .map((minute) => {
          const requests = unauthorized.get(unauthorizedNumber(minute)) ?? 0;
          return {
            atMs: hour * hourMs + minute * minuteMs,
            tally: tallies.get(minute) ?? emptyTally,
            ...(requests > 0 && { unauthorized: requests }),
          };
        });
    });
  }

  function trafficOfHour(fields: ReadonlyMap<string, Counts>, hour: number): TrafficMinute[] {
    const own = byMinute(fields.get(trafficField('own', hour)), 'buckets');
    const upstream = byMinute(fields.get(trafficField('upstream', hour)), 'buckets');
    return [...byMinute(fields.get(trafficField('ended', hour)), 'endings')]
      .sort(([a], [b]) => a - b)
      .map(([minute, counts]) => ({
        atMs: hour * hourMs + minute * minuteMs,
        ended: Object.fromEntries(
          trafficEndings.map((ending, index) => [ending, counts[index] ?? 0]),
        ) as Record<TrafficEnding, number>,
        own: own.get(minute) ?? [],
        upstream: upstream.get(minute) ?? [],
      }));
  }

  function callsByHour(counts: Counts, dayStartMs: number): (Calls & { atMs: number })[] {
    return Array.from({ length: dayMs / hourMs }, (_, hour) => ({
      atMs: dayStartMs + hour * hourMs,
      requests: counts.get(requestsNumber(hour)) ?? 0,
      clientErrors: counts.get(clientErrorsNumber(hour)) ?? 0,
      serverErrors: counts.get(serverErrorsNumber(hour)) ?? 0,
    })).filter(({ requests }) => requests > 0);
  }
}

/** Whether any of the time from `atMs` on belongs to a period. */
function isWithin(atMs: number, lengthMs: number, { fromMs, toMs }: Period): boolean {
  return atMs + lengthMs > fromMs && atMs <= toMs;
}

/** Adds an hour of the day from the `hours` field. */
function addHour(
  sum: { offered: number; admitted: number; units: number },
  hours: Counts,
  hour: number,
): void {
  const admitted = hours.get(admittedNumber(hour)) ?? 0;
  sum.offered += hours.get(offeredNumber(hour)) ?? 0;
  sum.admitted += admitted;
  sum.units += admitted + (hours.get(extraUnitsNumber(hour)) ?? 0) - (hours.get(freeNumber(hour)) ?? 0);
}

function operationIn(field: string): string | undefined {
  const start = operationField('');
  return field.startsWith(start) ? field.slice(start.length) : undefined;
}

function sumOfCalls(all: readonly Calls[]): Calls {
  const sum = { requests: 0, clientErrors: 0, serverErrors: 0 };
  for (const { requests, clientErrors, serverErrors } of all) {
    sum.requests += requests;
    sum.clientErrors += clientErrors;
    sum.serverErrors += serverErrors;
  }
  return sum;
}

function toUsage(operationId: string, counts: Counts, lastMs: number): OperationUsage {
  const byStatus = new Map([...counts].filter(([number]) => number < durationNumber.own).sort());
  return {
    operationId,
    requests: [...byStatus.values()].reduce((sum, requests) => sum + requests, 0),
    byStatus,
    own: durationsIn(counts, durationNumber.own),
    upstream: durationsIn(counts, durationNumber.upstream),
    lastMs,
  };
}

function durationsIn(counts: Counts, first: number): Durations {
  const buckets = Array.from(
    { length: bucketsSeconds.length + 1 },
    (_, bucket) => counts.get(first + bucket) ?? 0,
  );
  const requests = buckets.reduce((sum, inBucket) => sum + inBucket, 0);
  const sumMs = counts.get(first + durationNumber.sum) ?? 0;
  const meanMs = requests === 0 ? undefined : Math.round((100 * sumMs) / requests) / 100;
  return { meanMs, ...percentilesOf(buckets) };
}

/** Undefined when no duration was counted. */
export function percentilesOf(buckets: Buckets): Omit<Durations, 'meanMs'> {
  if (buckets.every((inBucket) => inBucket === 0)) return { p50Ms: undefined, p99Ms: undefined };
  return { p50Ms: quantileMs(buckets, 0.5), p99Ms: quantileMs(buckets, 0.99) };
}

/** Rows of whole hours or days, made of minutes. */
export function byPeriod(minutes: readonly UsageMinute[], lengthMs: number): UsageMinute[] {
  const groups = Map.groupBy(minutes, ({ atMs }) => Math.floor(atMs / lengthMs) * lengthMs);
  return [...groups].map(([atMs, within]) => {
    const unauthorized = unauthorizedIn(within);
    const tally = sumOf(within.map(({ tally }) => tally));
    return { atMs, tally, ...(unauthorized > 0 && { unauthorized }) };
  });
}

export function unauthorizedIn(minutes: readonly UsageMinute[]): number {
  return minutes.reduce((sum, { unauthorized = 0 }) => sum + unauthorized, 0);
}
