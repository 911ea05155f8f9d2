import type { Period } from '../../shared/schema/dates-and-durations.ts';
import { bucketsSeconds, quantileMs } from '../../shared/structures/histogram.ts';
import {
  clientErrorsNumber,
  durationNumber,
  isOperationField,
  nameIn,
  operationField,
  operationInHour,
  refusalField,
  refusedNumber,
  requestsNumber,
  serverErrorsNumber,
} from '../record-fields.ts';
import { type Counts, latest } from '../store/counts.ts';
import type { ActiveKey, RecordRead } from '../store/usage-store.ts';
import { byMinute, type TrafficEnding, trafficEndings, trafficField } from '../traffic.ts';
import { daysOf, isWithin, type UsageCalendar } from '../usage-calendar.ts';

/** Reads the counts of each operation from the usage record. */
export interface OperationsReader {
  /** Returns the calls of a key by operation and hour, for all operations or only the named operations. */
  operationsOf(
    keyId: string,
    period: Period,
    operationIds?: readonly string[],
  ): Promise<readonly OperationHour[] | undefined>;
  /**
   * Returns the requests of a key that capabilities refused, by the name under which they are counted, and by operation.
   *
   * @param names the names of the counted refusals to read
   * @param period the hours that contain `fromMs` and `toMs`, and all hours in between
   */
  refusalsOf(
    keyId: string,
    names: readonly string[],
    period: Period,
  ): Promise<readonly RefusedCalls[] | undefined>;
  /**
   * Returns the active keys that called each operation, with the number of their calls. Each key costs one read for each
   * day, however many operations are asked for.
   *
   * @param refusals the names of the counted refusals to read
   * @returns the callers of each operation, the most active first
   */
  callers(
    operationIds: readonly string[],
    period: Period,
    refusals: readonly string[],
  ): Promise<ReadonlyMap<string, readonly Caller[]> | undefined>;
  /** Returns the requests of all clients by minute, without empty minutes. */
  traffic(period: Period): Promise<readonly TrafficMinute[] | undefined>;
  /** Returns all recorded operations, each with its hours in the period. */
  operations(period: Period): Promise<readonly OperationUsage[] | undefined>;
}

export interface OperationHour extends Calls {
  readonly operationId: string;
  readonly atMs: number;
}

/** The requests of one key for one operation that a capability refused. */
export interface RefusedCalls {
  /** The name under which the refusals are counted. */
  readonly name: string;
  readonly operationId: string;
  readonly requests: number;
}

interface Calls {
  readonly requests: number;
  readonly clientErrors: number;
  readonly serverErrors: number;
}

export interface Caller extends Calls {
  readonly keyId: string;
  readonly lastMs: number;
  /** The counted refusals, by their name. A name without refusals is absent. */
  readonly refusals: ReadonlyMap<string, CountedRefusals>;
}

/** The number of requests that were refused, and the time of the last refusal. */
interface CountedRefusals {
  readonly requests: number;
  readonly lastMs: number;
}

