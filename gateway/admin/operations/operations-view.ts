import type * as z from 'zod';
import { deprecationMembers } from '../../capabilities/lists/configuration.ts';
import type { Operation } from '../../shared/model.ts';
import { isoOf, type Period } from '../../shared/schema/dates-and-durations.ts';
import { periodOf } from '../../shared/schema/query-parameters.ts';
import { dayMs } from '../../shared/words/figures.js';
import type { OperationUsage } from '../../usage/read/operations-reader.ts';
import { errorResponse, foundResponse } from '../admin-response.ts';
import { lacksData } from '../api/missing-data.ts';
import { defineRoute, type Route } from '../api/route.ts';
import type { KeySources } from '../keys/key-sources.ts';
import {
  type deprecationShape,
  listOperationsWire,
  type OperationUse,
  type operationsPage,
} from '../wires/operations.ts';
import { isBeforeRecord, keptHours, recordFromAt } from './kept-period.ts';

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
    usage === undefined ? [] : await usage.reader.operations(keptHours(period, usage.state(), nowMs()));
  if (used === undefined) return undefined;
  // Without a record of the period, or while Redis is away, no known request does not mean that there were none.
  const isUnknown = usage === undefined || lacksData() || isBeforeRecord(period, usage.state(), nowMs());
  const unused = isUnknown ? undefined : noRequests;
  const byId = new Map(used.map((operation) => [operation.operationId, operation]));
  const { operations } = settings();
  const known = operations.map((operation) => ({
    ...describe(operation, nowMs()),
    ...figuresOf(byId.get(operation.id) ?? unused),
  }));
  const ids = new Set(operations.map(({ id }) => id));
  // Recorded operations that are not in the present API document.
  const others = used
    .filter(({ operationId }) => !ids.has(operationId))
    .map((operation) => ({ operationId: operation.operationId, ...figuresOf(operation) }));
  return {
    fromAt: isoOf(period.fromMs),
    toAt: isoOf(period.toMs),
    recordFromAt: recordFromAt(period, usage, nowMs()),
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
    deprecation: deprecation && deprecationAt(deprecation, nowMs),
  };
}

/** Returns a deprecation in the form of a response, with the days until its sunset. */
export function deprecationAt(deprecation: NonNullable<Operation['deprecation']>, nowMs: number) {
  const { sunsetMs } = deprecation;
  const daysToSunset = sunsetMs === undefined ? undefined : Math.floor((sunsetMs - nowMs) / dayMs);
  return { ...deprecationShown(deprecation), daysToSunset };
}

/** Returns a deprecation in the form of a response, with its timestamps as text. */
export function deprecationShown({
  sinceMs,
  sunsetMs,
  successor,
  afterSunset,
  ...members
}: NonNullable<Operation['deprecation']>): z.output<z.ZodObject<typeof deprecationShape>> {
  const ofCapabilities = deprecationMembers.map((member) => member.shown(members));
  const dates = { sinceAt: isoOf(sinceMs), sunsetAt: isoOf(sunsetMs) };
  return { ...dates, successor, afterSunset, ...Object.assign({}, ...ofCapabilities) };
}

const noRequests = { requests: 0, byStatus: new Map() };

function figuresOf(used: Partial<OperationUsage> | undefined): Partial<OperationUse> {
  if (used === undefined) return {};
  const { requests, byStatus = [], own, upstream, lastMs } = used;
  return {
    requests,
    statuses: Object.fromEntries(byStatus),
    ownTime: own,
    upstreamTime: upstream,
    lastMs,
  };
}
