/** The state that a gateway process publishes once a second. Every process reads the states of all. Instants are ISO 8601, in UTC. */
export interface ProcessState {
  /** A random id per start of a process. */
  readonly id: string;
  readonly host: string;
  readonly pid: number;
  /** Number of the worker, from 1; absent in a gateway without workers. */
  readonly worker?: number;
  readonly startedAt: string;
  readonly phase: 'starting' | 'serving' | 'draining';
  readonly configVersion: string;
  readonly configLoadedAt: string;
  /** In the last ten seconds. */
  readonly requestsPerSecond: number;
  /** Requests per second by response status. 429 counts only the gateway's own responses. */
  readonly outcomes: Readonly<Record<string, number>>;
  /** Requests per second that failed because of the gateway or the upstream. */
  readonly failuresPerSecond: number;
  readonly lastMinute: RequestsLastMinute;
  /** Percentile of the gateway's own part in a request; absent without a request in the last ten seconds. */
  readonly p50Ms?: number | undefined;
  readonly p99Ms?: number | undefined;
  /** Percentile of the upstream's part in a request. */
  readonly upstreamP50Ms?: number | undefined;
  readonly upstreamP99Ms?: number | undefined;
  /** Requests in flight, and client connections. */
  readonly inFlight: number;
  readonly connections: number;
  /** `sinceAt`: begin of the present state of `available`; absent for the memory store. */
  readonly store: {
    readonly kind: 'memory' | 'redis';
    readonly available: boolean;
    readonly sinceAt?: string;
  };
  readonly upstreams: readonly UpstreamSeen[];
  /** Faults of the whole gateway that no figure above shows. */
  readonly faults: readonly Fault[];
}

/** Failed requests by cause. `sinceAt` is set while they are a large share of all requests. */
export interface RequestsLastMinute {
  readonly requests: number;
  readonly failed: Readonly<
    Record<'gateway' | 'upstream', { readonly requests: number; readonly sinceAt?: string | undefined }>
  >;
}

/** A condition that an operator should know. */
export interface Fault {
  readonly severity: Severity;
  readonly code: string;
  /** One sentence. */
  readonly text: string;
  /** Begin of the fault; ISO 8601, in UTC. */
  readonly sinceAt: string;
}

/**
 * `bad`: requests fail or are counted wrong. `warning`: requests may soon fail or be counted wrong. `notice`: no request is affected.
 */
export type Severity = 'bad' | 'warning' | 'notice';

/** An upstream as one process sees it. Each process has its own health checks and requests in flight. */
export interface UpstreamSeen {
  readonly name: string;
  readonly url: string;
  readonly targets: readonly TargetSeen[];
  /** The reason while the host name cannot be looked up. The last known addresses stay in use. */
  readonly lookupError?: string | undefined;
  readonly lookupErrorSinceAt?: string | undefined;
}

export interface TargetSeen {
  readonly address: string;
  readonly healthy: boolean;
  /** Begin of the present state of `healthy`. */
  readonly sinceAt: string;
  readonly inFlight: number;
  readonly tunnels: number;
  /** Whether all connections to the target are in use. */
  readonly full: boolean;
  /** The reason when the target is not healthy. */
  readonly reason?: string | undefined;
}

/** The upstreams of `/readyz` in the published form. @param targetsMax largest number of published targets per upstream */
export function upstreamsSeen(
  upstreams: Readonly<Record<string, Omit<UpstreamSeen, 'name'>>>,
  targetsMax: number,
): readonly UpstreamSeen[] {
  return Object.entries(upstreams).map(([name, { url, targets, lookupError, lookupErrorSinceAt }]) => {
    return { name, url, targets: targets.slice(0, targetsMax), lookupError, lookupErrorSinceAt };
  });
}

const none = { requests: 0 };

/**
 * Parses the published state of another process. The state of an earlier version lacks members. A missing member counts as no
 * fault.
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
