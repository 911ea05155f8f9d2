import type { Fleet } from '../../fleet/presence.ts';
import type { TargetSeen } from '../../fleet/process-state.ts';
import type { Upstream } from '../../shared/model.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';

/** The default timeouts of an upstream. */
export type DefaultTimeouts = Pick<
  Bounds,
  'connectTimeoutMs' | 'upstreamHeadersTimeoutMs' | 'upstreamTotalTimeoutMs'
>;

/** A target, joined over the processes that have it. */
interface TargetView {
  readonly address: string;
  /** Whether every process finds the target healthy. */
  readonly healthy: boolean;
  /** Begin of `healthy`: the last process to find it healthy, or the first process to find it unhealthy. */
  readonly sinceAt: string;
  /** The sum over all processes. */
  readonly inFlight: number;
  readonly processes: readonly ({ readonly id: string } & Omit<TargetSeen, 'address'>)[];
}

/** Every upstream with its targets, in the order of the configuration. The first upstream is the default. */
export function upstreamsView(
  upstreams: readonly Upstream[],
  fleet: Fleet,
  bounds: DefaultTimeouts,
): { readonly isComplete: boolean; readonly upstreams: readonly object[] } {
  return {
    isComplete: fleet.isComplete,
    upstreams: upstreams.map(({ name, url, health, host, timeouts }) => ({
      name,
      url,
      health,
      host,
      timeouts: {
        connectMs: timeouts.connectMs ?? bounds.connectTimeoutMs,
        headersMs: timeouts.headersMs ?? bounds.upstreamHeadersTimeoutMs,
        totalMs: timeouts.totalMs ?? bounds.upstreamTotalTimeoutMs,
      },
      ...lookupErrorOf(name, fleet),
      targets: targetsOf(name, fleet),
    })),
  };
}

/** A shorter form of the upstreams, for a page that asks once a second. */
export function upstreamsInShort(upstreams: readonly Upstream[], fleet: Fleet): readonly object[] {
  return upstreams.map(({ name, url }) => ({
    name,
    url,
    ...lookupErrorOf(name, fleet),
    targets: targetsOf(name, fleet).map(({ processes: _, ...target }) => target),
  }));
}

function lookupErrorOf(name: string, { processes }: Fleet): { readonly lookupError?: string } {
  const seen = processes.flatMap(({ upstreams }) => upstreams.filter((upstream) => upstream.name === name));
  const lookupError = seen.find((upstream) => upstream.lookupError !== undefined)?.lookupError;
  return lookupError === undefined ? {} : { lookupError };
}

/** ISO 8601 instants in UTC sort as texts. */
function sinceOf(views: readonly Pick<TargetSeen, 'healthy' | 'sinceAt'>[]): string {
  const unhealthy = views.filter(({ healthy }) => !healthy);
  const instants = (unhealthy.length > 0 ? unhealthy : views).map(({ sinceAt }) => sinceAt).toSorted();
  return (unhealthy.length > 0 ? instants[0] : instants.at(-1)) ?? '';
}

function targetsOf(name: string, { processes }: Fleet): readonly TargetView[] {
  const seen = processes.flatMap(({ id, upstreams }) =>
    upstreams
      .filter((upstream) => upstream.name === name)
      .flatMap(({ targets }) => targets.map(({ address, ...target }) => ({ address, id, ...target }))),
  );
  const byAddress = Map.groupBy(seen, ({ address }) => address);
  return [...byAddress].map(([address, views]) => ({
    address,
    healthy: views.every(({ healthy }) => healthy),
    sinceAt: sinceOf(views),
    inFlight: views.reduce((sum, { inFlight }) => sum + inFlight, 0),
    processes: views.map(({ address: _, ...view }) => view),
  }));
}
