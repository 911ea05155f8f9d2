import type { Period } from '../../shared/schema/dates-and-durations.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import { estimateAddresses } from '../record/address-estimate.ts';
import {
  addressesField,
  admittedNumber,
  extraUnitsNumber,
  freeNumber,
  groupHourField,
  hoursField,
  invalidSecretField,
  invalidSecretNumber,
  nameIn,
  networkField,
  offeredNumber,
  outcomesField,
  refusedNumber,
  secretField,
  talliesOfHour,
  unauthorizedField,
  unauthorizedNumber,
  unitsField,
  withCosts,
} from '../record-fields.ts';
import { latestOf } from '../store/active-keys.ts';
import { type Counts, latest } from '../store/counts.ts';
import type { ActiveKey, RecordName, RecordRead, UsageStore } from '../store/usage-store.ts';
import { emptyTally, offeredOf, sumOf, type Tally, unitsOf } from '../tally.ts';
import { completeRecord, type UnsentRecord } from '../unsent-counts.ts';
import {
  daysOf,
  hourOfDay,
  hoursOfDay,
  hoursWithin,
  isWithin,
  minuteOfHour,
  minutesField,
  type UsageCalendar,
} from '../usage-calendar.ts';
import { createDeadSecretsReader, type DeadSecretsReader } from './dead-secrets-reader.ts';
import { createFailedUnitsReader, type FailedUnitsReader } from './failed-units.ts';
import { type KeyMinutes, KeyMinutesBuilder } from './key-minutes.ts';
import { createOperationsReader, type OperationsReader } from './operations-reader.ts';
import { createTrialReader, type TrialReader } from './trial-reader.ts';

/** Reads the usage record from the store, and adds the counts that this process has not sent yet. */
export interface UsageReader extends OperationsReader, FailedUnitsReader, TrialReader, DeadSecretsReader {
  /**
   * Returns the minutes with requests of a key, in ascending order. Minutes outside the period are left out.
   *
   * @param groups the names of the groups of operations whose requests are read, too
   */
  minutes(
    keyId: string,
    period: Period,
    groups?: readonly string[],
  ): Promise<readonly UsageMinute[] | undefined>;
  /** Returns the use of each secret of a key within the period, by the first digits of the secret's digest. */
  secretsUsed(
    keyId: string,
    digestStarts: readonly string[],
    period: Period,
  ): Promise<ReadonlyMap<string, SecretUse> | undefined>;
  /**
   * Returns the networks whose requests were refused because the key does not allow their address, by hour. The network
   * `*` stands for all networks that were not recorded separately.
   */
  refusedNetworks(keyId: string, period: Period): Promise<readonly RefusedNetwork[] | undefined>;
  /** Returns an estimate of the number of client addresses of a key, for each day of the period. */
  addresses(keyId: string, period: Period): Promise<readonly AddressesOfDay[] | undefined>;
  /**
   * Returns the usage of each key in the last 24 hours, including the current minute. The usage is `unknown` if the
   * record cannot be read now. A key that has neither a record nor an entry in the index of active keys is omitted.
   */
  recent(
    keyIds: readonly string[],
    nowMs: number,
  ): Promise<ReadonlyMap<string, RecentUsage | 'unknown'> | undefined>;
  /** Returns the requests of each key from `fromDay` to the day before `endDay`. Days are numbered since 1970. */
  requestsOf(
    keyIds: readonly string[],
    days: { readonly fromDay: number; readonly endDay: number },
  ): Promise<readonly Requests[] | undefined>;
  /**
   * Returns all minutes of each key in a period, in the order of the keys. A call should have few keys, because the
   * result is large.
   */
  minutesOf(keyIds: readonly string[], period: Period): Promise<readonly KeyMinutes[] | undefined>;
  /** Returns at most `usageActiveKeysMax` recently active keys, the most recently active key first. */
  active(): Promise<readonly ActiveKey[] | undefined>;
}

export interface UsageMinute {
  /** The beginning of the minute, epoch ms. */
  readonly atMs: number;
  readonly tally: Tally;
  /** Requests with an invalid secret of the key, which the tally does not include; absent without such requests. */
  readonly unauthorized?: number;
}

/** Timestamps are in epoch ms; 0 if the secret was not used. */
export interface SecretUse {
  /** The time of the decision on the last request with the secret. */
  readonly lastMs: number;
  /** The number of requests that used the secret while the secret was not valid. */
  readonly unauthorized: number;
  readonly lastUnauthorizedMs: number;
}

export interface RefusedNetwork {
  /** A CIDR range (`networkOf`), or `*`. */
  readonly network: string;
  readonly requests: number;
  readonly lastMs: number;
}

export interface AddressesOfDay {
  readonly atMs: number;
  readonly about: number;
}

export interface RecentUsage extends Requests {
  readonly lastSeenMs: number;
}

/** The requests of one key in a period of hours or days. */
export interface Requests {
  readonly offered: number;
  readonly admitted: number;
  /** The units that were charged to the windows. */
  readonly units: number;
}

/** The recorder of this process, which may be in another thread. */
export interface UnsentSource {
  unsent(
    records: readonly RecordName[],
  ): readonly (UnsentRecord | undefined)[] | Promise<readonly (UnsentRecord | undefined)[]>;
  lastSeen(): ReadonlyMap<string, number> | Promise<ReadonlyMap<string, number>>;
}

