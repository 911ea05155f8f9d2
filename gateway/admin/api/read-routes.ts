import { readRoutes } from '../../capabilities/lists/parts.ts';
import { jsonResponse } from '../admin-response.ts';
import { directoryIdsRoute, exportRoute } from '../keys/change/export-route.ts';
import { deadSecretsRoute } from '../keys/dead-secrets.ts';
import { createKeyRoutes } from '../keys/key-routes.ts';
import { minuteRoute } from '../keys/minute/minute-route.ts';
import { oldSecretsRoute } from '../keys/old-secrets.ts';
import { forecastRoute } from '../keys/over-time/forecast-route.ts';
import { limitsRoute } from '../keys/over-time/limits-route.ts';
import { tellingRemoval } from '../keys/over-time/removal.ts';
import { callersRoute } from '../operations/callers-view.ts';
import { deprecatedRoute } from '../operations/deprecated-view.ts';
import { operationsRoute } from '../operations/operations-view.ts';
import { trafficRoute } from '../operations/traffic-view.ts';
import { distributionRoute } from '../plans/plan-distribution.ts';
import { plansRoute } from '../plans/plans-view.ts';
import { trialRoute } from '../plans/trial-route.ts';
import { settingsText } from '../settings/settings-view.ts';
import { getSettingsWire } from '../wires/settings.ts';
import { getApiDocumentWire } from '../wires/wires.ts';
import { apiDocument } from './api-document.ts';
import type { ReadSources } from './read-sources.ts';
import { defineRoute, type Route } from './route.ts';

/** The routes that run in the reading thread. A new route needs an entry here, and its wire one in `wires.ts`. */
export async function createReadRoutes(sources: ReadSources): Promise<readonly Route[]> {
  const { keys, changes, events } = sources;
  const { settings, bounds } = keys;
  const routes = [
    defineRoute({
      ...getSettingsWire,
      needs: 'read',
      isFixed: true,
      async respond({ query }) {
        return { status: 200, body: await settingsText(settings(), { withKeys: query.keys === 'all' }) };
      },
    }),
    ...createKeyRoutes(keys, changes),
    deadSecretsRoute(keys),
    oldSecretsRoute(keys),
    forecastRoute(keys, changes),
    limitsRoute(keys, changes),
    minuteRoute(keys, { changes, events }),
    trafficRoute(keys),
    operationsRoute(keys),
    callersRoute(keys),
    deprecatedRoute(keys),
    exportRoute(keys),
    directoryIdsRoute(keys),
    plansRoute(keys),
    distributionRoute(keys),
    trialRoute(keys),
    ...(await Promise.all(readRoutes.map((load) => load(sources)))),
    defineRoute({
      ...getApiDocumentWire,
      needs: 'read',
      isFixed: true,
      respond: () => jsonResponse(apiDocument(bounds)),
    }),
  ];
  return routes.map((route) => ({ ...tellingRemoval(route, { ...keys, changes }), inThread: true }));
}
