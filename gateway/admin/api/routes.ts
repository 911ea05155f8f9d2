import type { Changes, ChangesPage } from '../../fleet/changes.ts';
import type { Events } from '../../fleet/events.ts';
import { keyChangeText } from '../../fleet/key-change-text.ts';
import type { Presence } from '../../fleet/presence.ts';
import type { Fault } from '../../fleet/process-state.ts';
import type { Settings } from '../../model.ts';
import type { Bounds } from '../../timeouts-and-sizes.ts';
import { errorResponse, jsonResponse, storeUnavailable } from '../admin-response.ts';
import { createChangeRoutes } from '../keys/change/change-routes.ts';
import type { KeyChangeSources } from '../keys/change/change-sources.ts';
import { createKeyRoutes } from '../keys/key-routes.ts';
import type { KeySources } from '../keys/key-sources.ts';
import { createPlanDistributions } from '../plans/plan-distribution.ts';
import { simulateRoute } from '../plans/simulate-route.ts';
import type { GatewayState } from '../readiness.ts';
import { createApiDocument } from './api-document.ts';
import { plansView } from './plans-view.ts';
import { cursor, noQuery, queryOf, wholeNumber } from './query-parameters.ts';
import { defineRoute, type Route } from './route.ts';
import { settingsText } from './settings-view.ts';
import { stateView } from './state-view.ts';
import { type DefaultTimeouts, upstreamsView } from './upstreams-view.ts';

/** The record of a day ago may be gone without Redis. */
const distributionHoursMax = 24;

/** What the routes read. */
export interface ApiSources {
  /** The settings in force. */
  readonly settings: () => Settings;
  readonly state: () => GatewayState;
  /** Those of this gateway. */
  readonly faults: () => readonly Fault[];
  readonly presence: Pick<Presence, 'read'>;
  readonly changes: Pick<Changes, 'read'>;
  readonly events: Pick<Events, 'read'>;
  readonly keys: KeySources;
  readonly keyChanges: Pick<KeyChangeSources, 'limiter' | 'record'>;
  readonly bounds: DefaultTimeouts &
    KeyChangeSources['bounds'] &
    Pick<
      Bounds,
      | 'changesPerPageMax'
      | 'eventsPerPageMax'
      | 'planDistributionTimeoutMs'
      | 'planDistributionKeptMs'
      | 'simulationTimeoutMs'
      | 'simulationMinutesKeptMax'
      | 'simulationKeptMs'
      | 'failingRequestsMin'
      | 'failingShareMin'
    >;
}

/**
 * Every route of the admin API. A new one is an entry here, and in `openapi.yaml`, which a test holds against the responses
 * and against this list.
 */
export function createRoutes({
  settings,
  state,
  faults,
  presence,
  changes,
  events,
  keys,
  keyChanges,
  bounds,
}: ApiSources): readonly Route[] {
  const apiDocument = createApiDocument();
  const planDistribution = createPlanDistributions({ ...keys, bounds: { ...keys.bounds, ...bounds } });
  return [
    defineRoute({
      method: 'GET',
      path: '/state',
      needs: 'read',
      query: noQuery,
      respond: async ({ token }) =>
        jsonResponse(
          stateView(state(), {
            upstreams: settings().upstreams,
            fleet: await presence.read(),
            faults: faults(),
            token,
            bounds,
          }),
        ),
    }),
    defineRoute({
      method: 'GET',
      path: '/settings',
      needs: 'read',
      query: noQuery,
      respond: async () => ({ status: 200, body: await settingsText(settings()) }),
    }),
    ...createKeyRoutes(keys),
    ...createChangeRoutes({ ...keys, ...keyChanges, bounds }),
    defineRoute({
      method: 'GET',
      path: '/plans',
      needs: 'read',
      query: noQuery,
      respond: () => jsonResponse(plansView(settings())),
    }),
    defineRoute({
      method: 'GET',
      path: '/plans/{name}/distribution',
      needs: 'read',
      query: queryOf({ hours: wholeNumber(1, distributionHoursMax).default(distributionHoursMax) }),
      async respond({ params: { name = '' }, query: { hours } }) {
        if (!settings().plans.has(name))
          return errorResponse('not_found', 'There is no plan with this name.');
        const distribution = await planDistribution(name, hours);
        return distribution === undefined ? storeUnavailable() : jsonResponse(distribution);
      },
    }),
    simulateRoute({ keys, events, changes, presence, bounds }),
    defineRoute({
      method: 'GET',
      path: '/upstreams',
      needs: 'read',
      query: noQuery,
      respond: async () => jsonResponse(upstreamsView(settings().upstreams, await presence.read(), bounds)),
    }),
    defineRoute({
      method: 'GET',
      path: '/changes',
      needs: 'read',
      query: pageOf(bounds.changesPerPageMax),
      respond: async ({ query: { limit, after } }) =>
        jsonResponse(
          changesView(await changes.read({ limit, ...(after !== undefined && { after }) }), keys.nowMs()),
        ),
    }),
    defineRoute({
      method: 'GET',
      path: '/events',
      needs: 'read',
      query: pageOf(bounds.eventsPerPageMax),
      respond: async ({ query: { limit, after } }) =>
        jsonResponse(await events.read({ limit, ...(after !== undefined && { after }) })),
    }),
    defineRoute({
      method: 'GET',
      path: '/openapi.json',
      needs: 'read',
      query: noQuery,
      respond: () => ({ status: 200, body: apiDocument() }),
    }),
  ];
}

/** What was done to a key is told in a sentence too. */
function changesView(page: ChangesPage, nowMs: number): object {
  const changes = page.changes.map((change) => {
    switch (change.action) {
      case 'reload':
      case 'reload_failed':
      case 'token':
        return change;
      default:
        return { ...change, text: keyChangeText(change, nowMs) };
    }
  });
  return { ...page, changes };
}

/** A page of a list that all processes share. */
function pageOf(limitMax: number) {
  return queryOf({
    limit: wholeNumber(1, limitMax).default(50),
    after: cursor(/^\d{1,15}-\d{1,15}$/).optional(),
  });
}
