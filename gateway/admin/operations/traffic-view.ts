import type * as z from 'zod';
import { calendarWindowsMs } from '../../shared/calendar-windows.ts';
import { isoSecondOf, type Period } from '../../shared/schema/dates-and-durations.ts';
import { periodOf } from '../../shared/schema/query-parameters.ts';
import { type Buckets, percentilesOf, type TrafficMinute } from '../../usage/read/operations-reader.ts';
import { type TrafficEnding, trafficEndings } from '../../usage/traffic.ts';
import { errorResponse, foundResponse } from '../admin-response.ts';
import { defineRoute, type Route } from '../api/route.ts';
import type { KeySources } from '../keys/key-sources.ts';
import { getTrafficWire, type TrafficStep, type traffic, type trafficRow } from '../wires/operations.ts';

const daysOfMinutesMax = 8;

/** `GET /traffic` */
export function trafficRoute(sources: KeySources): Route {
  return defineRoute({
    ...getTrafficWire,
    needs: 'read',
    async respond({ query }) {
      const daysMax = query.step === 'minute' ? daysOfMinutesMax : sources.bounds.usageOfAllDaysMin;
      const period = periodOf(query, sources.nowMs(), daysMax);
      if ('kind' in period) return errorResponse('invalid_request', period.message);
      return foundResponse(await trafficView(sources, { ...period, step: query.step }));
    },
  });
}

/**
 * Returns all requests of the fleet by minute, hour or day, with outcomes and durations. A row without requests
 * is omitted. The result is undefined when the store does not reply.
 */
async function trafficView(
  { usage }: KeySources,
  { step, ...period }: Period & { readonly step: TrafficStep },
): Promise<z.output<typeof traffic> | undefined> {
  const minutes = usage === undefined ? [] : await usage.reader.traffic(period);
  if (minutes === undefined) return undefined;
  const stepMs = calendarWindowsMs[step];
  const groups = Map.groupBy(minutes, ({ atMs }) => Math.floor(atMs / stepMs) * stepMs);
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
