import type { Fleet, KnownProcess } from '../../fleet/presence.ts';
import type { Fault } from '../../fleet/process-state.ts';
import type { AdminToken, Settings } from '../../shared/model.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import type { GatewayState } from '../readiness.ts';
import { judgeFleet } from '../verdict/judge-fleet.ts';
import { upstreamsInShort } from './upstreams-view.ts';

/**
 * The response of `/state`: the verdict, this process's configuration, store and certificates, every process of the fleet, and the
 * token that asks.
 */
export function stateView(
  state: GatewayState,
  {
    upstreams,
    fleet,
    faults,
    token: { name, may },
    bounds,
  }: {
    readonly upstreams: Settings['upstreams'];
    readonly fleet: Fleet;
    /** The faults of this gateway. */
    readonly faults: readonly Fault[];
    readonly token: AdminToken;
    readonly bounds: Pick<Bounds, 'failingRequestsMin' | 'failingShareMin'>;
  },
): object {
  const { environment, config, store, certificates, usage, workers } = state;
  return {
    verdict: judgeFleet({ store, fleet, own: faults, bounds }),
    environment,
    config,
    store: storeView(store),
    ...(usage && { usage }),
    upstreams: upstreamsInShort(upstreams, fleet),
    certificates: Object.fromEntries(
      Object.entries(certificates).map(([listener, { notAfter, notice }]) => [
        listener,
        { expiresAt: notAfter, ...(notice !== undefined && { notice }) },
      ]),
    ),
    ...(workers && { workers }),
    isComplete: fleet.isComplete,
    answeredBy: fleet.answeredBy,
    token: { name, may },
    processes: fleet.processes.map(processView),
  };
}

function storeView(store: GatewayState['store']): object {
  if (store.kind === 'memory') return { kind: 'memory', available: true };
  const { since, servers, ...rest } = store;
  return {
    ...rest,
    sinceAt: since,
    ...(servers && {
      servers: servers.map(({ since: sinceAt, ...server }) => ({ ...server, sinceAt })),
    }),
  };
}

/** A process without its targets, which are in `/upstreams`, and without its faults, which are in the verdict. */
function processView({ upstreams, faults: _faults, ...process }: KnownProcess): object {
  const targets = upstreams.flatMap((upstream) => upstream.targets);
  return {
    ...process,
    targets: targets.length,
    healthyTargets: targets.filter(({ healthy }) => healthy).length,
  };
}
