/** A process is ready only while it is `serving`. */
export type Phase = 'starting' | 'serving' | 'draining';

/** What readiness is judged by, as the parts of the gateway report it. Instants are ISO 8601, in UTC. */
export interface GatewayState {
  readonly phase: Phase;
  /** Absent: one process is all there is. */
  readonly workers?: { readonly configured: number; readonly serving: number; readonly replaced: number };
  readonly environment: string;
  readonly config: { readonly version: string; readonly loadedAt: string } & NotInForce;
  readonly store: { readonly kind: 'memory' } | StoreOnRedis;
  /** Those of the listeners that speak TLS, by the name of the setting. */
  readonly certificates: Readonly<Record<string, CertificateReadiness>>;
  /** The record of what keys ask for; absent: nothing is recorded. */
  readonly usage?: UsageReadiness;
  /** By name; the first is the default. With the short form `upstream` there is one, and its name is `default`. */
  readonly upstreams: Readonly<Record<string, UpstreamReadiness>>;
}

/** What of the configuration on disk is not in force. */
export interface NotInForce {
  /** Set while something on disk is not valid: every problem, as `tollgate check` prints it. */
  readonly lastError?: string;
  /** The files that keep their last valid content. */
  readonly kept?: readonly KeptContent[];
  /** The names of changed settings that take effect at the next start. */
  readonly waitsForRestart?: readonly string[];
}

interface KeptContent {
  readonly file: string;
  /** The first problem, with its place. */
  readonly reason: string;
  /** When the content on disk was found not to be valid. */
  readonly since: string;
  /** Whether keys and tokens that the content on disk disables or leaves out are refused all the same. */
  readonly revokes: boolean;
}

interface UsageReadiness {
  readonly keptDays: number;
  /** Set while nothing is recorded. */
  readonly pausedBecause?: string;
  /** Requests of this process that are in no record. */
  readonly lostRequests: number;
}

interface UpstreamReadiness {
  readonly url: string;
  readonly targets: readonly TargetReadiness[];
  /** Set while its host name cannot be looked up: why, and since when. */
  readonly lookupError?: string | undefined;
  readonly lookupErrorSinceAt?: string | undefined;
  /** Set while an edit of it waits for its new host name to be found. */
  readonly awaited?:
    | {
        readonly url: string;
        readonly lookupError?: string | undefined;
        readonly lookupErrorSinceAt?: string | undefined;
      }
    | undefined;
}

interface TargetReadiness {
  readonly address: string;
  readonly healthy: boolean;
  /** Whether all connections to it are in use. */
  readonly full: boolean;
}

interface CertificateReadiness {
  /** Until when it is valid. */
  readonly notAfter: string;
  /** Set when it has expired or soon will, with since when that is so. */
  readonly notice?: string;
  readonly noticeSinceAt?: string;
  readonly isExpired?: boolean;
}

interface StoreOnRedis {
  readonly kind: 'redis';
  readonly available: boolean;
  readonly onFailure: 'local' | 'refuse';
  /** Since when it is available or away. */
  readonly since: string;
  /** Why it is away. */
  readonly reason?: string;
  /** What the ACL of its user refuses, though it is needed. */
  readonly missingCommands?: readonly string[];
  /** Those of a Redis Cluster: each may be away on its own. */
  readonly servers?: readonly {
    readonly name: string;
    readonly available: boolean;
    readonly since: string;
    readonly reason?: string;
  }[];
}

export interface Readiness {
  readonly httpStatus: 200 | 503;
  readonly body: GatewayState & {
    readonly status: 'ok' | 'degraded' | 'unavailable';
    /** One sentence for each fault. */
    readonly reasons: readonly string[];
  };
}

/**
 * Ready while the gateway can serve. Faults that all replicas have at once (the upstream is down, Redis is away under
 * `local`, an edit is invalid, a certificate expires) only degrade it: a load balancer must not remove every replica.
 */
export function judgeReadiness(state: GatewayState): Readiness {
  const fatal: string[] = [];
  const reasons: string[] = [];
  if (state.phase !== 'serving') fatal.push(`the gateway is ${state.phase}`);
  if (state.phase === 'serving' && state.workers !== undefined) {
    const { configured, serving } = state.workers;
    if (serving === 0) fatal.push('no worker serves');
    else if (serving < configured) reasons.push(`${serving} of ${configured} workers serve`);
  }
  if (state.store.kind === 'redis' && !state.store.available) {
    const { onFailure, servers = [] } = state.store;
    if (servers.some(({ available }) => available)) reasons.push(...serversAway(state.store));
    else if (onFailure === 'refuse') fatal.push('Redis is away and redis.onFailure is refuse');
    else reasons.push('Redis is away; limits are counted by each process on its own');
  }
  if (state.store.kind === 'redis' && state.store.missingCommands !== undefined) {
    reasons.push(`the Redis user may not run ${state.store.missingCommands.join(', ')}`);
  }
  reasons.push(...upstreamReasons(state.upstreams));
  reasons.push(...configReasons(state.config));
  if (state.usage?.pausedBecause !== undefined) {
    reasons.push(`what keys use is not recorded: ${state.usage.pausedBecause}`);
  }
  for (const { notice } of Object.values(state.certificates)) if (notice !== undefined) reasons.push(notice);
  const status = fatal.length > 0 ? 'unavailable' : reasons.length > 0 ? 'degraded' : 'ok';
  return {
    httpStatus: status === 'unavailable' ? 503 : 200,
    body: { status, reasons: [...fatal, ...reasons], ...state },
  };
}

function configReasons({ lastError, kept = [], waitsForRestart = [] }: NotInForce): string[] {
  const reasons = kept.map(({ file, reason, since, revokes }) => {
    const revoked = revokes ? ', without the keys and tokens that it revokes' : '';
    return `${file} keeps its last valid content since ${since}${revoked}: ${reason}`;
  });
  if (lastError !== undefined && kept.length === 0) {
    reasons.push('the configuration on disk is not valid; the last good one is in force');
  }
  if (waitsForRestart.length > 0) {
    reasons.push(`a change of ${waitsForRestart.join(', ')} takes effect at the next start`);
  }
  return reasons;
}

/** A server of a Redis Cluster takes only its own keys with it: another gateway would serve them no better. */
function serversAway({ servers = [], onFailure }: StoreOnRedis): string[] {
  const effect =
    onFailure === 'refuse'
      ? 'requests of its keys are answered 503'
      : 'limits of its keys are counted by each process on its own';
  return servers.flatMap(({ name, available, reason }) =>
    available ? [] : [`Redis server ${name} is away (${reason ?? 'not connected'}); ${effect}`],
  );
}

/** Where there are several upstreams, a reason says which one it is about. */
function upstreamReasons(upstreams: GatewayState['upstreams']): string[] {
  const all = Object.entries(upstreams);
  return all.flatMap(([name, { targets, lookupError, awaited }]) => {
    const named = all.length > 1 ? ` \`${name}\`` : '';
    const full = targets.filter((target) => target.full);
    return [
      ...(targets.some((target) => target.healthy) ? [] : [`the upstream${named} has no healthy target`]),
      ...(lookupError === undefined ? [] : [`the host name of the upstream${named} cannot be looked up`]),
      ...(awaited?.lookupError === undefined
        ? []
        : [`the upstream${named} stays as it was: the host of ${awaited.url} cannot be looked up`]),
      ...full.map(
        ({ address }) =>
          `every connection to ${address}${named && ` of the upstream${named}`} is in use; further requests wait`,
      ),
    ];
  });
}
