import type { ReadingSources } from '../../capabilities/interfaces/operators.ts';
import { readRoutes } from '../../capabilities/lists/operators.ts';
import type { Changes } from '../../fleet/changes.ts';
import type { Events } from '../../fleet/events.ts';
import type { Presence } from '../../fleet/presence.ts';
import { jsonResponse } from '../admin-response.ts';
import { directoryIdsRoute, exportRoute } from '../keys/change/export-route.ts';
import { createKeyRoutes } from '../keys/key-routes.ts';
import type { KeyDetailSources } from '../keys/key-sources.ts';
import { limitsRoute } from '../keys/limits-route.ts';
import { callersRoute } from '../operations/callers-view.ts';
import { operationsRoute } from '../operations/operations-view.ts';
import { trafficRoute } from '../operations/traffic-view.ts';
import { distributionRoute } from '../plans/plan-distribution.ts';
import { plansRoute } from '../plans/plans-view.ts';
import { simulateRoute } from '../plans/simulate-route.ts';
import { trialRoute } from '../plans/trial-route.ts';
import { settingsText } from '../settings/settings-view.ts';
import { getSettingsWire } from '../wires/settings.ts';
import { getApiDocumentWire } from '../wires/wires.ts';
import { apiDocument } from './api-document.ts';
import { defineRoute, type Route } from './route.ts';

/**
 * The data sources of the routes in the reading thread. The reading thread has its own connections for these sources.
 */
export interface ReadSources {
  readonly keys: KeyDetailSources;
  readonly events: Pick<Events, 'read'>;
  readonly changes: Pick<Changes, 'read'>;
  readonly presence: Pick<Presence, 'read'>;
  readonly ofReadingParts: Pick<ReadingSources, 'redis' | 'lent'>;
}

/** The routes that run in the reading thread. A new route needs an entry here, and its wire one in `wires.ts`. */
export function createReadRoutes({
  keys,
  events,
  changes,
  presence,
  ofReadingParts,
}: ReadSources): readonly Route[] {
  const { settings, bounds } = keys;
  const routes = [
    defineRoute({
      ...getSettingsWire,
      needs: 'read',
      isFixed: true,
      respond: async () => ({ status: 200, body: await settingsText(settings()) }),
    }),
    ...createKeyRoutes(keys),
    limitsRoute(keys, changes),
    trafficRoute(keys),
    operationsRoute(keys),
    callersRoute(keys),
    exportRoute(keys),
    directoryIdsRoute(keys),
    plansRoute(keys),
    distributionRoute(keys),
    trialRoute(keys),
    simulateRoute({ keys, events, changes, presence }),
    ...readRoutes.flatMap((open) => open({ settings, bounds, ...ofReadingParts })),
    defineRoute({
      ...getApiDocumentWire,
      needs: 'read',
      isFixed: true,
      respond: () => jsonResponse(apiDocument(bounds)),
    }),
  ];
  return routes.map((route) => ({ ...route, inThread: true }));
}
