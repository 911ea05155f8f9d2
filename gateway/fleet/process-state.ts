/**
 * The state that a gateway process publishes once a second. Every process reads the states of all processes. All times are ISO 8601 in UTC.
 */
export interface ProcessState {
  /** A random id that a process gets at its start. */
  readonly id: string;
  readonly host: string;
  readonly pid: number;
  /** Number of the worker, from 1; absent in a gateway without workers. */
  readonly worker?: number | undefined;
  readonly startedAt: string;
  readonly phase: 'starting' | 'serving' | 'draining';
  readonly configVersion: string;
  readonly configLoadedAt: string;
  /** Figures of the last ten seconds. */
  readonly requestsPerSecond: number;
  /** Requests per second by response status. The value of `429` counts only the gateway's own responses. */
  readonly outcomes: Readonly<Record<string, number>>;
  /** Requests per second that failed because of the gateway or the upstream. */
  readonly failuresPerSecond: number;
  readonly lastMinute: RequestsLastMinute;
  /** A percentile of the time that the gateway itself added to a request; absent without a request in the last ten seconds. */
  readonly p50Ms?: number | undefined;
  readonly p99Ms?: number | undefined;
  /** A percentile of the time that the upstream took for a request. */
  readonly upstreamP50Ms?: number | undefined;
  readonly upstreamP99Ms?: number | undefined;
  /** The number of requests in flight, and the number of client connections. */
  readonly inFlight: number;
  readonly connections: number;
  /** `sinceAt` is the time at which `available` last changed; absent for the memory store. */
  readonly store: {
    readonly kind: 'memory' | 'redis';
    readonly available: boolean;
    readonly sinceAt?: string;
  };
  readonly upstreams: readonly UpstreamSeen[];
  /**
   * The number of the last flush for which the process has sent all its counts (`flush/flush-fleet.ts`); absent before the first flush.
   */
  readonly flushed?: number | undefined;
  /** Faults of the whole gateway. The list omits faults that other members of this object show. */
  readonly faults: readonly Fault[];
}

/** Failed requests by cause. `sinceAt` is present while the failed requests exceed a minimum share of all requests. */
interface RequestsLastMinute {
  readonly requests: number;
  readonly failed: Readonly<
    Record<'gateway' | 'upstream', { readonly requests: number; readonly sinceAt?: string | undefined }>
  >;
}

/** A condition that requires an operator's attention. */
export interface Fault {
  readonly severity: Severity;
  readonly code: string;
  /** One sentence. */
  readonly text: string;
  /** The beginning of the fault, ISO 8601 in UTC. */
  readonly sinceAt: string;
}

/**
 * The severity. `bad` means that requests fail or are counted wrongly. `warning` means that requests may soon fail or be counted wrongly.
 * `notice` means that no request is affected.
 */
export type Severity = 'bad' | 'warning' | 'notice';

/** The state of an upstream in one process. Each process has its own requests in flight, and its own view of the health of targets. */
export interface UpstreamSeen {
  readonly name: string;
  readonly url: string;
  readonly targets: readonly TargetSeen[];
  /** The number of healthy targets that a reader of a large fleet has omitted from `targets`; absent if it has omitted none. */
  readonly omittedTargets?: number | undefined;
  /**
   * The reason for a failed DNS look-up; present while look-ups fail. The gateway still uses the addresses of the last successful look-up.
   */
  readonly lookupError?: string | undefined;
  readonly lookupErrorSinceAt?: string | undefined;
}

export interface TargetSeen {
  readonly address: string;
  readonly healthy: boolean;
  /** The time at which `healthy` last changed. */
  readonly sinceAt: string;
  readonly inFlight: number;
  readonly tunnels: number;
  /** Whether all connections to the target are in use. */
  readonly full: boolean;
  /** The reason why the target is unhealthy. */
  readonly reason?: string | undefined;
}

/** Converts the upstreams of `/readyz` to the published form. @param targetsMax largest number of published targets per upstream */
export function upstreamsSeen(
  upstreams: Readonly<Record<string, Omit<UpstreamSeen, 'name'>>>,
  targetsMax: number,
): readonly UpstreamSeen[] {
  return Object.entries(upstreams).map(([name, { url, targets, lookupError, lookupErrorSinceAt }]) => {
    return { name, url, targets: targets.slice(0, targetsMax), lookupError, lookupErrorSinceAt };
  });
}

/** Omits the healthy targets of a process. */
export function withoutHealthyTargets<State extends Pick<ProcessState, 'upstreams'>>(state: State): State {
  const upstreams = state.upstreams.map((upstream) => {
    const targets = upstream.targets.filter(({ healthy }) => !healthy);
    return { ...upstream, targets, omittedTargets: upstream.targets.length - targets.length };
  });
  return { ...state, upstreams };
}

const none = { requests: 0 };

/**
 * Parses the published state of another process. A process of an earlier version may publish a state without newer members. A missing list
 * of faults means that there is no fault.
 *
 * @returns undefined when the text is not a state
 */
export function parseProcessState(text: string | null | undefined): ProcessState | undefined {
  try {
    const state: ProcessState = JSON.parse(text ?? '');
    const { id, startedAt, upstreams, configLoadedAt, lastMinute, faults } = state;
    if (typeof id !== 'string') return undefined;
    return {
      ...state,
      configLoadedAt: configLoadedAt ?? startedAt,
      lastMinute: lastMinute ?? { requests: 0, failed: { gateway: none, upstream: none } },
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

/** A fault whose start time may be unknown. */
export type FoundFault = Omit<Fault, 'sinceAt'> & { readonly sinceAt?: string | undefined };

/** What a capability adds to the state of a gateway. */
export interface PartState {
  /** The members of the response of `/readyz`. */
  readonly members: Readonly<Record<string, unknown>>;
  /** Why `/readyz` is `degraded`: sentences without their full stops. */
  readonly reasons: readonly string[];
  readonly faults: readonly FoundFault[];
}
