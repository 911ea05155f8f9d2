import type { Period } from '../../shared/schema/dates-and-durations.ts';
import { deadAddressBits, estimateAddresses } from '../record/address-estimate.ts';
import { others } from '../record/key-usage.ts';
import {
  deadField,
  isDeadBit,
  nameIn,
  refusedNumber,
  unknownSecrets,
  unreadSecrets,
} from '../record-fields.ts';
import { type Counts, latest } from '../store/counts.ts';
import type { RecordRead } from '../store/usage-store.ts';
import { daysOf, hoursOfDay, isWithin, type UsageCalendar } from '../usage-calendar.ts';

/** Reads the requests with secrets that are not valid. */
export interface DeadSecretsReader {
  /**
   * Returns the requests with secrets that were not valid, by secret.
   *
   * @param period the hours that contain `fromMs` and `toMs`, and all hours in between
   */
  deadSecrets(period: Period): Promise<DeadSecrets | undefined>;
}

interface DeadSecrets {
  readonly secrets: readonly (DeadRequests & { readonly keyId: string; readonly digestStart: string })[];
  /** The requests with secrets of keys that were not recorded separately; undefined without such requests. */
  readonly others: DeadRequests | undefined;
  /** The requests with secrets that belong to no key; undefined without such requests. */
  readonly unknown: DeadRequests | undefined;
  /** The requests with secrets that could not be looked up; undefined without such requests. */
  readonly unread: DeadRequests | undefined;
}

/** Times are in epoch ms. */
export interface DeadRequests {
  readonly requests: number;
  /** The estimated number of client addresses on the days of the period. */
  readonly addresses: number;
  /** The beginning of the first hour with such a request. */
  readonly firstHourMs: number;
  readonly lastMs: number;
}

export function createDeadSecretsReader({
  read,
  calendar,
}: {
  readonly read: (reads: readonly RecordRead[]) => Promise<readonly Map<string, Counts>[] | undefined>;
  readonly calendar: UsageCalendar;
}): DeadSecretsReader {
  const { hourMs, dayMs } = calendar;

  return {
    async deadSecrets(period) {
      const days = daysOf(period, calendar);
      const records = await read(days.map((day) => ({ record: { kind: 'operations', day } })));
      if (records === undefined) return undefined;
      const found = new Map<string, DeadRequests & { readonly bits: ReadonlySet<number> }>();
      for (const [index, fields] of records.entries()) {
        for (const [field, counts] of fields) {
          const name = nameIn(field, deadField);
          if (name === undefined) continue;
          const ofDay = requestsOn((days[index] ?? 0) * dayMs, counts, period);
          if (ofDay.requests === 0) continue;
          const before = found.get(name);
          const bits = new Set([...(before?.bits ?? []), ...[...counts.keys()].filter(isDeadBit)]);
          found.set(name, {
            ...ofDay,
            requests: ofDay.requests + (before?.requests ?? 0),
            firstHourMs: before?.firstHourMs ?? ofDay.firstHourMs,
            addresses: estimateAddresses(bits.size, deadAddressBits),
            bits,
          });
        }
      }
      const {
        [others]: further,
        [unknownSecrets]: unknown,
        [unreadSecrets]: unread,
        ...named
      } = Object.fromEntries(
        [...found].map(([name, { bits: _, ...requests }]) => [name, requests]),
      ) as Record<string, DeadRequests | undefined>;
      const secrets = Object.entries(named).flatMap(([name, requests]) => {
        const colon = name.indexOf(':');
        const [digestStart, keyId] = [name.slice(0, colon), name.slice(colon + 1)];
        return requests === undefined ? [] : [{ keyId, digestStart, ...requests }];
      });
      return { secrets: secrets.sort((a, b) => b.requests - a.requests), others: further, unknown, unread };
    },
  };

  function requestsOn(dayStartMs: number, counts: Counts, period: Period) {
    const hours = hoursOfDay.filter(
      (hour) =>
        isWithin(dayStartMs + hour * hourMs, hourMs, period) && (counts.get(refusedNumber(hour)) ?? 0) > 0,
    );
    return {
      requests: hours.reduce((sum, hour) => sum + (counts.get(refusedNumber(hour)) ?? 0), 0),
      firstHourMs: dayStartMs + (hours[0] ?? 0) * hourMs,
      lastMs: dayStartMs + (counts.get(latest) ?? 0),
    };
  }
}
