import type { AdminApi, AdminApiOptions } from './admin-api.ts';
import { loadInTurns, schemaParts } from './load-in-turns.ts';
import { outageOf } from './missing-data.ts';
import type { ApiSources } from './routes.ts';

/**
 * Creates the admin API, and loads its code at the first request. The code has 100 files with routes and schemas. A gateway without
 * operators takes 20 MB less. The first request takes about 200 ms longer.
 */
export function createLateAdminApi({
  sources,
  ...options
}: Omit<AdminApiOptions, 'routes' | 'outage'> & { readonly sources: ApiSources }): AdminApi {
  let loaded: Promise<AdminApi> | undefined;

  return async (...request) => {
    loaded ??= load();
    const respond = await loaded;
    return respond(...request);
  };

  async function load(): Promise<AdminApi> {
    const { createRoutes } = await loadInTurns(parts, () => import('./routes.ts'));
    const { createAdminApi } = await import('./admin-api.ts');
    const ofCapabilities = await sources.ofCapabilities();
    const { tellingRemoval } = await import('../keys/over-time/removal.ts');
    const record = { ...sources.keys, changes: sources.changes };
    const all = [...(await createRoutes(sources)), ...ofCapabilities];
    // The reading thread completes the responses of its routes itself.
    const routes = all.map((route) => (route.inThread ? route : tellingRemoval(route, record)));
    const outage = () => outageOf(sources.state().store, sources.startedAt);
    return createAdminApi({ ...options, routes, outage });
  }
}

const parts = [
  ...schemaParts,
  () => import('../wires/keys/key.ts'),
  () => import('../wires/settings.ts'),
  () => import('./read-routes.ts'),
  () => import('../keys/change/change-routes.ts'),
];
