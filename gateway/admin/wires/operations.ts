import * as z from 'zod';
import type { CountedRefusal } from '../../capabilities/interfaces/words.ts';
import { deprecationShownShapes } from '../../capabilities/lists/schemas.ts';
import { countedRefusals } from '../../capabilities/lists/words.js';
import {
  byName,
  components,
  count,
  epochMs,
  instant,
  integer,
  list,
  missing,
  onlyLastActive,
  positive,
  quantity,
  words,
} from '../../keys/response-parts.ts';
import { defineWire } from '../../shared/http/wire.ts';
import { oneOf, periodQuery, queryOf, wholeNumber } from '../../shared/schema/query-parameters.ts';

/** The schemas of the refusals of a caller that capabilities count by name, by the member. */
const refusalShapes = Object.fromEntries(
  countedRefusals.map(({ member, about, aboutRequests }: CountedRefusal) => [
    member,
    refusalsOf(aboutRequests).optional().describe(about),
  ]),
) as Record<(typeof countedRefusals)[number]['member'], z.ZodOptional<ReturnType<typeof refusalsOf>>>;

function refusalsOf(aboutRequests: string) {
  return z.object({
    requests: positive.describe(aboutRequests),
    lastAt: instant,
    stillCalls: z.boolean().describe('Whether a later call of the operation by the key was found.'),
  });
}

/** The period of a response about operations. */
const periodShape = {
  fromAt: instant,
  toAt: instant,
  recordFromAt: instant
    .optional()
    .describe(
      'Earlier requests are not counted. Absent if the period does not begin earlier, and without a usage record.',
    ),
};

const caller = z
  .object({
    id: z.string(),
    name: z.string().optional(),
    plan: z.string().optional().describe('Absent if the key was removed or cannot be read.'),
    requests: positive,
    clientErrors: count,
    serverErrors: count,
    lastSeenMs: epochMs,
    ...refusalShapes,
  })
  .register(components, { id: 'Caller' });

export type CallerShown = z.output<typeof caller>;

const moreCallers = positive.optional().describe('The number of further callers that were found.');

const callers = z
  .object({
    missing,
    operationId: z.string(),
    ...periodShape,
    callers: list(caller),
    days: list(z.object({ at: instant, requests: count })).describe(
      'The requests for the operation by UTC day, for at most 14 days up to today.',
    ),
    more: moreCallers,
  })
  .register(components, { id: 'Callers' });

export type Callers = z.output<typeof callers>;

/** High, because an operator may want to contact every caller. */
const callersMax = 10_000;

export const listCallersWire = defineWire({
  method: 'GET',
  path: '/operations/{operationId}/callers',
  operationId: 'listCallers',
  tag: 'Keys',
  summary: 'Who calls an operation',
  description: `The key with the most requests comes first. ${onlyLastActive} Whole hours are counted.`,
  params: { operationId: z.string().describe('An operation of the API document.') },
  query: queryOf({
    ...periodQuery,
    limit: wholeNumber(1, callersMax).default(50).describe('The largest number of entries.'),
  }),
  answers: { 200: { description: 'The callers.', schema: callers } },
});

const percentiles = z
  .object({ p50Ms: quantity.optional(), p95Ms: quantity.optional(), p99Ms: quantity.optional() })
  .describe('Estimates from the buckets of a histogram. The members are absent if no time was counted.')
  .register(components, { id: 'Percentiles' });

const durations = percentiles.extend({ meanMs: quantity.optional() });

export const deprecationShape = {
  sinceAt: instant.optional(),
  sunsetAt: instant.optional(),
  successor: z.string().optional(),
  afterSunset: words('gone', 'serve'),
  ...deprecationShownShapes,
};

const deprecation = z.object({
  ...deprecationShape,
  daysToSunset: integer
    .optional()
    .describe('The whole days until the sunset, rounded down; negative after it.'),
});

export const operationCost = count.optional().describe('The cost of a request, in units; 1 if absent.');

