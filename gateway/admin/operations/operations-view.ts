import * as z from 'zod';
import type { Operation } from '../../shared/model.ts';
import type { Period } from '../../shared/schema/dates-and-durations.ts';
import { formatDuration, isoOf } from '../../shared/schema/dates-and-durations.ts';
import { periodOf, periodQuery, queryOf } from '../../shared/schema/query-parameters.ts';
import type { OperationUsage } from '../../usage/read/operations-reader.ts';
import { errorResponse, foundResponse } from '../admin-response.ts';
import {
  byName,
  count,
  epochMs,
  instant,
  integer,
  list,
  positive,
  quantity,
  words,
} from '../api/response-parts.ts';
import { defineRoute, type Route } from '../api/route.ts';
import { defineWire } from '../api/wire.ts';
import type { KeySources } from '../keys/key-sources.ts';
import { keptPeriod } from './kept-period.ts';

const dayMs = 86_400_000;

export const percentiles = z
  .object({ p50Ms: quantity.optional(), p99Ms: quantity.optional() })
  .describe('Estimates from the buckets of a histogram; absent without requests.');

const durations = percentiles.extend({ meanMs: quantity.optional() });

/** The members that describe the deprecation of an operation. */
export const deprecationShape = {
  sinceAt: instant.optional(),
  sunsetAt: instant.optional(),
  successor: z.string().optional(),
  afterSunset: words('gone', 'serve'),
  brownouts: list(z.object({ from: instant, every: z.string().optional(), for: z.string() }))
    .optional()
    .describe(
      'The rehearsals of the removal, as the API document states them. A series ends when the next one begins.',
    ),
};

export const operationCost = count
  .optional()
  .describe('The cost of a request: the units that each window is charged. Absent for 1 unit.');

const operationUse = z.object({
  operationId: z.string(),
  method: z.string().optional(),
  path: z.string().optional(),
  upstream: z.string().optional(),
  stability: words('experimental', 'beta').optional(),
  cost: operationCost,
  deprecation: z
    .object({
      ...deprecationShape,
      daysToSunset: integer
        .optional()
        .describe(
          'The number of whole days until the sunset, rounded down as on the pages; negative after it.',
        ),
    })
    .optional(),
  requests: count.optional().describe('Requests for the operation; absent without a usage record.'),
  statuses: byName(positive)
    .optional()
    .describe(
      'The number of responses by status. 499 means that the client closed the connection before the response.',
    ),
  ownTime: durations.optional(),
  upstreamTime: durations.optional(),
  lastMs: epochMs.optional().describe('The time of the last request, in epoch milliseconds.'),
});

type OperationUse = z.output<typeof operationUse>;

export const operationsPage = z.object({ fromAt: instant, toAt: instant, operations: list(operationUse) });

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

/** `GET /operations` */
export function operationsRoute(sources: KeySources): Route {
  return defineRoute({
    ...listOperationsWire,
    needs: 'read',
    async respond({ query }) {
      const period = periodOf(query, sources.nowMs());
      if ('kind' in period) return errorResponse('invalid_request', period.message);
      return foundResponse(await operationsView(sources, period));
    },
  });
}

/**
 * Returns the usage of every operation in a period. Requests that matched no operation have the id ''. The result is
 * undefined when the store does not reply.
 */
async function operationsView(
  { settings, usage, nowMs }: KeySources,
  period: Period,
): Promise<z.output<typeof operationsPage> | undefined> {
  const used =
    usage === undefined ? [] : await usage.reader.operations(keptPeriod(period, usage.state(), nowMs()));
  if (used === undefined) return undefined;
  const byId = new Map(used.map((operation) => [operation.operationId, operation]));
  const { operations } = settings();
  const known = operations.map((operation) => ({
    ...describe(operation, nowMs()),
    ...(usage && figuresOf(byId.get(operation.id))),
  }));
  const ids = new Set(operations.map(({ id }) => id));
  // Recorded operations that are not in the present API document.
  const others = used
    .filter(({ operationId }) => !ids.has(operationId))
    .map((operation) => ({ operationId: operation.operationId, ...figuresOf(operation) }));
  return {
    fromAt: isoOf(period.fromMs),
    toAt: isoOf(period.toMs),
    operations: [...known, ...others],
  };
}

function describe(
  { id, method, template, stability, cost, deprecation, upstream }: Operation,
  nowMs: number,
): OperationUse {
  return {
    operationId: id,
    method,
    path: template,
    upstream,
    stability,
    cost,
    deprecation: deprecation && {
      ...deprecationShown(deprecation),
      daysToSunset:
        deprecation.sunsetMs === undefined ? undefined : Math.floor((deprecation.sunsetMs - nowMs) / dayMs),
    },
  };
}

/** Returns a deprecation in the form of a response, with its timestamps as text. */
export function deprecationShown({
  sinceMs,
  sunsetMs,
  brownouts,
  ...rest
}: NonNullable<Operation['deprecation']>) {
  const shown = brownouts?.map(({ fromMs, everyMs, forMs }) => ({
    from: isoOf(fromMs),
    every: everyMs === undefined ? undefined : formatDuration(everyMs),
    for: formatDuration(forMs),
  }));
  return { sinceAt: isoOf(sinceMs), sunsetAt: isoOf(sunsetMs), ...rest, brownouts: shown };
}

function figuresOf(used: OperationUsage | undefined): Partial<OperationUse> {
  if (used === undefined) return { requests: 0, statuses: {} };
  const { requests, byStatus, own, upstream, lastMs } = used;
  return {
    requests,
    statuses: Object.fromEntries(byStatus),
    ownTime: own,
    upstreamTime: upstream,
    lastMs,
  };
}
