import type { Route } from '../../gateway/admin/api/route.ts';
import { type ApiSources, createRoutes } from '../../gateway/admin/api/routes.ts';
import type { OperatorsSources } from '../../gateway/capabilities/interfaces/operators.ts';
import { operatorsParts } from '../../gateway/capabilities/lists/parts.ts';
import type { Bounds } from '../../gateway/shared/timeouts-and-sizes.ts';

/** The routes of the admin API without data, for tests that compare them with the document. */
export function coreRoutes(bounds: Bounds): Promise<readonly Route[]> {
  return createRoutes({
    ...{ bounds, keys: { bounds }, keyChanges: {}, lent: {} },
  } as unknown as ApiSources);
}

/** The routes of the admin API and of capabilities without data. */
export async function allRoutes(bounds: Bounds): Promise<readonly Route[]> {
  const anything: object = new Proxy(() => anything, { get: () => anything });
  // Without a connection, a capability keeps its data in memory.
  const keys = { bounds, settings: anything, directory: undefined };
  const given: Readonly<Record<string | symbol, unknown>> = { records: undefined, keys };
  const sources = new Proxy(anything, { get: (_, name) => (name in given ? given[name] : anything) });
  const parts = operatorsParts.map((open) => open(anything as never, sources as OperatorsSources));
  const ofCapabilities = await Promise.all(parts.map(({ routes }) => routes?.() ?? []));
  return [...(await coreRoutes(bounds)), ...ofCapabilities.flat()];
}
