import type { Counts } from './store/counts.ts';
import { type Tally, talliesIn } from './tally.ts';
import { hourOfDay, hourText, minuteOfHour, minutesField } from './usage-calendar.ts';

/**
 * The fields of a record and the numbers in each field. In each field, number 0 is the latest timestamp (`counts.ts`), in ms since the
 * beginning of the day.
 *
 * | record | field | numbers |
 * |---|---|---|
 * | a key's day | `minutes:<hour>` | requests by minute, with the first eight outcomes (`tally.ts`) |
 * | | `outcomes:<hour>` | requests by minute, with the later outcomes (`laterNumber`) |
 * | | `units:<hour>` | extra units and free requests by minute and outcome (`unitsNumber`) |
 * | | `hours` | by hour: requests, admitted requests, and extra units and free requests among the admitted requests; `withCosts`; 0: the last decision |
 * | | `hours` | 98 to 121: failed units of the plan by hour, without names of upstreams; 122 to 145: those of all groups of the plan and the trial |
 * | | `failed:<hour>:<upstream>` | failed units by minute: units of admitted requests whose 5xx or cut the gateway or the upstream caused |
 * | | `failed/<bucket>:<hour>:<upstream>` | the units that such requests charged to another bucket than the plan, by minute: `trial`, a group, or `trial.<group>` |
 * | | `operation:<id>` | requests, 4xx and 5xx by hour; 0: the last decision |
 * | | `<name>:<id>` | by hour: requests for the operation whose refusal a capability counts under this name; 0: the last decision |
 * | | `secret:<digest>` | 0: the last decision on a request with this secret (`<digest>`: first 8 digits) |
 * | | `unauthorized:<hour>` | requests with an invalid secret of the key, by minute |
 * | | `invalid:<digest>` | 1: requests with this invalid secret; 0: the last arrival |
 * | | `network:<network>` | by hour: requests from this network, which the key does not allow; 0: the last arrival |
 * | | `trial:<hour>:<trial>` | requests by minute and by the outcome that this trial of the plan decided (`trial.ts`) |
 * | | `group/<name>:<hour>` | requests and units of the group's operations by minute, and refusals by the group's windows (`groups.ts`) |
 * | | `addresses` | the bits of the client addresses (`record/address-estimate.ts`) |
 * | operations | `dead:<digest>:<key id>` | requests with this secret by hour, while it was not valid; bits of their addresses (`deadBitNumber`); 0: the last arrival |
 * | | `dead:*`, `dead:unknown`, `dead:unread` | the same, of all further such secrets, of all secrets that belong to no key, and of all secrets that could not be looked up |
 * | | `ended:<hour>` | requests of all clients by minute and ending (`traffic.ts`) |
 * | | `own:<hour>`, `upstream:<hour>` | requests of all clients by minute and bucket of the duration (`traffic.ts`) |
 * | | `<hour>:<id>` | responses by status; durations (`durationNumber`); 0: the last request |
 * | a key's totals | `days:<month>` | requests by day of the month, with the first eight outcomes |
 * | | `outcomes:<month>` | requests by day, with the later outcomes |
 * | | `units:<month>` | extra units and free requests by day |
 * | | `group/<name>:<month>` | the same as in the key's day, by day |
 */
export const hoursField = 'hours';
export const addressesField = 'addresses';
export const operationField = (operationId: string) => `operation:${operationId}`;
/** @param name the name under which a capability counts its refusals */
export const refusalField = (name: string, operationId: string) => `${name}:${operationId}`;
export const secretField = (digestStart: string) => `secret:${digestStart}`;
export const unauthorizedField = (hour: number) => `unauthorized:${hourText(hour)}`;
export const invalidSecretField = (digestStart: string) => `invalid:${digestStart}`;
export const networkField = (network: string) => `network:${network}`;
/** @param name `<digest>:<key id>`, `*`, `unknown` or `unread` */
export const deadField = (name: string) => `dead:${name}`;
/** The name of the field for all secrets that belong to no key. */
export const unknownSecrets = 'unknown';
/** The name of the field for all secrets that could not be looked up, because the key directory did not reply. */
export const unreadSecrets = 'unread';
export const failedField = (hour: number, upstream: string, bucket: Bucket = 'plan') =>
  `failed${bucket === 'plan' ? '' : `/${bucket}`}:${hourText(hour)}:${upstream}`;

/** Returns the bucket, the hour of the day and the upstream of a field with failed units; undefined for other fields. */
export function failedIn(field: string) {
  const [, bucket = 'plan', hour, upstream] = /^failed(?:\/([^:]*))?:(\d\d):(.*)$/.exec(field) ?? [];
  return upstream === undefined ? undefined : { bucket, hour: Number(hour), upstream };
}

