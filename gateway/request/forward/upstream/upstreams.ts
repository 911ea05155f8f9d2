import { isDeepStrictEqual } from 'node:util';
import type { Logger } from 'pino';
import type { AtTurnEnd } from '../../../shared/event-loop-batch.ts';
import type { TargetEvent, Upstream } from '../../../shared/model.ts';
import type { Bounds } from '../../../shared/timeouts-and-sizes.ts';
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
  /** What is in force. */
  readonly url: string;
  readonly targets: readonly TargetState[];
  /** Why the last lookup of the host name failed, and since when lookups fail; the addresses before it are kept. */
  readonly lookupError?: string;
  readonly lookupErrorSinceAt?: string;
  /** What an edit has put in its place, and what is not in force while its host name has never been found. */
  readonly awaited?: {
    readonly url: string;
    readonly lookupError?: string;
    readonly lookupErrorSinceAt?: string;
  };
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
  /** Epoch ms. */
  readonly nowMs: () => number;
  readonly log: Logger;
  /** Hears what is logged of the health of targets. */
  readonly onEvent?: ((event: TargetEvent) => void) | undefined;
  readonly atTurnEnd: AtTurnEnd;
}

/** What a name of the configuration stands for. */
interface Entry {
  readonly inForce: LiveUpstream;
  /** What an edit has made of it, while its host name has never been found. */
  readonly awaited?: LiveUpstream;
}

/**
 * The upstreams by name, and those that a reload has replaced until their last request is over.
 *
 * An edit takes effect at once where addresses are known: that of an IP address, and that of anything but the host name,
 * whose addresses are kept. With another host name the upstream stays as it was until that name is found, however long
 * it takes: a name that is misspelt, or not there yet, would otherwise be an outage.
 */
export function createUpstreams(options: UpstreamsOptions): Upstreams {
  const { bounds, log } = options;
  let entries: ReadonlyMap<string, Entry> = new Map();
  const retiring = new Set<Targets>();
  replace(options.upstreams);

  function replace(next: readonly Upstream[]): void {
    setEntries(
      new Map(next.map((settings) => [settings.name, entryFor(settings, entries.get(settings.name))])),
    );
  }

  function entryFor(settings: Upstream, before: Entry | undefined): Entry {
    if (before === undefined) return { inForce: open(settings, []) };
    const { inForce, awaited } = before;
    if (isDeepStrictEqual(inForce.settings, settings)) return { inForce };
    if (awaited && isDeepStrictEqual(awaited.settings, settings)) return before;
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
        knownAddresses,
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
    find: (name) => entries.get(name)?.inForce,
    replace,
    sweepIntervalMs: () => Math.min(...allOf(entries).map((upstream) => upstream.bounds.sweepIntervalMs)),
    state: () => Object.fromEntries([...entries].map(([name, entry]) => [name, stateOf(entry)])),
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

function allOf(entries: ReadonlyMap<string, Entry>): readonly LiveUpstream[] {
  return [...entries.values()].flatMap(({ inForce, awaited }) => (awaited ? [inForce, awaited] : [inForce]));
}

function stateOf({ inForce, awaited }: Entry): UpstreamState {
  const { settings, targets } = inForce;
  return {
    url: settings.url,
    targets: targets.state(),
    ...withLookupError(targets),
    ...(awaited && { awaited: { url: awaited.settings.url, ...withLookupError(awaited.targets) } }),
  };
}

function withLookupError(targets: Targets): Pick<UpstreamState, 'lookupError' | 'lookupErrorSinceAt'> {
  const failure = targets.lookupFailure();
  return failure === undefined ? {} : { lookupError: failure.reason, lookupErrorSinceAt: failure.sinceAt };
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
