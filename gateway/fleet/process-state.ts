/** Published once a second, and read by every process. Times are ISO 8601 in UTC. */
export interface ProcessState {
  /** Random; given at the start of the process. */
  readonly id: string;
  readonly host: string;
  readonly pid: number;
  /** From 1; absent in a gateway without workers. */
  readonly worker?: number | undefined;
  readonly startedAt: string;
  readonly phase: 'starting' | 'serving' | 'draining';
  readonly configVersion: string;
  readonly configLoadedAt: string;
  /** Figures of the last ten seconds. */
  readonly requestsPerSecond: number;
  /** By response status. `429` counts only the gateway's own responses. */
  readonly outcomes: Readonly<Record<string, number>>;
  /** The part of `429` that limits of client addresses refused; absent in processes of earlier versions. */
  readonly addressRefusalsPerSecond?: number | undefined;
  readonly unauthorizedPerSecond?: number | undefined;
  /** Failed because of the gateway or the upstream. */
  readonly failuresPerSecond: number;
  readonly lastMinute: RequestsLastMinute;
  /** The time that the gateway itself added to a request; absent without a request in the last ten seconds. */
  readonly p50Ms?: number | undefined;
  readonly p99Ms?: number | undefined;
  /** The time that the upstream took for a request. */
  readonly upstreamP50Ms?: number | undefined;
  readonly upstreamP99Ms?: number | undefined;
  /** Requests, and client connections. */
  readonly inFlight: number;
  readonly connections: number;
  /** `sinceAt`: when `available` last changed; absent for the memory store. */
  readonly store: {
    readonly kind: 'memory' | 'redis';
    readonly available: boolean;
    readonly sinceAt?: string;
  };
  readonly upstreams: readonly UpstreamSeen[];
  /** The last flush for which the process has sent all its counts (`flush/flush-fleet.ts`); absent before the first flush. */
  readonly flushed?: number | undefined;
  /** Faults of the whole gateway, without faults that other members of this object show. */
  readonly faults: readonly Fault[];
  /** The upstreams that fail, as the gateway of the process finds; absent in processes of earlier versions. */
  readonly failingUpstreams?: readonly FailingUpstream[] | undefined;
}

/** The name of an upstream that fails, and the time at which it began to fail. */
export interface FailingUpstream {
  readonly name: string;
  readonly sinceAt: string;
}

interface RequestsLastMinute {
  readonly requests: number;
  /** Failed requests by cause. `sinceAt` is present while the failed requests exceed a minimum share of all requests. */
  readonly failed: {
    readonly gateway: { readonly requests: number; readonly sinceAt?: string | undefined };
    readonly upstream: { readonly requests: number };
  };
  /** The upstreams with requests; absent in processes of earlier versions. */
  readonly upstreams?: readonly (UpstreamFigures & { readonly name: string })[] | undefined;
}

/** Requests that an upstream has answered or failed. Requests whose client has closed the connection do not count. */
export interface UpstreamFigures {
  readonly requests: number;
  /** The requests that ended with 5xx or were cut off because of the upstream. */
  readonly failed: number;
}

/** Requires an operator's attention. */
export interface Fault {
  readonly severity: Severity;
  readonly code: string;
  /** One sentence. */
  readonly text: string;
  /** ISO 8601 in UTC. */
  readonly sinceAt: string;
}

/** `bad`: requests fail or are counted wrongly. `warning`: they may soon. `notice`: no request is affected. */
export type Severity = 'bad' | 'warning' | 'notice';

/** The upstream as one process sees it, with its own requests in flight, and its own view of the health of targets. */
export interface UpstreamSeen {
  readonly name: string;
  readonly url: string;
  readonly targets: readonly TargetSeen[];
  /** Healthy targets that a reader of a large fleet has omitted from `targets`; absent if none. */
  readonly omittedTargets?: number | undefined;
  /** Present while DNS look-ups fail. The gateway still uses the addresses of the last successful look-up. */
  readonly lookupError?: string | undefined;
  readonly lookupErrorSinceAt?: string | undefined;
}

export interface TargetSeen {
  readonly address: string;
  readonly healthy: boolean;
  /** When `healthy` last changed. */
  readonly sinceAt: string;
  readonly inFlight: number;
  readonly tunnels: number;
  /** All connections to the target are in use. */
  readonly full: boolean;
  /** Why the target is unhealthy. */
  readonly reason?: string | undefined;
}

/** From the form of `/readyz`. @param targetsMax published targets per upstream */
export function upstreamsSeen(
  upstreams: Readonly<Record<string, Omit<UpstreamSeen, 'name'>>>,
  targetsMax: number,
): readonly UpstreamSeen[] {
  return Object.entries(upstreams).map(([name, { url, targets, lookupError, lookupErrorSinceAt }]) => {
    return { name, url, targets: targets.slice(0, targetsMax), lookupError, lookupErrorSinceAt };
  });
}

export function withoutHealthyTargets<State extends Pick<ProcessState, 'upstreams'>>(state: State): State {
  const upstreams = state.upstreams.map((upstream) => {
    const targets = upstream.targets.filter(({ healthy }) => !healthy);
    return { ...upstream, targets, omittedTargets: upstream.targets.length - targets.length };
  });
  return { ...state, upstreams };
}

const none = { requests: 0 };

/**
 * A process of an earlier version may publish a state without newer members. A missing list of faults means no fault. @returns undefined
 * when the text is not a state
 */
export function parseProcessState(text: string | null | undefined): ProcessState | undefined {
  try {
    const state: ProcessState = JSON.parse(text ?? '');
    const { id, startedAt, upstreams, configLoadedAt, lastMinute, faults } = state;
    if (typeof id !== 'string') return undefined;
    return {
      ...state,
      configLoadedAt: configLoadedAt ?? startedAt,
      lastMinute: {
        ...(lastMinute ?? { requests: 0, failed: { gateway: none, upstream: none } }),
        upstreams: lastMinute?.upstreams ?? [],
      },
      faults: faults ?? [],
      upstreams: upstreams.map((upstream) => ({
        ...upstream,
        targets: upstream.targets.map((target) => ({ ...target, sinceAt: target.sinceAt ?? startedAt })),
      })),
    };
  } catch {
    return undefined;
  }
}

/** The start may be unknown. */
export type FoundFault = Omit<Fault, 'sinceAt'> & { readonly sinceAt?: string | undefined };

/** Added by a capability to the state of a gateway. */
export interface PartState {
  /** Members of the response of `/readyz`. */
  readonly members: Readonly<Record<string, unknown>>;
  /** Why `/readyz` is `degraded`: sentences without their full stops. */
  readonly reasons: readonly string[];
  readonly faults: readonly FoundFault[];
}
