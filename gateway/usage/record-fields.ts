import { hourOfDay, minuteOfHour } from './usage-calendar.ts';

/**
 * The fields of a record and what is counted under which number in them. The number 0 is the latest instant (`counts.ts`).
 *
 * | record | field | numbers |
 * |---|---|---|
 * | a key's day | `minutes:<hour>` | requests by minute and outcome (`tally.ts`) |
 * | | `units:<hour>` | what the requests in it cost by minute and outcome, where that is not 1 unit each (`unitsNumber`) |
 * | | `hours` | requests and admitted requests by hour; 0: when the last was decided, ms of the day |
 * | | `operation:<id>` | by hour requests, 4xx, 5xx; 0: when the last was decided, ms of the day |
 * | | `secret:<digest>` | 0: when a request with the secret of which this is the beginning was decided, ms of the day |
 * | | `unauthorized:<hour>` | by minute requests that presented a secret of the key that was not valid |
 * | | `invalid:<digest>` | the same of the secret of which this is the beginning: 1: requests; 0: when the last arrived, ms of the day |
 * | | `addresses` | the bits of the client addresses (`address-estimate.ts`) |
 * | operations | `ended:<hour>`, `own:<hour>`, `upstream:<hour>` | all requests by minute and ending; by minute and bucket (`traffic.ts`) |
 * | | `<hour>:<id>` | responses by status; durations (`durationNumber`); 0: as above |
 * | a key's totals | `days:<month>` | requests by day of the month and outcome |
 * | | `units:<month>` | what they cost by day and outcome, likewise |
 */
export const hoursField = 'hours';
export const addressesField = 'addresses';
export const operationField = (operationId: string) => `operation:${operationId}`;
export const secretField = (digestStart: string) => `secret:${digestStart}`;
export const unauthorizedField = (hour: number) => `unauthorized:${String(hourOfDay(hour)).padStart(2, '0')}`;
export const invalidSecretField = (digestStart: string) => `invalid:${digestStart}`;
export const unitsField = (hour: number) => `units:${String(hourOfDay(hour)).padStart(2, '0')}`;
export const daysField = (month: string) => `days:${month}`;
export const dayUnitsField = (month: string) => `units:${month}`;

/** In `hours`. */
export const offeredNumber = (hour: number) => 1 + 2 * hour;
export const admittedNumber = (hour: number) => 2 + 2 * hour;

/** In `unauthorized:<hour>`. */
export const unauthorizedNumber = (minute: number) => 1 + minuteOfHour(minute);

/** In `invalid:<digest>`. */
export const invalidSecretNumber = 1;

/** In `operation:<id>`. */
export const requestsNumber = (hour: number) => 1 + 3 * hour;
export const clientErrorsNumber = (hour: number) => 2 + 3 * hour;
export const serverErrorsNumber = (hour: number) => 3 + 3 * hour;

/** In a day of operations: the buckets of the histograms (`histogram.ts`), and behind them the sum of the durations, ms. */
export const durationNumber = { own: 1_000, upstream: 1_100, sum: 99 } as const;

export const isOperationField = (field: string) => /^\d\d:/.test(field);

/** The operation's id in the name of such a field, and its hour of the day. */
export function operationInHour(field: string): { readonly hour: number; readonly operationId: string } {
  return { hour: Number(field.slice(0, 2)), operationId: field.slice(3) };
}

export function operationHourField(hourOfDay: number, operationId: string): string {
  return `${String(hourOfDay).padStart(2, '0')}:${operationId}`;
}