/** Reads records by field, and adds the counts that this process has not sent yet. */
function createRecordReader(
  store: Pick<UsageStore, 'read'>,
  recorder: Pick<UnsentSource, 'unsent'>,
  bounds: Pick<Bounds, 'usageReadsPerTurnMax'>,
) {
  return { read, readKnown };

  /** Undefined when the store does not return every record. */
  async function read(reads: readonly RecordRead[]): Promise<readonly Map<string, Counts>[] | undefined> {
    const records = (await readKnown(reads)) ?? [undefined];
    const known = records.filter((record) => record !== undefined);
    return known.length === records.length ? known : undefined;
  }

  /** A record is undefined when the store does not return it. */
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
    async minutes(keyId, { fromMs, toMs }, groups = []) {
      const first = Math.floor(fromMs / minuteMs);
      const last = Math.floor(toMs / minuteMs);
      const days = daysOf({ fromMs, toMs }, calendar);
      const records = await read(
        days.map((day) => {
          const ofGroups = groups.map((name) => (hour: number) => groupHourField(name, hour));
          const fields = [
            ...[minutesField, outcomesField, unitsField, unauthorizedField],
            ...ofGroups,
          ].flatMap((nameOf) => hoursOfDay.map(nameOf));
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

    async secretsUsed(keyId, digestStarts, period) {
      const days = daysOf(period, calendar);
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

    async refusedNetworks(keyId, period) {
      const days = daysOf(period, calendar);
      const records = await read(days.map((day) => ({ record: { kind: 'day', keyId, day } })));
      if (records === undefined) return undefined;
      const byNetwork = new Map<string, RefusedNetwork>();
      for (const [index, fields] of records.entries()) {
        const dayStartMs = (days[index] ?? 0) * dayMs;
        for (const [field, counts] of fields) {
          const network = nameIn(field, networkField);
          if (network === undefined) continue;
          let requests = byNetwork.get(network)?.requests ?? 0;
          for (let hour = 0; hour < dayMs / hourMs; hour++) {
            if (isWithin(dayStartMs + hour * hourMs, hourMs, period))
              requests += counts.get(refusedNumber(hour)) ?? 0;
          }
          const lastMs = dayStartMs + (counts.get(latest) ?? 0);
          if (requests > 0) byNetwork.set(network, { network, requests, lastMs });
        }
      }
      return [...byNetwork.values()].sort((a, b) => b.requests - a.requests);
    },

    async addresses(keyId, period) {
      const days = daysOf(period, calendar);
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
      const fields = [hoursField, minutesField(firstHour), outcomesField(firstHour), unitsField(firstHour)];
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
        // If a key sent no request today or yesterday, the time of its last request is in the index of active keys.
        let lastSeenMs = indexed?.[index] ?? 0;
        const ofDays = records.slice(2 * index, 2 * index + 2);
        for (const [place, day] of days.entries()) {
          const found = ofDays[place] ?? new Map<string, Counts>();
          const hours: Counts = found.get(hoursField) ?? new Map();
          if (hours.size > 0) lastSeenMs = day * dayMs + (hours.get(latest) ?? 0);
          const dayStart = (day * dayMs) / hourMs;
          for (let hour = Math.max(firstHour + 1, dayStart); hour < dayStart + dayMs / hourMs; hour++)
            addHour(sum, hours, hourOfDay(hour));
          // The last 24 hours begin in the middle of the first hour, so the earlier minutes of this hour are skipped.
          if (firstHour < dayStart || firstHour >= dayStart + dayMs / hourMs) continue;
          for (const [minute, tally] of talliesOfHour(found, firstHour)) {
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

    async minutesOf(keyIds, period) {
      const firstMinute = Math.floor(period.fromMs / minuteMs);
      const lastMinute = Math.floor(period.toMs / minuteMs);
      const days = daysOf(period, calendar).map((day) => {
        return { day, hours: hoursWithin(day, period, calendar) };
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
      // Most requests cost 1 unit. The costs of other requests are therefore read separately, only for the days with
      // such requests.
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
    ...createOperationsReader({ read, active, calendar }),
    ...createFailedUnitsReader({ readKnown, calendar }),
    ...createTrialReader({ read, calendar }),
    ...createDeadSecretsReader({ read, calendar }),
  };

  async function active(): Promise<readonly ActiveKey[] | undefined> {
    const known = await store.active();
    return known && latestOf(known, await recorder.lastSeen()).slice(0, bounds.usageActiveKeysMax);
  }

  function hoursIn(fields: ReadonlyMap<string, Counts>, firstHour: number): UsageMinute[] {
    return Array.from({ length: dayMs / hourMs }, (_, place) => firstHour + place).flatMap((hour) => {
      const tallies = talliesOfHour(fields, hour);
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
}

/** Adds the counts of one hour to the sum. `hours` is the field `hours` of a day's record. */
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

/** Merges minutes into rows of longer periods. @param startOf returns the beginning of the period of a time, epoch ms */
export function byPeriod(minutes: readonly UsageMinute[], startOf: (atMs: number) => number): UsageMinute[] {
  const groups = Map.groupBy(minutes, ({ atMs }) => startOf(atMs));
  return [...groups].map(([atMs, within]) => {
    const unauthorized = unauthorizedIn(within);
    const tally = sumOf(within.map(({ tally }) => tally));
    return { atMs, tally, ...(unauthorized > 0 && { unauthorized }) };
  });
}

export function unauthorizedIn(minutes: readonly UsageMinute[]): number {
  return minutes.reduce((sum, { unauthorized = 0 }) => sum + unauthorized, 0);
}
