import { isoOf, type Period } from '../../shared/schema/dates-and-durations.ts';
import { periodOf } from '../../shared/schema/query-parameters.ts';
import { errorResponse, foundResponse } from '../admin-response.ts';
import { defineRoute, type Route } from '../api/route.ts';
import type { KeySources } from '../keys/key-sources.ts';
import { type DeprecatedPage, deprecatedMax, listDeprecatedWire } from '../wires/operations.ts';
import { callerNamer, callersOf } from './callers-view.ts';
import { recordFromAt } from './kept-period.ts';
import { deprecationAt } from './operations-view.ts';

/** `GET /deprecated` */
export function deprecatedRoute(sources: KeySources): Route {
  return defineRoute({
    ...listDeprecatedWire,
    needs: 'read',
    readsCounts: true,
    async respond({ query }) {
      const period = periodOf(query, sources.nowMs());
      if ('kind' in period) return errorResponse('invalid_request', period.message);
      return foundResponse(await deprecatedView(sources, { ...period, limit: query.limit }));
    },
  });
}

/**
 * Lists the deprecated operations with their callers in a period, the nearest sunset first. An operation without a
 * sunset comes last. The result is undefined when the store does not reply.
 */
async function deprecatedView(
  sources: KeySources,
  { limit, ...period }: Period & { readonly limit: number },
): Promise<DeprecatedPage | undefined> {
  const nowMs = sources.nowMs();
  const deprecated = sources
    .settings()
    .operations.flatMap(({ deprecation, ...operation }) =>
      deprecation ? [{ ...operation, deprecation }] : [],
    )
    .sort((a, b) => (a.deprecation.sunsetMs ?? noSunsetMs) - (b.deprecation.sunsetMs ?? noSunsetMs));
  const read = deprecated.slice(0, deprecatedMax);
  const ids = read.map(({ id }) => id);
  const called = await callersOf(sources, ids, period);
  if (called === undefined) return undefined;
  const shownOf = (id: string) => called.get(id)?.slice(0, limit) ?? [];
  const callerShown = await callerNamer(sources, ids.flatMap(shownOf));
  return {
    fromAt: isoOf(period.fromMs),
    toAt: isoOf(period.toMs),
    recordFromAt: recordFromAt(period, sources.usage, nowMs),
    operations: read.map(({ id, method, template, deprecation }) => ({
      operationId: id,
      method,
      path: template,
      deprecation: deprecationAt(deprecation, nowMs),
      callers: shownOf(id).map(callerShown),
      more: moreThan(limit, called.get(id)?.length ?? 0),
    })),
    more: moreThan(deprecatedMax, deprecated.length),
  };
}

/** Later than every sunset. */
const noSunsetMs = Number.MAX_VALUE;

function moreThan(limit: number, all: number): number | undefined {
  return all > limit ? all - limit : undefined;
}
