import type { Route } from '../../gateway/admin/api/route.ts';
import { type ApiSources, createRoutes } from '../../gateway/admin/api/routes.ts';
import type { Capabilities, OperatorsSources } from '../../gateway/capabilities/interfaces/operators.ts';
import { operatorsParts } from '../../gateway/capabilities/lists/operators.ts';
import type { Bounds } from '../../gateway/shared/timeouts-and-sizes.ts';

/** The routes of the admin API without data, for tests that compare them with the document. */
export function coreRoutes(bounds: Bounds): readonly Route[] {
  return routesWith(bounds, []);
}

/** The routes of the admin API and of capabilities without data. */
export function allRoutes(bounds: Bounds): readonly Route[] {
  const anything: object = new Proxy(() => anything, { get: () => anything });
  // Without a connection, a capability keeps its data in memory.
  const sources = new Proxy(anything, { get: (_, name) => (name === 'records' ? undefined : anything) });
  const parts = operatorsParts.map((open) => open(anything as Capabilities, sources as OperatorsSources));
  return routesWith(
    bounds,
    parts.flatMap(({ routes }) => routes ?? []),
  );
}

function routesWith(bounds: Bounds, ofCapabilities: readonly Route[]): readonly Route[] {
  return createRoutes({
    ...{ bounds, keys: { bounds }, keyChanges: {}, ofReadingParts: { lent: {} } },
    ofCapabilities,
  } as unknown as ApiSources);
}