const operationUse = z.object({
  operationId: z.string(),
  method: z.string().optional(),
  path: z.string().optional(),
  upstream: z.string().optional(),
  stability: words('experimental', 'beta').optional(),
  cost: operationCost,
  deprecation: deprecation.optional(),
  requests: count
    .optional()
    .describe(
      'Requests for the operation. Absent without a usage record, for a period before the record begins, and if no request is known while Redis is away.',
    ),
  statuses: byName(positive)
    .optional()
    .describe(
      'The number of requests by status. 499 means that the connection to the client was gone before the response ended.',
    ),
  ownTime: durations.optional(),
  upstreamTime: durations.optional(),
  lastMs: epochMs.optional().describe('The last request of the period, in epoch milliseconds.'),
});

export type OperationUse = z.output<typeof operationUse>;

export const operationsPage = z
  .object({ missing, ...periodShape, operations: list(operationUse) })
  .register(components, { id: 'Operations' });

export const listOperationsWire = defineWire({
  method: 'GET',
  path: '/operations',
  operationId: 'listOperations',
  tag: 'Keys',
  summary: 'Operations and their requests',
  description: `Every operation of the API document, then other recorded operations. Requests that matched no operation have the id ''. Whole hours are counted, including the hours of \`from\` and \`to\`.`,
  query: queryOf(periodQuery),
  answers: { 200: { description: 'The operations.', schema: operationsPage } },
});

/** Low, because the record of each active key is read for all these operations at once. */
export const deprecatedMax = 20;

/** The largest number of callers of one operation. The route of one operation lists all callers. */
const deprecatedCallersMax = 1_000;

const deprecatedPage = z
  .object({
    missing,
    ...periodShape,
    operations: list(
      z.object({
        operationId: z.string(),
        method: z.string(),
        path: z.string(),
        deprecation,
        callers: list(caller),
        more: moreCallers,
      }),
    ).describe('The operation with the earliest sunset comes first; those without a sunset come last.'),
    more: positive.optional().describe('The number of further deprecated operations.'),
  })
  .register(components, { id: 'DeprecatedOperations' });

export type DeprecatedPage = z.output<typeof deprecatedPage>;

export const listDeprecatedWire = defineWire({
  method: 'GET',
  path: '/deprecated',
  operationId: 'listDeprecated',
  tag: 'Keys',
  summary: 'Deprecated operations and who calls them',
  description: `The deprecated operations, at most ${deprecatedMax}, with the keys that called them. ${onlyLastActive} Whole hours are counted.`,
  query: queryOf({
    ...periodQuery,
    limit: wholeNumber(1, deprecatedCallersMax)
      .default(50)
      .describe('The largest number of callers of each operation.'),
  }),
  answers: { 200: { description: 'The operations.', schema: deprecatedPage } },
});

const trafficSteps = ['minute', 'hour', 'day'] as const;

export type TrafficStep = (typeof trafficSteps)[number];

export const trafficRow = z.object({
  at: instant.describe('The beginning of the row.'),
  requests: positive,
  served: count.describe('All other requests, such as admitted requests with a response below 500.'),
  refused: count.describe(
    'Requests that a limit refused: a limit of the key, or of the bodies or WebSockets that a key may have under way.',
  ),
  banned: count,
  rejected: count.describe(
    'Refused requests that no limit of a key has decided, such as malformed requests, requests with an unknown method (501), and requests without a valid key.',
  ),
  failedByGateway: count.describe(
    'Requests that failed in the gateway, such as with 503 while Redis is away and `redis.onFailure` is `refuse`.',
  ),
  failedByUpstream: count.describe(
    'Requests that failed because of the upstream: with a 5xx that it sent or caused, or with a response that it cut off.',
  ),
  ownTime: percentiles,
  upstreamTime: percentiles,
});

export const traffic = z
  .object({ missing, step: words(...trafficSteps), rows: list(trafficRow) })
  .register(components, { id: 'Traffic' });

export const getTrafficWire = defineWire({
  method: 'GET',
  path: '/traffic',
  operationId: 'getTraffic',
  tag: 'Keys',
  summary: 'All requests by minute',
  description:
    'A row for each minute, hour or day with recorded requests of the fleet. The longest period is 15 days, or eight days by minute.',
  query: queryOf({
    ...periodQuery,
    step: oneOf(trafficSteps).default('minute').describe('The length of a row.'),
  }),
  answers: { 200: { description: 'The rows.', schema: traffic } },
});
