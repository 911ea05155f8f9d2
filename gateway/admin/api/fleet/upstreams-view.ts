import type * as z from 'zod';
import { joinFailing, joinFigures } from '../../../fleet/failing/failing-upstreams.ts';
import type { Fleet } from '../../../fleet/presence.ts';
import type { TargetSeen } from '../../../fleet/process-state.ts';
import type { Upstream } from '../../../shared/model.ts';
import type { Bounds } from '../../../shared/timeouts-and-sizes.ts';
import { percentText } from '../../../shared/words/figures.js';
import type { upstreamInShort } from '../../wires/fleet/fleet.ts';
import type { target, upstreamsPage } from '../../wires/fleet/upstreams.ts';

/** Every upstream with its targets, in the order of the configuration. The first upstream is the default. */
export function upstreamsView(
  upstreams: readonly Upstream[],
  fleet: Fleet,
  bounds: Bounds,
): z.output<typeof upstreamsPage> {
  const figures = joinFigures(fleet.processes);
  const failingSince = joinFailing(fleet.processes);
  return {
    isComplete: fleet.isComplete,
    upstreams: upstreams.map(({ name, url, health, host, encodedSlashes, timeouts, failing }) => ({
      name,
      url,
      health,
      host,
      encodedSlashes,
      timeouts: {
        connectMs: timeouts.connectMs ?? bounds.connectTimeoutMs,
        headersMs: timeouts.headersMs ?? bounds.upstreamHeadersTimeoutMs,
        totalMs: timeouts.totalMs ?? bounds.upstreamTotalTimeoutMs,
      },
      failing: { share: percentText(failing.shareMin), failures: failing.failuresMin },
      failingSinceAt: failingSince.get(name),
      lastMinute: figures.get(name) ?? { requests: 0, failed: 0 },
      lookupError: lookupErrorOf(name, fleet),
      targets: targetsOf(name, fleet),
    })),
  };
}

export function upstreamsInShort(
  upstreams: readonly Upstream[],
  fleet: Fleet,
): readonly z.output<typeof upstreamInShort>[] {
  return upstreams.map(({ name, url }) => ({
    name,
    url,
    lookupError: lookupErrorOf(name, fleet),
    targets: targetsOf(name, fleet).map(({ processes: _, ...target }) => target),
  }));
}

function lookupErrorOf(name: string, { processes }: Fleet): string | undefined {
  const seen = processes.flatMap(({ upstreams }) => upstreams.filter((upstream) => upstream.name === name));
  return seen.find((upstream) => upstream.lookupError !== undefined)?.lookupError;
}

/** The timestamps are compared as texts, because ISO 8601 timestamps in UTC sort by time. */
function sinceOf(views: readonly Pick<TargetSeen, 'healthy' | 'sinceAt'>[]): string {
  const unhealthy = views.filter(({ healthy }) => !healthy);
  const instants = (unhealthy.length > 0 ? unhealthy : views).map(({ sinceAt }) => sinceAt).toSorted();
  return (unhealthy.length > 0 ? instants[0] : instants.at(-1)) ?? '';
}

function targetsOf(name: string, { processes }: Fleet): readonly z.output<typeof target>[] {
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
