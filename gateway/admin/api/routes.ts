import type { Events } from '../../fleet/events.ts';
import type { FlushFleet } from '../../fleet/flush/flush-fleet.ts';
import type { Fault } from '../../fleet/process-state.ts';
import type { BlockedSecrets } from '../../keys/leaks/blocked/blocked-secrets.ts';
import { jsonResponse } from '../admin-response.ts';
import { createChangeRoutes } from '../keys/change/change-routes.ts';
import type { KeyChangeSources } from '../keys/change/change-sources.ts';
import { listLeaksRoute } from '../keys/list-leaks.ts';
import { flushRoute } from '../operations/flush-route.ts';
import type { GatewayState } from '../readiness.ts';
import { listChangesWire } from '../wires/changes.ts';
import { listEventsWire } from '../wires/events.ts';
import { getStateWire } from '../wires/fleet/fleet.ts';
import { listUpstreamsWire } from '../wires/fleet/upstreams.ts';
import { changesView } from './fleet/changes-view.ts';
import { stateView } from './fleet/state-view.ts';
import { upstreamsView } from './fleet/upstreams-view.ts';
import { type Lacking, outageOf } from './missing-data.ts';
import { createReadRoutes } from './read-routes.ts';
import type { ReadSources } from './read-sources.ts';
import { defineRoute, type Route } from './route.ts';

export interface ApiSources extends ReadSources {
  /** When the gateway started, ISO 8601. */
  readonly startedAt: string;
  readonly state: () => GatewayState;
  readonly faults: () => readonly Fault[];
  /** Sends the counts of all processes to Redis. */
  readonly flushFleet: FlushFleet;
  readonly events: Pick<Events, 'read' | 'list'>;
  readonly keyChanges: Pick<KeyChangeSources, 'limiter' | 'record' | 'directory'>;
  readonly blocked: Pick<BlockedSecrets, 'all'>;
  readonly ofCapabilities: () => Promise<readonly Route[]>;
}

/**
 * Every route of the admin API. A new route needs an entry here, or in `read-routes.ts` if it reads many keys or
 * minutes. The wire of a new route also needs an entry in `wires.ts`. A test compares the OpenAPI document with the
 * responses and with the list of routes.
 */
export async function createRoutes(sources: ApiSources): Promise<readonly Route[]> {
  const { startedAt, state, faults, presence, changes, events, keys, keyChanges, blocked } = sources;
  const { settings, bounds } = keys;
  /** The member `missing` of a response with the data of this process alone. */
  const missingFrom = ({ isComplete }: { readonly isComplete: boolean }, what: Lacking) =>
    isComplete ? {} : { missing: { ...outageOf(state().store, startedAt), what: [what] } };
  return [
    flushRoute(sources.flushFleet, bounds),
    defineRoute({
      ...getStateWire,
      needs: 'read',
      async respond({ token }) {
        const { upstreams } = settings();
        const fleet = await presence.read();
        const found = { upstreams, fleet, faults: faults(), token, nowMs: keys.nowMs(), bounds };
        return jsonResponse({ ...stateView(state(), found), ...missingFrom(fleet, 'processes') });
      },
    }),
    ...(await createReadRoutes(sources)),
    ...createChangeRoutes({ ...keys, ...keyChanges }),
    listLeaksRoute(keys, blocked),
    defineRoute({
      ...listUpstreamsWire,
      needs: 'read',
      async respond() {
        const fleet = await presence.read();
        const view = upstreamsView(settings().upstreams, fleet, bounds);
        return jsonResponse({ ...view, ...missingFrom(fleet, 'processes') });
      },
    }),
    defineRoute({
      ...listChangesWire(bounds),
      needs: 'read',
      async respond({ query: { from, to, ...query } }) {
        const asked = { ...query, fromMs: from, toMs: to };
        const [page, { processes }] = await Promise.all([changes.read(asked), presence.read()]);
        const view = changesView(page, { processes, nowMs: keys.nowMs() });
        return jsonResponse({ ...view, ...missingFrom(page, 'changes') });
      },
    }),
    defineRoute({
      ...listEventsWire(bounds),
      needs: 'read',
      async respond({ query: { kind, from, to, ...query } }) {
        const page = await events.list({ ...query, kinds: kind, fromMs: from, toMs: to });
        return jsonResponse({ ...page, ...missingFrom(page, 'events') });
      },
    }),
  ];
}