export const unitsField = (hour: number) => `units:${hourText(hour)}`;
export const outcomesField = (hour: number) => `outcomes:${hourText(hour)}`;
export const trialField = (hour: number, trial: string) => `trial:${hourText(hour)}:${trial}`;
/** @param period the hour of the day in two digits, or a month such as `2026-11` */
export const groupField = (name: string, period: string) => `group/${name}:${period}`;
export const groupHourField = (name: string, hour: number) => groupField(name, hourText(hour));
export const daysField = (month: string) => `days:${month}`;
export const dayUnitsField = (month: string) => `units:${month}`;
export const dayOutcomesField = (month: string) => `outcomes:${month}`;

/**
 * The bucket of a key whose failed units are recorded: `plan`, `trial`, the name of a group, or `trial.` and the name of a
 * group.
 */
export type Bucket = string;

/** Returns the hour of the day in the name of a field with the minutes or the operations of one hour; undefined for other fields. */
export function hourIn(field: string): number | undefined {
  const hour =
    /^(?:(?:minutes|outcomes|units|unauthorized|ended|own|upstream|trial|failed(?:\/[^:]*)?|group\/[^:]*):)?(\d\d)(?::|$)/.exec(
      field,
    );
  return hour === null ? undefined : Number(hour[1]);
}

/** Reads the counts of one hour from a key's record of a day. The result maps each minute of the hour to its counts. */
export function talliesOfHour(fields: ReadonlyMap<string, Counts>, hour: number): ReadonlyMap<number, Tally> {
  return talliesIn({
    counts: fields.get(minutesField(hour)),
    later: fields.get(outcomesField(hour)),
    units: fields.get(unitsField(hour)),
    groups: groupsIn(fields, hourText(hour)),
  });
}

/** Returns the counts of each group in an hour or month, by the name of the group. */
export function groupsIn(fields: ReadonlyMap<string, Counts>, period: string): ReadonlyMap<string, Counts> {
  const groups = new Map<string, Counts>();
  const [start, end] = ['group/', `:${period}`];
  for (const [field, counts] of fields) {
    if (field.startsWith(start) && field.endsWith(end))
      groups.set(field.slice(start.length, -end.length), counts);
  }
  return groups;
}

/** Returns the name in a field, such as the operation's id in `operation:<id>`; undefined for other fields. */
export function nameIn(field: string, fieldOf: (name: string) => string): string | undefined {
  const start = fieldOf('');
  return field.startsWith(start) ? field.slice(start.length) : undefined;
}

/** The requests of an hour in the field `hours`. */
export const offeredNumber = (hour: number) => 1 + 2 * hour;
export const admittedNumber = (hour: number) => 2 + 2 * hour;
/** The costs of the admitted requests, as in `Tally`. */
export const extraUnitsNumber = (hour: number) => 49 + 2 * hour;
export const freeNumber = (hour: number) => 50 + 2 * hour;
/** The number of minutes with a request that did not cost 1 unit. Absent if the day has no `units:<hour>`. */
export const withCosts = 97;

/** The failed units of an hour in the field `hours`. */
export const failedHourNumber = (hour: number) => 98 + hourOfDay(hour);

/** The failed units of all groups of an hour in the field `hours`, of the plan and the trial. */
export const failedGroupsNumber = (hour: number) => 122 + hourOfDay(hour);

/** The failed units of a minute in the fields `failed:<hour>:<upstream>` and `failed/<bucket>:<hour>:<upstream>`. */
export const failedNumber = (minute: number) => 1 + minuteOfHour(minute);

/** The requests of a minute in the field `unauthorized:<hour>`. */
export const unauthorizedNumber = (minute: number) => 1 + minuteOfHour(minute);

/** The requests in the field `invalid:<digest>`. */
export const invalidSecretNumber = 1;

/** The number of an address bit in the fields `dead:<name>`, from the position of the bit. */
export const deadBitNumber = (bit: number) => firstDeadBit + bit;
export const isDeadBit = (number: number) => number >= firstDeadBit;
const firstDeadBit = 100;

/** The requests of an hour in the fields `network:<network>`, `<name>:<id>` and `dead:<name>`. */
export const refusedNumber = (hour: number) => 1 + hour;

/** The requests of an hour in the field `operation:<id>`. */
export const requestsNumber = (hour: number) => 1 + 3 * hour;
export const clientErrorsNumber = (hour: number) => 2 + 3 * hour;
export const serverErrorsNumber = (hour: number) => 3 + 3 * hour;

/**
 * The numbers at which the duration histograms begin in an operation's field. A histogram has its buckets (`histogram.ts`) and then the sum
 * of the durations in ms.
 */
export const durationNumber = { own: 1_000, upstream: 1_100, sum: 99 } as const;

export const isOperationField = (field: string) => /^\d\d:/.test(field);

export function operationInHour(field: string): { readonly hour: number; readonly operationId: string } {
  return { hour: Number(field.slice(0, 2)), operationId: field.slice(3) };
}

export function operationHourField(hourOfDay: number, operationId: string): string {
  return `${String(hourOfDay).padStart(2, '0')}:${operationId}`;
}
