import type { Changes } from '../../fleet/changes.ts';
import type { Events } from '../../fleet/events.ts';
import type { Presence } from '../../fleet/presence.ts';
import { plansAt } from '../../keys/plans.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import { errorResponse, jsonResponse, storeUnavailable } from '../admin-response.ts';
import { exportRoute } from '../keys/change/export-route.ts';
import { createKeyRoutes } from '../keys/key-routes.ts';
import type { KeySources } from '../keys/key-sources.ts';
import { limitsRoute } from '../keys/limits-route.ts';
import { createPlanDistributions } from '../plans/plan-distribution.ts';
import { createPlansView } from '../plans/plans-view.ts';
import { simulateRoute } from '../plans/simulate-route.ts';
import { settingsText } from '../settings/settings-view.ts';
import { apiDocument } from './api-document.ts';
import { noQuery, queryOf, wholeNumber } from './query-parameters.ts';
import { defineRoute, type Route } from './route.ts';

/** Without Redis, the record keeps one day. */
const distributionHoursMax = 24;

/** The sources of the routes in the reading thread. The thread has sources of its own. */
export interface ReadSources {
  readonly keys: KeySources;
  readonly events: Pick<Events, 'read'>;
  readonly changes: Pick<Changes, 'read'>;
  readonly presence: Pick<Presence, 'read'>;
  readonly bounds: Pick<
    Bounds,
    | 'importKeysMax'
    | 'changeMembersMax'
    | 'eventsPerPageMax'
    | 'changesPerPageMax'
    | 'limitChangesReadMax'
    | 'planDistributionTimeoutMs'
    | 'planDistributionKeptMs'
    | 'simulationTimeoutMs'
    | 'simulationBytesMax'
    | 'simulationMembersMax'
    | 'simulationMinutesKeptMax'
    | 'simulationKeptMs'
  >;
}

/** The routes that run in the reading thread. A new route is an entry here or in `key-routes.ts`, and in `openapi.yaml`. */
export function createReadRoutes({ keys, events, changes, presence, bounds }: ReadSources): readonly Route[] {
  const { settings } = keys;
  const planDistribution = createPlanDistributions({ ...keys, bounds: { ...keys.bounds, ...bounds } });
  const plansView = createPlansView({ ...keys, bounds: { ...keys.bounds, ...bounds } });
  const routes = [
    defineRoute({
      method: 'GET',
      path: '/settings',
      needs: 'read',
      isFixed: true,
      query: noQuery,
      respond: async () => ({ status: 200, body: await settingsText(settings()) }),
    }),
    ...createKeyRoutes(keys),
    limitsRoute({ keys, changes, bounds }),
    exportRoute({ ...keys, bounds }),
    defineRoute({
      method: 'GET',
      path: '/plans',
      needs: 'read',
      query: noQuery,
      async respond() {
        const view = await plansView();
        return view === undefined ? storeUnavailable() : jsonResponse(view);
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/plans/{name}/distribution',
      needs: 'read',
      query: queryOf({ hours: wholeNumber(1, distributionHoursMax).default(distributionHoursMax) }),
      async respond({ params: { name = '' }, query: { hours } }) {
        if (!plansAt(settings(), keys.nowMs()).has(name))
          return errorResponse('not_found', 'There is no plan with this name.');
        const distribution = await planDistribution(name, hours);
        return distribution === undefined ? storeUnavailable() : jsonResponse(distribution);
      },
    }),
    simulateRoute({ keys, events, changes, presence, bounds }),
    defineRoute({
      method: 'GET',
      path: '/openapi.json',
      needs: 'read',
      isFixed: true,
      query: noQuery,
      respond: async () => jsonResponse(await apiDocument(bounds)),
    }),
  ];
  return routes.map((route) => ({ ...route, inThread: true }));
}
