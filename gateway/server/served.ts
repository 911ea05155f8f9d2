import type { ProcessState, TargetSeen } from '../fleet/process-state.ts';
import type { LookUpOutcome } from '../keys/directory/look-ups.ts';
import type { UnreadForwardedFor } from '../observe/forwarded-for-watch.ts';
import type { ProcessMetrics } from '../observe/metrics/process-metrics.ts';
import type { RequestCounts } from '../observe/metrics/request-metrics.ts';
import type { UpstreamState } from '../request/forward/upstream/upstreams.ts';
import type { StoreCounts } from '../request/limit/limiter.ts';
import type { OwnMemory } from './own-memory.ts';

/**
 * The figures of the processes that serve requests. The part of the gateway that serves operators reads these figures, possibly in another
 * process.
 */
export interface Served {
  /** The processes that currently serve requests. */
  processes(): readonly ServingProcess[];
  /** The counters, added up over all processes since the start. */
  counted(): Counted;
  /** Makes the processes send their unsent counts (`Stores.sendCounts`). */
  sendCounts(flush: number): void;
  /** The joined memories of the processes. */
  readonly memory: OwnMemory;
  /** Absent in a gateway without workers. */
  readonly workers?: {
    /** The number of configured workers, of serving workers, and of replaced workers since the start. */
    count(): WorkerCounts;
    /** The metrics of each process. The counters include workers that have exited. */
    metrics(): Promise<readonly ProcessMetrics[]>;
  };
}

interface WorkerCounts {
  readonly configured: number;
  readonly serving: number;
  readonly replaced: number;
}

/** The current state of a process that serves requests. The state is plain data, so it can be sent to another process. */
export interface ServingProcess
  extends Omit<ProcessState, 'host' | 'phase' | 'upstreams' | 'faults' | 'failingUpstreams'> {
  /** By name. */
  readonly upstreams: Readonly<Record<string, UpstreamState>>;
  /** Number of cached keys of the directory. */
  readonly heldKeys: number;
  readonly unreadForwardedFor?: UnreadForwardedFor | undefined;
}

/** Counters that never decrease while the process runs. */
export interface Counted {
  readonly requests: RequestCounts;
  readonly decidedLocally: number;
  readonly storeCalls: StoreCounts['calls'];
  readonly lookUps: ReadonlyMap<LookUpOutcome, number>;
  /** Requests that are missing from the usage record. */
  readonly lostRequests: number;
  /** The counters of capabilities (`ProcessPart`). */
  readonly ofParts: Readonly<Record<string, number>>;
}

type Upstreams = ServingProcess['upstreams'];

/**
 * Merges the states of upstreams from several processes. A target is healthy when every process finds it healthy. A target is full when any
 * process uses all its connections to the target. The numbers of requests are added up.
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

function joinTarget(one: TargetSeen, other: TargetSeen): TargetSeen {
  return {
    ...one,
    ...(one.healthy ? other : one),
    inFlight: one.inFlight + other.inFlight,
    tunnels: one.tunnels + other.tunnels,
    full: one.full || other.full,
  };
}
