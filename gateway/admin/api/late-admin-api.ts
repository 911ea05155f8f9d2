import type { AdminApi, AdminApiOptions } from './admin-api.ts';
import type { ApiSources } from './routes.ts';

/**
 * Creates the admin API, whose code is loaded at the first request. Its routes and schemas would take a quarter of the gateway's start and
 * 25 MB of its memory.
 */
export function createLateAdminApi({
  sources,
  ...options
}: Omit<AdminApiOptions, 'routes'> & { readonly sources: ApiSources }): AdminApi {
  let loaded: Promise<AdminApi> | undefined;

  return async (...request) => {
    loaded ??= load();
    const respond = await loaded;
    return respond(...request);
  };

  async function load(): Promise<AdminApi> {
    const { createAdminApi } = await import('./admin-api.ts');
    const { createRoutes } = await import('./routes.ts');
    return createAdminApi({ ...options, routes: createRoutes(sources) });
  }
}
