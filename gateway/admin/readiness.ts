/** Where the process is in its life; only `serving` can be ready. */
export type Phase = 'starting' | 'serving' | 'draining';

/** What readiness is judged by: each part as its station reports it. */
export interface GatewayState {
  readonly phase: Phase;
  readonly environment: string;
  readonly config: {
    readonly version: string;
    readonly loadedAt: string;
    /** Set while the files on disk are not what is in force. */
    readonly lastError?: string;
  };
  readonly store: { readonly kind: 'memory' } | StoreOnRedis;
  readonly upstream: { readonly targets: readonly TargetReadiness[] };
}

interface TargetReadiness {
  readonly address: string;
  readonly healthy: boolean;
  /** Every connection to it is taken. */
  readonly full: boolean;
}

interface StoreOnRedis {
  readonly kind: 'redis';
  readonly available: boolean;
  readonly onFailure: 'local' | 'refuse';
}

export interface Readiness {
  readonly httpStatus: 200 | 503;
  readonly body: GatewayState & {
    readonly status: 'ok' | 'degraded' | 'unavailable';
    /** One sentence for each thing that is not as it should be. */
    readonly reasons: readonly string[];
  };
}

/**
 * Ready while the gateway can serve. What every replica shares (upstream down, Redis away under `local`, a broken
 * edit) only degrades: a balancer that asks must not remove all replicas at once.
 */
export function judgeReadiness(state: GatewayState): Readiness {
  const fatal: string[] = [];
  const reasons: string[] = [];
  if (state.phase !== 'serving') fatal.push(`the gateway is ${state.phase}`);
  if (state.store.kind === 'redis' && !state.store.available) {
    if (state.store.onFailure === 'refuse') fatal.push('Redis is away and redis.onFailure is refuse');
    else reasons.push('Redis is away; limits are counted by each process on its own');
  }
  if (!state.upstream.targets.some((target) => target.healthy)) {
    reasons.push('the upstream has no healthy target');
  }
  for (const { address, full } of state.upstream.targets) {
    if (full) reasons.push(`every connection to ${address} is in use; further requests wait`);
  }
  if (state.config.lastError !== undefined) {
    reasons.push('the configuration on disk is not valid; the last good one is in force');
  }
  const status = fatal.length > 0 ? 'unavailable' : reasons.length > 0 ? 'degraded' : 'ok';
  return {
    httpStatus: status === 'unavailable' ? 503 : 200,
    body: { status, reasons: [...fatal, ...reasons], ...state },
  };
}
