import type { Route } from '../../gateway/admin/api/route.ts';
import { type ApiSources, createRoutes } from '../../gateway/admin/api/routes.ts';
import type { OperatorsSources } from '../../gateway/capabilities/interfaces/operators.ts';
import { operatorsParts } from '../../gateway/capabilities/lists/parts.ts';
import { capabilityWires } from '../../gateway/capabilities/lists/schemas.ts';
import type { Wire } from '../../gateway/shared/http/wire.ts';
import type { Bounds } from '../../gateway/shared/timeouts-and-sizes.ts';

const nameOf = ({ method, path }: Pick<Route, 'method' | 'path'>) => `${method} ${path}`;

/** The routes of the admin API without data, and without the routes of capabilities. */
export async function coreRoutes(bounds: Bounds): Promise<readonly Route[]> {
  const all: readonly (Wire | ((bounds: Bounds) => Wire))[] = capabilityWires;
  const ofCapabilities = new Set(all.map((wire) => nameOf(typeof wire === 'function' ? wire(bounds) : wire)));
  return (await listedRoutes(bounds)).filter((route) => !ofCapabilities.has(nameOf(route)));
}

/** The routes of the core, and the routes of capabilities that run in the reading thread. */
function listedRoutes(bounds: Bounds): Promise<readonly Route[]> {
  return createRoutes({
    ...{ bounds, keys: { bounds }, keyChanges: {}, lent: {} },
  } as unknown as ApiSources);
}

/** The routes of the admin API and of capabilities without data, for tests that compare them with the document. */
export async function allRoutes(bounds: Bounds): Promise<readonly Route[]> {
  const anything: object = new Proxy(() => anything, { get: () => anything });
  // Without a connection, a capability keeps its data in memory.
  const keys = { bounds, settings: anything, directory: undefined };
  const given: Readonly<Record<string | symbol, unknown>> = { records: undefined, keys };
  const sources = new Proxy(anything, { get: (_, name) => (name in given ? given[name] : anything) });
  const parts = operatorsParts.map((open) => open(anything as never, sources as OperatorsSources));
  const ofCapabilities = await Promise.all(parts.map(({ routes }) => routes?.() ?? []));
  return [...(await listedRoutes(bounds)), ...ofCapabilities.flat()];
}
