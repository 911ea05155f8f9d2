import * as z from 'zod';
import type { Fleet } from '../../../fleet/presence.ts';
import type { TargetSeen } from '../../../fleet/process-state.ts';
import type { Upstream } from '../../../shared/model.ts';
import type { Bounds } from '../../../shared/timeouts-and-sizes.ts';
import { count, instant, isComplete, list, positive, processId, words } from '../response-parts.ts';

const targetShape = {
  address: z.string(),
  healthy: z.boolean().describe('Whether the target is healthy for every process.'),
  sinceAt: instant.describe(
    'The time since which the target has been healthy for every process, or unhealthy for at least one process.',
  ),
  inFlight: count.describe(
    'The number of requests that were sent to the target or wait for it, in all processes together. In a fleet of more than 500 processes, in 500 of these processes.',
  ),
};

const target = z.object({
  ...targetShape,
  processes: list(
    z.object({
      id: processId,
      healthy: z.boolean(),
      sinceAt: instant.describe('The time since which this process has reported this state.'),
      inFlight: count,
      tunnels: count.describe('Open WebSockets.'),
      full: z.boolean().describe('Whether all connections to the target are in use.'),
      reason: z.string().optional().describe('The reason why the target is not healthy.'),
    }),
  ).describe(
    'The processes that use the target. In a fleet of more than 500 processes, 500 of these processes, and all others for which the target is not healthy.',
  ),
});

const lookupError = z.string().optional().describe('The reason why the host name cannot be resolved.');

export const upstreamsPage = z.object({
  isComplete,
  upstreams: list(
    z.object({
      name: z.string(),
      url: z.string(),
      health: z
        .string()
        .optional()
        .describe(
          'The path of the health check, which a healthy target answers with 2xx. Absent if a target is healthy when it accepts a connection.',
        ),
      host: words('keep', 'target'),
      encodedSlashes: words('refuse', 'forward'),
      timeouts: z.object({ connectMs: positive, headersMs: positive, totalMs: positive }),
      lookupError,
      targets: list(target),
    }),
  ),
});

/** A short form of an upstream for `/state`, which pages request once a second. */
export const upstreamInShort = z.object({
  name: z.string(),
  url: z.string(),
  lookupError,
  targets: list(z.object(targetShape)),
});

/** Every upstream with its targets, in the order of the configuration. The first upstream is the default. */
export function upstreamsView(
  upstreams: readonly Upstream[],
  fleet: Fleet,
  bounds: Bounds,
): z.output<typeof upstreamsPage> {
  return {
    isComplete: fleet.isComplete,
    upstreams: upstreams.map(({ name, url, health, host, encodedSlashes, timeouts }) => ({
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
