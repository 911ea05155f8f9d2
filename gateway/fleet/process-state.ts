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
  /** Files of its configuration that keep their last valid content. */
  readonly keptFiles?: readonly string[];
  /** The names of changed settings that take effect when it is started again. */
  readonly waitsForRestart?: readonly string[];
  /** In the last ten seconds. */
  readonly requestsPerSecond: number;
  /** Requests per second, by what they were answered; 429 by the gateway. */
  readonly outcomes: Readonly<Record<string, number>>;
  /** Those that failed by fault of the gateway or the upstream. */
  readonly failuresPerSecond: number;
  /** Of the gateway's own part in a request; absent where there was none in the last ten seconds. */
  readonly p50Ms?: number;
  readonly p99Ms?: number;
  /** Of what passed at the upstream. */
  readonly upstreamP50Ms?: number;
  readonly upstreamP99Ms?: number;
  /** Requests that are not over, and client connections. */
  readonly inFlight: number;
  readonly connections: number;
  readonly store: { readonly kind: 'memory' | 'redis'; readonly available: boolean };
  readonly upstreams: readonly UpstreamSeen[];
}

/** An upstream as one process sees it: health and what is in flight are each process's own. */
export interface UpstreamSeen {
  readonly name: string;
  readonly url: string;
  readonly targets: readonly TargetSeen[];
  /** Set while its host name cannot be looked up. */
  readonly lookupError?: string;
}

export interface TargetSeen {
  readonly address: string;
  readonly healthy: boolean;
  readonly inFlight: number;
  readonly tunnels: number;
  /** Whether all connections to it are in use. */
  readonly full: boolean;
  /** Why it is not healthy. */
  readonly reason?: string;
}

/** What `/readyz` says of upstreams, as it is published. @param targetsMax how many targets of each are */
export function upstreamsSeen(
  upstreams: Readonly<
    Record<
      string,
      { readonly url: string; readonly targets: readonly TargetSeen[]; readonly lookupError?: string }
    >
  >,
  targetsMax: number,
): readonly UpstreamSeen[] {
  return Object.entries(upstreams).map(([name, { url, targets, lookupError }]) => ({
    name,
    url,
    targets: targets.slice(0, targetsMax),
    ...(lookupError !== undefined && { lookupError }),
  }));
}
