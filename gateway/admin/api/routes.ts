import { eventGroups } from '../../fleet/event-text.ts';
import type { Events } from '../../fleet/events.ts';
import type { Fault } from '../../fleet/process-state.ts';
import type { Settings } from '../../shared/model.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import { jsonResponse } from '../admin-response.ts';
import { createChangeRoutes } from '../keys/change/change-routes.ts';
import type { KeyChangeSources } from '../keys/change/change-sources.ts';
import type { GatewayState } from '../readiness.ts';
import { changesView, eventKinds } from './changes-view.ts';
import { cursor, instant, noQuery, queryOf, someOf, wholeNumber } from './query-parameters.ts';
import { createReadRoutes, type ReadSources } from './read-routes.ts';
import { defineRoute, type Route } from './route.ts';
import { stateView } from './state-view.ts';
import { type DefaultTimeouts, upstreamsView } from './upstreams-view.ts';

/** The sources of the routes. */
export interface ApiSources extends ReadSources {
  /** The settings in force. */
  readonly settings: () => Settings;
  readonly state: () => GatewayState;
  /** The faults of this gateway. */
  readonly faults: () => readonly Fault[];
  readonly events: Pick<Events, 'read' | 'list'>;
  readonly keyChanges: Pick<KeyChangeSources, 'limiter' | 'record' | 'directory'>;
  readonly bounds: DefaultTimeouts &
    KeyChangeSources['bounds'] &
    ReadSources['bounds'] &
    Pick<Bounds, 'failingRequestsMin' | 'failingShareMin'>;
}

/**
 * Every route of the admin API. A new route is an entry here, or in `read-routes.ts` if it reads many keys or minutes. It is also
 * an entry in `openapi.yaml`. A test compares that document with the responses and with this list.
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
    ...createReadRoutes({ keys, events, changes, presence, bounds }),
    ...createChangeRoutes({
      settings,
      readStatus: keys.readStatus,
      nowMs: keys.nowMs,
      ...keyChanges,
      bounds,
    }),
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
      async respond({ query: { limit, after } }) {
        const [page, { processes }] = await Promise.all([changes.read({ limit, after }), presence.read()]);
        return jsonResponse(changesView(page, { processes, nowMs: keys.nowMs() }));
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/events',
      needs: 'read',
      query: pageOf(bounds.eventsPerPageMax).extend({
        kind: someOf([...eventGroups, ...eventKinds]).optional(),
        from: instant().optional(),
        to: instant().optional(),
      }),
      respond: async ({ query: { limit, after, kind, from, to } }) =>
        jsonResponse(await events.list({ limit, after, kinds: kind, fromMs: from, toMs: to })),
    }),
  ];
}

/** A page of a list that all processes share. */
function pageOf(limitMax: number) {
  return queryOf({
    limit: wholeNumber(1, limitMax).default(50),
    after: cursor(/^\d{1,15}-\d{1,15}$/).optional(),
  });
}
