/** What a gateway process says of itself, once a second; every process reads what all say. Instants are ISO 8601, in UTC. */
export interface ProcessState {
  /** Drawn when the process starts: a process that is started again is another one. */
  readonly id: string;
  readonly host: string;
  readonly pid: number;
  /** Its number among the workers of its gateway, from 1; absent where there is one process. */
  readonly worker?: number;
  readonly startedAt: string;
  readonly phase: 'starting' | 'serving' | 'draining';
  readonly configVersion: string;
  readonly configLoadedAt: string;
  /** In the last ten seconds. */
  readonly requestsPerSecond: number;
  /** Requests per second, by what they were answered; 429 by the gateway. */
  readonly outcomes: Readonly<Record<string, number>>;
  /** Those that failed by fault of the gateway or the upstream. */
  readonly failuresPerSecond: number;
  readonly lastMinute: RequestsLastMinute;
  /** Of the gateway's own part in a request; absent where there was none in the last ten seconds. */
  readonly p50Ms?: number | undefined;
  readonly p99Ms?: number | undefined;
  /** Of what passed at the upstream. */
  readonly upstreamP50Ms?: number | undefined;
  readonly upstreamP99Ms?: number | undefined;
  /** Requests that are not over, and client connections. */
  readonly inFlight: number;
  readonly connections: number;
  /** `sinceAt`: since when it is available, or is not; absent in memory. */
  readonly store: {
    readonly kind: 'memory' | 'redis';
    readonly available: boolean;
    readonly sinceAt?: string;
  };
  readonly upstreams: readonly UpstreamSeen[];
  /** Those of its gateway as a whole, which no figure above shows. */
  readonly faults: readonly Fault[];
}

/** How many requests failed, by whose fault that was; `sinceAt` where they are a large part of all. */
export interface RequestsLastMinute {
  readonly requests: number;
  readonly failed: Readonly<
    Record<'gateway' | 'upstream', { readonly requests: number; readonly sinceAt?: string | undefined }>
  >;
}

/** Something that is not as it should be. */
export interface Fault {
  readonly severity: Severity;
  readonly code: string;
  /** One sentence. */
  readonly text: string;
  /** Since when; ISO 8601, in UTC. */
  readonly sinceAt: string;
}

/**
 * `bad`: requests fail or are counted wrong. `warning`: that may come, so somebody should look. `notice`: it harms nobody.
 */
export type Severity = 'bad' | 'warning' | 'notice';

/** An upstream as one process sees it: health and what is in flight are each process's own. */
export interface UpstreamSeen {
  readonly name: string;
  readonly url: string;
  readonly targets: readonly TargetSeen[];
  /** Set while its host name cannot be looked up: why, and since when. */
  readonly lookupError?: string | undefined;
  readonly lookupErrorSinceAt?: string | undefined;
}

export interface TargetSeen {
  readonly address: string;
  readonly healthy: boolean;
  /** Since when it is healthy, or is not. */
  readonly sinceAt: string;
  readonly inFlight: number;
  readonly tunnels: number;
  /** Whether all connections to it are in use. */
  readonly full: boolean;
  /** Why it is not healthy. */
  readonly reason?: string | undefined;
}

/** What `/readyz` says of upstreams, as it is published. @param targetsMax how many targets of each are */
export function upstreamsSeen(
  upstreams: Readonly<Record<string, Omit<UpstreamSeen, 'name'>>>,
  targetsMax: number,
): readonly UpstreamSeen[] {
  return Object.entries(upstreams).map(([name, { url, targets, lookupError, lookupErrorSinceAt }]) => ({
    name,
    url,
    targets: targets.slice(0, targetsMax),
    ...(lookupError !== undefined && { lookupError }),
    ...(lookupErrorSinceAt !== undefined && { lookupErrorSinceAt }),
  }));
}

const none = { requests: 0 };

/**
 * The state that another process has published. One of an earlier version lacks members: of these nothing is known, so
 * that no fault is seen in them.
 *
 * @returns undefined where it is not a state
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
