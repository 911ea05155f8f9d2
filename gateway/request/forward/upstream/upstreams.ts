import { isDeepStrictEqual } from 'node:util';
import type { UpstreamSeen } from '../../../fleet/process-state.ts';
import type { Upstream } from '../../../shared/model.ts';
import type { Bounds } from '../../../shared/timeouts-and-sizes.ts';
import { RetryBudget } from './retry-budget.ts';
import { createTargets, type Targets, type UpstreamDeps } from './targets.ts';

/** A running upstream. Upstreams share no connections or queues, so an outage of one upstream does not affect another upstream. */
export interface LiveUpstream {
  readonly settings: Upstream;
  /** The timeouts and sizes of the process. The timeouts of the upstream replace the default timeouts. */
  readonly bounds: Bounds;
  readonly targets: Targets;
  readonly retryBudget: RetryBudget;
  /** The value of `Host` in forwarded requests; undefined to keep the client's value. */
  readonly host: string | undefined;
}

/** The state of an upstream, with the URL that is currently in use. */
export interface UpstreamState extends Omit<UpstreamSeen, 'name'> {
  /** An edit of the configuration that has no effect yet, because its new host name has not been resolved so far. */
  readonly awaited?: Pick<UpstreamState, 'url' | 'lookupError' | 'lookupErrorSinceAt'> | undefined;
}

export type Upstreams = ReturnType<typeof createUpstreams>;

/** The upstream that is in use for a name in the configuration. */
interface Entry {
  readonly inForce: LiveUpstream;
  /** The edited upstream, which is not in use yet, because its host name has never been resolved. */
  readonly awaited?: LiveUpstream;
}

/**
 * Manages the upstreams by name. A replaced upstream lives until its last request has finished.
 *
 * An edit takes effect immediately if the new URL has an IP address or the same host name. If the URL has another host name, the old
 * upstream stays in use until the new name resolves. Without this rule, a misspelt host name would cause an outage.
 */
export function createUpstreams(configured: readonly Upstream[], deps: UpstreamDeps) {
  const { bounds, log } = deps;
  let entries: ReadonlyMap<string, Entry> = new Map();
  const retiring = new Set<Targets>();
  replace(configured);

  function replace(next: readonly Upstream[]): void {
    setEntries(
      new Map(next.map((settings) => [settings.name, entryFor(settings, entries.get(settings.name))])),
    );
  }

  function entryFor(settings: Upstream, before: Entry | undefined): Entry {
    if (before === undefined) return { inForce: open(settings, []) };
    const { inForce, awaited } = before;
    if (forwardsAlike(inForce.settings, settings)) return { inForce };
    if (awaited && forwardsAlike(awaited.settings, settings)) return before;
    const isSameName = new URL(settings.url).hostname === new URL(inForce.settings.url).hostname;
    const opened = open(settings, isSameName ? inForce.targets.addresses() : []);
    const hasToWait = opened.targets.addresses().length === 0 && inForce.targets.addresses().length > 0;
    if (!hasToWait) return { inForce: opened };
    void opened.targets.pending?.then(() => warnOfAwaited(opened));
    void opened.targets.found.then(() => takeOver(opened));
    return { inForce, awaited: opened };
  }

  function warnOfAwaited({ settings: { name, url }, targets }: LiveUpstream): void {
    const entry = entries.get(name);
    if (entry?.awaited?.targets !== targets) return;
    const earlier = entry.inForce.settings.url;
    const members = { upstream: name, url, earlier, reason: targets.lookupFailure()?.reason };
    log.warn(members, 'the upstream stays as it was: its new host name cannot be looked up');
  }

  function takeOver(found: LiveUpstream): void {
    const { name, url } = found.settings;
    if (entries.get(name)?.awaited !== found) return;
    log.info({ upstream: name, url }, 'the new host name of the upstream was found: the edit is in force');
    setEntries(
      new Map([...entries].map(([each, entry]) => [each, each === name ? { inForce: found } : entry])),
    );
  }

  function setEntries(next: ReadonlyMap<string, Entry>): void {
    const kept = new Set(allOf(next));
    const replaced = allOf(entries).filter((upstream) => !kept.has(upstream));
    entries = next;
    for (const { targets } of replaced) void retire(targets);
  }

  function open(settings: Upstream, knownAddresses: readonly string[]): LiveUpstream {
    const ofUpstream = withTimeouts(bounds, settings.timeouts);
    const host = settings.host === 'target' ? new URL(settings.url).host : undefined;
    return {
      settings,
      bounds: ofUpstream,
      host,
      targets: createTargets({
        ...deps,
        upstream: settings,
        host,
        knownAddresses,
        bounds: ofUpstream,
        log: log.child({ upstream: settings.name }),
      }),
      retryBudget: new RetryBudget(ofUpstream),
    };
  }

  async function retire(targets: Targets): Promise<void> {
    retiring.add(targets);
    await targets.retire();
    retiring.delete(targets);
  }

  return {
    /** Returns the upstream with this name; undefined when a reload has removed it. */
    find: (name: string): LiveUpstream | undefined => entries.get(name)?.inForce,
    /** Applies a new configuration. Unchanged upstreams keep their connections. Requests in flight finish on the old upstreams. */
    replace,
    /** The interval of deadline checks, which depends on the shortest timeout. */
    sweepIntervalMs: () => Math.min(...allOf(entries).map((upstream) => upstream.bounds.sweepIntervalMs)),
    /** Returns the state of each upstream, in the order of the configuration. The name of a member is the name of the upstream. */
    state: (): Readonly<Record<string, UpstreamState>> =>
      Object.fromEntries([...entries].map(([name, entry]) => [name, stateOf(entry)])),
    /** Lets requests in flight finish for `upstreamCloseTimeoutMs`, then closes their connections. */
    async close() {
      const all = [...allOf(entries).map(({ targets }) => targets), ...retiring];
      const timer = setTimeout(() => {
        for (const targets of all) void targets.destroy();
      }, bounds.upstreamCloseTimeoutMs);
      await Promise.all(all.map((targets) => targets.retire()));
      clearTimeout(timer);
    },
  };
}

/** Whether both settings forward in the same way. An edit of `failing` therefore closes no connection. */
function forwardsAlike({ failing: _, ...one }: Upstream, { failing: __, ...other }: Upstream): boolean {
  return isDeepStrictEqual(one, other);
}

function allOf(entries: ReadonlyMap<string, Entry>): readonly LiveUpstream[] {
  return [...entries.values()].flatMap(({ inForce, awaited }) => (awaited ? [inForce, awaited] : [inForce]));
}

function stateOf({ inForce, awaited }: Entry): UpstreamState {
  const { settings, targets } = inForce;
  return {
    url: settings.url,
    targets: targets.state(),
    ...lookupErrorOf(targets),
    awaited: awaited && { url: awaited.settings.url, ...lookupErrorOf(awaited.targets) },
  };
}

function lookupErrorOf(targets: Targets): Pick<UpstreamState, 'lookupError' | 'lookupErrorSinceAt'> {
  const failure = targets.lookupFailure();
  return { lookupError: failure?.reason, lookupErrorSinceAt: failure?.sinceAt };
}

/**
 * Returns the bounds of the process, in which the timeouts of an upstream replace the default timeouts. The interval of deadline checks is
 * at most a tenth of the shortest timeout. A timeout is therefore late by at most ten percent.
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
