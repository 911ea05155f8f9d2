import type { LookUpOutcome } from '../keys/directory/look-ups.ts';
import type { LastMinute } from '../observe/metrics/last-minute.ts';
import type { ProcessMetrics } from '../observe/metrics/process-metrics.ts';
import type { RecentFigures } from '../observe/metrics/recent-figures.ts';
import type { RequestCounts } from '../observe/metrics/request-metrics.ts';
import type { TargetState } from '../request/forward/upstream/targets.ts';
import type { UpstreamState } from '../request/forward/upstream/upstreams.ts';
import type { StoreCounts } from '../request/limit/limiter.ts';

/** What those that serve requests tell those that serve operators, who may be in another process. */
export interface Served {
  /** The processes that serve requests now. */
  processes(): readonly ServingProcess[];
  /** What was counted since the start, by all of them together. */
  counted(): Counted;
  /** Absent: one process is all there is. */
  readonly workers?: {
    /** How many there should be, how many there are, and how many had to be replaced since the start. */
    count(): WorkerCounts;
    /** What the library for metrics knows of each process, those that have ended included as far as it adds up. */
    metrics(): Promise<readonly ProcessMetrics[]>;
  };
}

export interface WorkerCounts {
  readonly configured: number;
  readonly serving: number;
  readonly replaced: number;
}

/** A process that serves requests, as it is now. Plain data, like what was counted: it can be cloned. */
export interface ServingProcess {
  /** Drawn when it starts. */
  readonly id: string;
  readonly pid: number;
  /** Its number, where there are several. */
  readonly worker?: number;
  /** ISO 8601, in UTC. */
  readonly startedAt: string;
  readonly configVersion: string;
  readonly configLoadedAt: string;
  readonly recent: RecentFigures;
  readonly lastMinute: LastMinute;
  readonly connections: number;
  readonly inFlight: number;
  readonly store: {
    readonly kind: 'memory' | 'redis';
    readonly available: boolean;
    readonly sinceAt?: string;
  };
  /** By name. */
  readonly upstreams: Readonly<Record<string, UpstreamState>>;
  /** Keys of the directory that it has read. */
  readonly heldKeys: number;
}

/** Figures that never become less while a process lives. */
export interface Counted {
  readonly requests: RequestCounts;
  readonly decidedLocally: number;
  readonly storeCalls: StoreCounts['calls'];
  readonly lookUps: ReadonlyMap<LookUpOutcome, number>;
  /** Requests that are in no usage record. */
  readonly lostRequests: number;
}

type Upstreams = ServingProcess['upstreams'];

/**
 * Upstreams as several processes see them. A target counts as healthy when every process that has it finds it so, and as
 * full when it is so for any; requests are added up.
 */
export function joinUpstreams(all: readonly Upstreams[]): Upstreams {
  const [only] = all;
  if (only !== undefined && all.length === 1) return only;
  const joined: Record<string, UpstreamState> = {};
  for (const [name, upstream] of all.flatMap((upstreams) => Object.entries(upstreams))) {
    const before = joined[name];
    joined[name] = before === undefined ? upstream : joinUpstream(before, upstream);
  }
  return joined;
}

function joinUpstream(one: UpstreamState, other: UpstreamState): UpstreamState {
  const byAddress = Map.groupBy([...one.targets, ...other.targets], ({ address }) => address);
  const targets = [...byAddress.values()].map((seen) => seen.reduce(joinTarget));
  const { lookupError, lookupErrorSinceAt } = one.lookupError === undefined ? other : one;
  return { url: one.url, targets, lookupError, lookupErrorSinceAt, awaited: one.awaited ?? other.awaited };
}

function joinTarget(one: TargetState, other: TargetState): TargetState {
  return {
    ...one,
    ...(one.healthy ? other : one),
    inFlight: one.inFlight + other.inFlight,
    tunnels: one.tunnels + other.tunnels,
    full: one.full || other.full,
  };
}
