import type { Fleet, KnownProcess } from '../../../fleet/presence.ts';
import type { Fault } from '../../../fleet/process-state.ts';
import type { AdminToken, Settings } from '../../../shared/model.ts';
import type { Bounds } from '../../../shared/timeouts-and-sizes.ts';
import type { GatewayState } from '../../readiness.ts';
import { judgeFleet } from '../../verdict/judge-fleet.ts';
import type { FleetState } from '../../wires/fleet/fleet.ts';
import { upstreamsInShort } from './upstreams-view.ts';

export function stateView(
  state: GatewayState,
  {
    upstreams,
    fleet,
    faults,
    token: { name, may },
    nowMs,
    bounds,
  }: {
    readonly upstreams: Settings['upstreams'];
    readonly fleet: Fleet;
    /** The faults of this gateway. */
    readonly faults: readonly Fault[];
    readonly token: AdminToken;
    readonly nowMs: number;
    readonly bounds: Bounds;
  },
): FleetState {
  const { environment, config, store, hasDirectory, certificates, usage, workers } = state;
  return {
    verdict: judgeFleet({ store, hasDirectory, fleet, own: faults, nowMs, bounds }),
    environment,
    config,
    store: storeView(store),
    usage,
    upstreams: upstreamsInShort(upstreams, fleet),
    certificates: Object.fromEntries(
      Object.entries(certificates).map(([listener, { notAfter, notice }]) => [
        listener,
        { expiresAt: notAfter, notice },
      ]),
    ),
    workers,
    isComplete: fleet.isComplete,
    answeredBy: fleet.answeredBy,
    token: { name, may },
    processes: fleet.processes.map(processView),
  };
}

function storeView(store: GatewayState['store']): FleetState['store'] {
  if (store.kind === 'memory') return { kind: 'memory', available: true };
  const { since, servers, ...rest } = store;
  return {
    ...rest,
    sinceAt: since,
    servers: servers?.map(({ since: sinceAt, ...server }) => ({ ...server, sinceAt })),
  };
}

/** Omits the targets of a process, which are in `/upstreams`, and its faults and failing upstreams, which are in `verdict`. */
function processView({
  upstreams,
  faults: _,
  failingUpstreams: __,
  ...process
}: KnownProcess): FleetState['processes'][number] {
  const targets = upstreams.flatMap((upstream) => upstream.targets);
  const omitted = upstreams.reduce((sum, { omittedTargets = 0 }) => sum + omittedTargets, 0);
  return {
    ...process,
    targets: targets.length + omitted,
    healthyTargets: targets.filter(({ healthy }) => healthy).length + omitted,
  };
}
