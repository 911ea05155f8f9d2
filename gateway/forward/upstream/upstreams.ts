import { isDeepStrictEqual } from 'node:util';
import type { Logger } from 'pino';
import type { AtTurnEnd } from '../../event-loop-batch.ts';
import type { Upstream } from '../../model.ts';
import type { Bounds } from '../../timeouts-and-sizes.ts';
import type { ResolveTargets } from './resolve-targets.ts';
import { createRetryBudget, type RetryBudget } from './retry-budget.ts';
import { createTargets, type TargetState, type Targets } from './targets.ts';

/** An upstream in force. Upstreams share nothing: one that is down takes no connection, queue or retry from another. */
export interface LiveUpstream {
  readonly settings: Upstream;
  /** Those that ship, with the upstream's own timeouts. */
  readonly bounds: Bounds;
  readonly targets: Targets;
  readonly retryBudget: RetryBudget;
  /** The value of `Host` in its requests; undefined where the client's is kept. */
  readonly host: string | undefined;
}

export interface UpstreamState {
  readonly url: string;
  readonly targets: readonly TargetState[];
}

export interface Upstreams {
  /** Undefined when a reload has removed the upstream. */
  find(name: string): LiveUpstream | undefined;
  /** A reload: upstreams that did not change keep their connections; requests in flight finish on the old ones. */
  replace(next: readonly Upstream[]): void;
  /** How often deadlines are checked: as often as the shortest timeout needs. */
  sweepIntervalMs(): number;
  /** By name, in the order of the configuration. */
  state(): Readonly<Record<string, UpstreamState>>;
  /** Lets requests in flight finish for `upstreamCloseTimeoutMs`, then closes their connections. */
  close(): Promise<void>;
}

interface UpstreamsOptions {
  readonly upstreams: readonly Upstream[];
  readonly bounds: Bounds;
  readonly resolve: ResolveTargets;
  readonly random: () => number;
  readonly log: Logger;
  readonly atTurnEnd: AtTurnEnd;
}

/** The upstreams by name, and those that a reload has replaced until their last request is over. */
export function createUpstreams(options: UpstreamsOptions): Upstreams {
  const { bounds, log } = options;
  let live: ReadonlyMap<string, LiveUpstream> = new Map();
  const retiring = new Set<Targets>();
  replace(options.upstreams);

  function replace(next: readonly Upstream[]): void {
    const before = live;
    live = new Map(next.map((settings) => [settings.name, keepOrOpen(settings, before)]));
    for (const upstream of before.values()) {
      if (live.get(upstream.settings.name) !== upstream) void retire(upstream.targets);
    }
  }

  function keepOrOpen(settings: Upstream, before: ReadonlyMap<string, LiveUpstream>): LiveUpstream {
    const earlier = before.get(settings.name);
    return isDeepStrictEqual(earlier?.settings, settings) && earlier ? earlier : open(settings);
  }

  function open(settings: Upstream): LiveUpstream {
    const own = withTimeouts(bounds, settings.timeouts);
    const host = settings.host === 'target' ? new URL(settings.url).host : undefined;
    return {
      settings,
      bounds: own,
      host,
      targets: createTargets({
        ...options,
        upstream: settings,
        host,
        bounds: own,
        log: log.child({ upstream: settings.name }),
      }),
      retryBudget: createRetryBudget({
        ratio: own.retryBudgetRatio,
        floor: own.retryBudgetFloor,
        windowMs: own.retryBudgetWindowMs,
      }),
    };
  }

  async function retire(targets: Targets): Promise<void> {
    retiring.add(targets);
    await targets.retire();
    retiring.delete(targets);
  }

  return {
    find: (name) => live.get(name),
    replace,
    sweepIntervalMs: () => Math.min(...[...live.values()].map((upstream) => upstream.bounds.sweepIntervalMs)),
    state: () =>
      Object.fromEntries(
        [...live].map(([name, { settings, targets }]) => [
          name,
          { url: settings.url, targets: targets.state() },
        ]),
      ),
    async close() {
      const all = [...[...live.values()].map(({ targets }) => targets), ...retiring];
      const timer = setTimeout(() => {
        for (const targets of all) void targets.destroy();
      }, bounds.upstreamCloseTimeoutMs);
      await Promise.all(all.map((targets) => targets.retire()));
      clearTimeout(timer);
    },
  };
}

/**
 * The bounds with an upstream's own timeouts. Deadlines are checked at intervals: a timeout ends late by one interval at
 * most, which is a tenth of the shortest timeout.
 */
function withTimeouts(bounds: Bounds, { connectMs, headersMs, totalMs }: Upstream['timeouts']): Bounds {
  const upstreamTotalTimeoutMs = totalMs ?? bounds.upstreamTotalTimeoutMs;
  const upstreamHeadersTimeoutMs = Math.min(
    headersMs ?? bounds.upstreamHeadersTimeoutMs,
    upstreamTotalTimeoutMs,
  );
  return {
    ...bounds,
    connectTimeoutMs: connectMs ?? bounds.connectTimeoutMs,
    upstreamHeadersTimeoutMs,
    upstreamTotalTimeoutMs,
    sweepIntervalMs: Math.min(
      bounds.sweepIntervalMs,
      Math.max(bounds.sweepIntervalMinMs, upstreamHeadersTimeoutMs / 10),
    ),
  };
}