export interface OperationUsage {
  /** The id of the operation; empty for requests that matched no operation. */
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

/** The number of durations in each bucket of a histogram (`shared/structures/histogram.ts`). */
export type Buckets = readonly number[];

/**
 * The mean duration, and percentiles that are estimated from a histogram (`quantileMs`). All members are undefined when
 * no duration was counted.
 */
export interface Durations {
  readonly meanMs: number | undefined;
  readonly p50Ms: number | undefined;
  readonly p95Ms: number | undefined;
  readonly p99Ms: number | undefined;
}

export function createOperationsReader({
  read,
  active,
  calendar,
}: {
  readonly read: (reads: readonly RecordRead[]) => Promise<readonly Map<string, Counts>[] | undefined>;
  readonly active: () => Promise<readonly ActiveKey[] | undefined>;
  readonly calendar: UsageCalendar;
}): OperationsReader {
  const { minuteMs, hourMs, dayMs } = calendar;

  return {
    async operationsOf(keyId, period, operationIds) {
      const days = daysOf(period, calendar);
      const fields = operationIds?.map(operationField);
      const records = await read(days.map((day) => ({ record: { kind: 'day', keyId, day }, fields })));
      return records?.flatMap((fields, index) =>
        [...fields].flatMap(([field, counts]) => {
          const operationId = nameIn(field, operationField);
          if (operationId === undefined) return [];
          return callsByHour(counts, (days[index] ?? 0) * dayMs)
            .filter(({ atMs }) => isWithin(atMs, hourMs, period))
            .map((calls) => ({ operationId, ...calls }));
        }),
      );
    },

    async refusalsOf(keyId, names, period) {
      const days = daysOf(period, calendar);
      const records = await read(days.map((day) => ({ record: { kind: 'day', keyId, day } })));
      return records?.flatMap((fields, index) =>
        [...fields].flatMap(([field, counts]) =>
          names.flatMap((name) => {
            const operationId = nameIn(field, (id) => refusalField(name, id));
            if (operationId === undefined) return [];
            const requests = refusedIn(counts, (days[index] ?? 0) * dayMs, period);
            return requests === 0 ? [] : [{ name, operationId, requests }];
          }),
        ),
      );
    },

    async callers(operationIds, period, refusals) {
      const keys = await active();
      if (keys === undefined) return undefined;
      const days = new Map(operationIds.map((id): [string, Caller[]] => [id, []]));
      const fields = operationIds.flatMap((id) => [
        operationField(id),
        ...refusals.map((name) => refusalField(name, id)),
      ]);
      for (const day of daysOf(period, calendar)) {
        const possible = keys.filter(({ lastSeenMs }) => lastSeenMs >= day * dayMs);
        const records = await read(
          possible.map(({ keyId }) => ({ record: { kind: 'day', keyId, day }, fields })),
        );
        if (records === undefined) return undefined;
        for (const [index, { keyId }] of possible.entries()) {
          for (const [operationId, ofOperation] of days) {
            const ofDay = callsOfDay(records[index], { operationId, day, period, refusals });
            if (ofDay !== undefined) ofOperation.push({ keyId, ...ofDay });
          }
        }
      }
      return new Map([...days].map(([operationId, ofOperation]) => [operationId, sumByKey(ofOperation)]));
    },

    async traffic(period) {
      const days = daysOf(period, calendar);
      const records = await read(days.map((day) => ({ record: { kind: 'operations', day } })));
      return records?.flatMap((fields, index) => {
        const firstHour = ((days[index] ?? 0) * dayMs) / hourMs;
        return Array.from({ length: dayMs / hourMs }, (_, place) => firstHour + place)
          .flatMap((hour) => trafficOfHour(fields, hour))
          .filter(({ atMs }) => isWithin(atMs, minuteMs, period));
      });
    },

    async operations(period) {
      const days = daysOf(period, calendar);
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

  /** Returns what a key called of an operation on a day; undefined without a call in the period. */
  function callsOfDay(
    record: ReadonlyMap<string, Counts> | undefined,
    {
      operationId,
      day,
      period,
      refusals,
    }: {
      readonly operationId: string;
      readonly day: number;
      readonly period: Period;
      readonly refusals: readonly string[];
    },
  ): Omit<Caller, 'keyId'> | undefined {
    const counts = record?.get(operationField(operationId));
    if (counts === undefined) return undefined;
    const dayStartMs = day * dayMs;
    const hours = callsByHour(counts, dayStartMs).filter(({ atMs }) => isWithin(atMs, hourMs, period));
    if (hours.length === 0) return undefined;
    const counted = refusals.flatMap((name): [string, CountedRefusals][] => {
      const refused = record?.get(refusalField(name, operationId));
      const requests = refused === undefined ? 0 : refusedIn(refused, dayStartMs, period);
      return requests === 0 ? [] : [[name, { requests, lastMs: dayStartMs + (refused?.get(latest) ?? 0) }]];
    });
    const lastMs = dayStartMs + (counts.get(latest) ?? 0);
    return { ...sumOfCalls(hours), lastMs, refusals: new Map(counted) };
  }

  /** The number of refused requests in the hours of a period. */
  function refusedIn(counts: Counts, dayStartMs: number, period: Period): number {
    let requests = 0;
    for (let hour = 0; hour < dayMs / hourMs; hour++) {
      if (isWithin(dayStartMs + hour * hourMs, hourMs, period))
        requests += counts.get(refusedNumber(hour)) ?? 0;
    }
    return requests;
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

/** Adds up the days of each key. The key with the most requests comes first. */
function sumByKey(all: readonly Caller[]): Caller[] {
  return [...Map.groupBy(all, ({ keyId }) => keyId)]
    .map(([keyId, days]) => ({
      keyId,
      ...sumOfCalls(days),
      lastMs: Math.max(...days.map(({ lastMs }) => lastMs)),
      refusals: sumOfRefusals(days),
    }))
    .sort((a, b) => b.requests - a.requests);
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

function sumOfRefusals(days: readonly Pick<Caller, 'refusals'>[]): Map<string, CountedRefusals> {
  const sum = new Map<string, CountedRefusals>();
  for (const [name, { requests, lastMs }] of days.flatMap(({ refusals }) => [...refusals])) {
    const { requests: earlier = 0, lastMs: earlierMs = 0 } = sum.get(name) ?? {};
    sum.set(name, { requests: earlier + requests, lastMs: Math.max(earlierMs, lastMs) });
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

/** Estimates percentiles from a histogram. The percentiles are undefined when no duration was counted. */
export function percentilesOf(buckets: Buckets): Omit<Durations, 'meanMs'> {
  const isEmpty = buckets.every((inBucket) => inBucket === 0);
  const percentile = (share: number) => (isEmpty ? undefined : quantileMs(buckets, share));
  return { p50Ms: percentile(0.5), p95Ms: percentile(0.95), p99Ms: percentile(0.99) };
}
