import * as z from 'zod';
import {
  chargedUnits,
  components,
  count,
  instant,
  limitsByField,
  list,
  missing,
  nextPage,
  positive,
  recordedFrom,
  refusedShown,
  words,
} from '../../../keys/response-parts.ts';
import { afterPage, defineWire, keyIdParameter, keysPerPageMax } from '../../../shared/http/wire.ts';
import {
  instantParameter,
  month,
  oneOf,
  periodQuery,
  queryOf,
  text,
  wholeNumber,
} from '../../../shared/schema/query-parameters.ts';
import { usageSteps } from '../../../shared/schema/query-words.ts';

/** The requests of a key in one minute, hour, day or month, by outcome. A period without a request has no row. */
export const usageRow = z
  .object({
    at: instant.describe('The beginning of the row.'),
    offered: count.describe(
      'The requests that reached the limits of the key: admitted, refused, banned and undecided requests.',
    ),
    admitted: count,
    refused: refusedShown,
    banned: count,
    undecided: positive
      .optional()
      .describe('Requests that got 503 because Redis was away and `redis.onFailure` is `refuse`.'),
    units: chargedUnits,
    unauthorized: positive
      .optional()
      .describe(
        'Requests with an invalid secret of the key, which do not count as offered. Kept only as long as the rows of minutes.',
      ),
    groups: z
      .record(z.string(), z.object({ offered: count, admitted: count, units: count }))
      .optional()
      .describe(
        'The requests of each group of operations, by its name. `units` were charged to the limits of the group.',
      ),
  })
  .register(components, { id: 'UsageRow' });

const keyUsage = z
  .object({ missing, step: words(...usageSteps), rows: list(usageRow) })
  .register(components, { id: 'KeyUsage' });

export const getKeyUsageWire = defineWire({
  method: 'GET',
  path: '/keys/{id}/usage',
  operationId: 'getKeyUsage',
  tag: 'Keys',
  summary: 'The usage of a key',
  description:
    'A row for each minute, hour, day or month of UTC with recorded requests of the key, from the row of `from` to the row of `to`. Minutes are kept for `usage.keepDays`; older usage is available only by day or month, for 400 days. Without Redis, only one day is kept. The row of the oldest month may lack its first days.',
  params: { id: keyIdParameter },
  query: queryOf({
    ...periodQuery,
    step: oneOf(usageSteps).default('minute').describe('The length of a row.'),
  }),
  answers: { 200: { description: 'The rows.', schema: keyUsage } },
});

const keyForecast = z
  .object({
    missing,
    sentence: z.string().describe('What the forecast says, or the reason why there is none.'),
    limit: positive.optional().describe('The present limit a month; absent if the key has none.'),
    used: count.optional().describe('The units of the present month that count towards this limit.'),
    expected: z
      .object({ units: count, low: count, high: count })
      .optional()
      .describe(
        'The forecast of `used` at the end of the month, as if there was no limit, and its 80 % range. Absent without a forecast.',
      ),
    earliestAt: instant
      .optional()
      .describe(
        'The day of UTC on which the high end of the range reaches the limit; absent if it does not in this month.',
      ),
    latestAt: instant.optional().describe('The same for the low end of the range.'),
    today: z
      .object({ units: count, most: count, limitAt: instant.optional() })
      .optional()
      .describe(
        'Why there is no forecast: the present day already has more `units` than the last 14 days allow for a whole day (`most`). At the pace of the last hour or ten minutes, the key reaches the limit at `limitAt`; absent if it does not in this month.',
      ),
  })
  .register(components, { id: 'KeyForecast' });

export const getKeyForecastWire = defineWire({
  method: 'GET',
  path: '/keys/{id}/forecast',
  operationId: 'getKeyForecast',
  tag: 'Keys',
  summary: 'When a key reaches its limit a month',
  description:
    'A forecast of the units that the key is charged until the end of the present UTC month, from the units of the last 14 complete days. The present limit a month of all operations counts, also if it has changed in this month. There is no forecast without such a limit, after it is reached, while Redis is away, with fewer than 14 complete days on record, with charged units on fewer than 5 of them, if the limit refused requests on one of them, if they are too uneven, and if the present day already has more units than they allow for a whole day.',
  params: { id: keyIdParameter },
  answers: { 200: { description: 'The forecast, or the reason why there is none.', schema: keyForecast } },
});

export type KeyForecast = z.output<typeof keyForecast>;

const monthPage = z
  .object({
    missing,
    month: z.string(),
    fromAt: instant.describe(recordedFrom('month')),
    toAt: instant.describe('The end of the month, or the present time if it is earlier.'),
    keys: list(
      z.object({
        id: z.string(),
        name: z.string().optional(),
        plan: z
          .string()
          .optional()
          .describe(
            'The plan of the key; absent if the key was removed, or could not be read because Redis is away.',
          ),
        offered: count,
        admitted: count,
        units: chargedUnits,
      }),
    ),
    next: nextPage,
  })
  .register(components, { id: 'MonthUsage' });

export const getMonthUsageWire = defineWire({
  method: 'GET',
  path: '/usage',
  operationId: 'getMonthUsage',
  tag: 'Keys',
  summary: 'The usage of all keys in a month',
  description:
    'The keys of the configuration and of the key directory, sorted by id, with their requests in one UTC month. Keys without requests are listed, too, unless Redis is away. A removed key is listed without a plan if it has requests in the month and is one of the keys that were active last, at most 10,000. Send `POST /flush` first to include recent requests to other processes.',
  query: queryOf({
    month: month()
      .optional()
      .describe(
        'A UTC month; by default the present month. The record goes back 400 days, or one day without Redis.',
      ),
    after: afterPage(text(128)),
    limit: wholeNumber(1, keysPerPageMax)
      .default(keysPerPageMax)
      .describe('The largest number of keys on a page.'),
  }),
  answers: { 200: { description: 'The page.', schema: monthPage } },
});

const limitsSteps = z
  .object({
    missing,
    limits: list(
      z.object({
        fromAt: instant.describe('These limits apply from this time until the time of the next entry.'),
        limits: limitsByField.describe(
          'Empty if the key did not exist yet, had no limit, or its limits are unknown.',
        ),
      }),
    ).meta({ minItems: 1 }),
  })
  .register(components, { id: 'KeyLimits' });

export type LimitsSteps = z.output<typeof limitsSteps>['limits'];

export const getKeyLimitsWire = defineWire({
  method: 'GET',
  path: '/keys/{id}/limits',
  operationId: 'getKeyLimits',
  tag: 'Keys',
  summary: 'The limits of a key over time',
  description:
    'One entry for each change of the limits from `from` until now, the oldest first. The gateway computes them from the present limits, the scheduled changes of plans and of the key, and the newest 2,000 changes on record. The limits before the oldest known change are shown for all earlier times. Edits that were made while no gateway was running are not on record. A reload that changed more than 5 keys records the earlier limits of at most 5 of them; for the others, the limits after the reload are also shown for the time before.',
  params: { id: keyIdParameter },
  query: queryOf({
    from: instantParameter().optional().describe('By default 24 hours ago.'),
  }),
  answers: { 200: { description: 'The entries.', schema: limitsSteps } },
});

export type MonthPage = z.output<typeof monthPage>;

export type UsageRow = z.output<typeof usageRow>;

export type KeyUsage = z.output<typeof keyUsage>;
