import * as z from 'zod';
import type { Period } from '../../shared/schema/dates-and-durations.ts';
import { isoSecondOf } from '../../shared/schema/dates-and-durations.ts';
import { oneOf, periodOf, periodQuery, queryOf } from '../../shared/schema/query-parameters.ts';
import { type Buckets, percentilesOf, type TrafficMinute } from '../../usage/read/operations-reader.ts';
import { type TrafficEnding, trafficEndings } from '../../usage/traffic.ts';
import { errorResponse, foundResponse } from '../admin-response.ts';
import { count, instant, list, positive, words } from '../api/response-parts.ts';
import { defineRoute, type Route } from '../api/route.ts';
import { defineWire } from '../api/wire.ts';
import type { KeySources } from '../keys/key-sources.ts';
import { percentiles } from './operations-view.ts';

const trafficSteps = ['minute', 'hour'] as const;

type TrafficStep = (typeof trafficSteps)[number];

const stepMs: Readonly<Record<TrafficStep, number>> = { minute: 60_000, hour: 3_600_000 };

const trafficRow = z.object({
  at: instant.describe('The beginning of the row.'),
  requests: positive,
  served: count.describe('Admitted requests with a complete response below 500.'),
  refused: count.describe(
    'Requests that a limit refused: a limit of the plan, or of the bodies or WebSockets that a key may have under way.',
  ),
  banned: count,
  rejected: count.describe(
    'Requests without an accepted key: malformed, with an unknown method (501), or without a valid key.',
  ),
  failedByGateway: count.describe(
    'A 5xx of the gateway itself, such as 503 while Redis is away and `redis.onFailure` is `refuse`.',
  ),
  failedByUpstream: count.describe(
    'A 5xx that the upstream sent or caused, and responses that the upstream cut off.',
  ),
  ownTime: percentiles,
  upstreamTime: percentiles,
});

export const traffic = z.object({ step: words(...trafficSteps), rows: list(trafficRow) });

const daysMax = 8;

export const getTrafficWire = defineWire({
  method: 'GET',
  path: '/traffic',
  operationId: 'getTraffic',
  tag: 'Keys',
  summary: 'All requests by minute',
  description:
    'A row for each minute or hour in which the fleet had requests. A row has the number of requests for each outcome, and their durations. The longest period is eight days.',
  query: queryOf({
    ...periodQuery,
    step: oneOf(trafficSteps).default('minute').describe('The length of a row.'),
  }),
  answers: { 200: { description: 'The rows.', schema: traffic } },
});

/** `GET /traffic` */
export function trafficRoute(sources: KeySources): Route {
  return defineRoute({
    ...getTrafficWire,
    needs: 'read',
    async respond({ query }) {
      const period = periodOf(query, sources.nowMs(), daysMax);
      if ('kind' in period) return errorResponse('invalid_request', period.message);
      return foundResponse(await trafficView(sources, { ...period, step: query.step }));
    },
  });
}

/**
 * Returns all requests of the fleet by minute or hour, with outcomes and durations. A minute or hour without requests
 * is omitted. The result is undefined when the store does not reply.
 */
async function trafficView(
  { usage }: KeySources,
  { step, ...period }: Period & { readonly step: TrafficStep },
): Promise<z.output<typeof traffic> | undefined> {
  const minutes = usage === undefined ? [] : await usage.reader.traffic(period);
  if (minutes === undefined) return undefined;
  const groups = Map.groupBy(minutes, ({ atMs }) => Math.floor(atMs / stepMs[step]) * stepMs[step]);
  return { step, rows: [...groups].map(([atMs, within]) => rowOf(atMs, within)) };
}

function rowOf(atMs: number, within: readonly TrafficMinute[]): z.output<typeof trafficRow> {
  const sum = (ending: TrafficEnding) => within.reduce((all, { ended }) => all + ended[ending], 0);
  const ended = Object.fromEntries(trafficEndings.map((ending) => [ending, sum(ending)]));
  return {
    at: isoSecondOf(atMs),
    requests: Object.values(ended).reduce((all, requests) => all + requests, 0),
    ...(ended as Record<TrafficEnding, number>),
    ownTime: percentilesOf(sumOf(within.map(({ own }) => own))),
    upstreamTime: percentilesOf(sumOf(within.map(({ upstream }) => upstream))),
  };
}

function sumOf(all: readonly Buckets[]): number[] {
  const sum: number[] = [];
  for (const buckets of all) {
    for (const [bucket, requests] of buckets.entries()) sum[bucket] = (sum[bucket] ?? 0) + requests;
  }
  return sum;
}
