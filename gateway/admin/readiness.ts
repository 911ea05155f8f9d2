import type { PartState } from '../fleet/process-state.ts';
import type { UnreadForwardedFor } from '../observe/forwarded-for-watch.ts';
import { counted } from '../shared/words/figures.js';

/** A process is ready only while it is `serving`. */
export type Phase = 'starting' | 'serving' | 'draining';

/** The state of the gateway that decides its readiness. All times are ISO 8601, in UTC. */
export interface GatewayState {
  readonly phase: Phase;
  /** Absent in a gateway without workers. */
  readonly workers?:
    | { readonly configured: number; readonly serving: number; readonly replaced: number }
    | undefined;
  readonly environment: string;
  readonly config: { readonly version: string; readonly loadedAt: string } & NotInForce;
  readonly store: { readonly kind: 'memory' } | StoreOnRedis;
  /** Whether there is a key directory, whose keys a process reads from Redis. */
  readonly hasDirectory: boolean;
  /** When Redis lost its data, ISO 8601, as long as operators are told of it. */
  readonly dataLostAt?: string | undefined;
  /** The number of leaked secrets that the configuration still has. These secrets are refused, or only recorded (`leaks.onLeak`). */
  readonly leakedSecrets: number;
  /** What capabilities add to the state. */
  readonly parts: readonly PartState[];
  /** Certificates of the TLS listeners, by the name of the listener's setting. */
  readonly certificates: Readonly<Record<string, CertificateReadiness>>;
  /** A trusted proxy whose entries in `X-Forwarded-For` are no addresses; absent without such entries in the last minute. */
  readonly unreadForwardedFor?: UnreadForwardedFor | undefined;
  /** The usage record; absent when it is switched off. */
  readonly usage?: UsageReadiness | undefined;
  /**
   * Upstreams by name. The first upstream is the default. The short form `upstream` makes one upstream with the name
   * `default`.
   */
  readonly upstreams: Readonly<Record<string, UpstreamReadiness>>;
}

/** The parts of the configuration on disk that the gateway does not use, because they are invalid or need a restart. */
export interface NotInForce {
  /**
   * Every problem of the configuration on disk, in the form of `tollgate check`; undefined while the configuration is
   * valid.
   */
  readonly lastError?: string | undefined;
  /** The invalid files whose last valid content is still used. */
  readonly kept?: readonly KeptContent[] | undefined;
  /** The names of changed settings that take effect at the next start. */
  readonly waitsForRestart?: readonly string[] | undefined;
}

interface KeptContent {
  readonly file: string;
  /** The first problem, with file and line. */
  readonly reason: string;
  /** The time at which the gateway found the invalid content. */
  readonly since: string;
  /** Whether keys and tokens are refused if the content on disk disables or removes them. */
  readonly revokes: boolean;
}

interface UsageReadiness {
  readonly keptDays: number;
  /** The reason for the pause of recording; undefined while recording runs. */
  readonly pausedBecause?: string | undefined;
  /** The number of requests of this process that are missing from the usage record. */
  readonly lostRequests: number;
}

interface UpstreamReadiness {
  readonly url: string;
  readonly targets: readonly TargetReadiness[];
  /** The error of the last DNS lookup of the host name; undefined after a successful lookup. */
  readonly lookupError?: string | undefined;
  readonly lookupErrorSinceAt?: string | undefined;
  /** An edit of the upstream that waits for the DNS lookup of the new host name. */
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
  /** Whether all connections to the target are in use. */
  readonly full: boolean;
}

interface CertificateReadiness {
  /** End of the certificate's validity. */
  readonly notAfter: string;
  /** A warning that the certificate has expired or will expire soon, and the time at which the warning began. */
  readonly notice?: string;
  readonly noticeSinceAt?: string;
  readonly isExpired?: boolean;
}

interface StoreOnRedis {
  readonly kind: 'redis';
  readonly available: boolean;
  readonly onFailure: 'local' | 'refuse';
  /** The time at which `available` last changed. */
  readonly since: string;
  /** The reason why the store is not available; undefined while the store is available. */
  readonly reason?: string | undefined;
  /** Redis commands that the gateway needs but the ACL of the Redis user refuses. */
  readonly missingCommands?: readonly string[];
  /** Why a Redis server decides with a script instead of a Redis Function. This is no fault. */
  readonly functionRefusal?: string;
  /** The servers of a Redis Cluster. One server may be unavailable while the others work. */
  readonly servers?: readonly {
    readonly name: string;
    readonly available: boolean;
    readonly since: string;
    readonly reason?: string | undefined;
  }[];
}

export interface Readiness {
  readonly httpStatus: 200 | 503;
  readonly body: Omit<GatewayState, 'parts' | 'hasDirectory'> & {
    readonly status: 'ok' | 'degraded' | 'unavailable';
    /** One sentence for each fault. */
    readonly reasons: readonly string[];
  };
}

/**
 * Judges whether the gateway can serve. Some faults affect all replicas at the same time, for example an outage of the
 * upstream, an invalid edit, or an expiring certificate. For these faults, the status is `degraded` and not
 * `unavailable`, because a load balancer must not remove every replica.
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
    else reasons.push(`Redis is away; ${whileAwayText({ onFailure, hasDirectory: state.hasDirectory })}`);
  }
  if (state.store.kind === 'redis' && state.store.missingCommands !== undefined) {
    reasons.push(`the Redis user may not run ${state.store.missingCommands.join(', ')}`);
  }
  reasons.push(...upstreamReasons(state.upstreams));
  reasons.push(...configReasons(state.config));
  if (state.leakedSecrets > 0) {
    reasons.push(`the configuration still has ${counted(state.leakedSecrets, 'leaked secret')}`);
  }
  reasons.push(...state.parts.flatMap((part) => part.reasons));
  if (state.unreadForwardedFor !== undefined) reasons.push(unreadForwardedForText(state.unreadForwardedFor));
  if (state.usage?.pausedBecause !== undefined) {
    reasons.push(`the usage record pauses: ${state.usage.pausedBecause}`);
  }
  for (const { notice } of Object.values(state.certificates)) if (notice !== undefined) reasons.push(notice);
  const { parts, hasDirectory: _, ...members } = state;
  const status = fatal.length > 0 ? 'unavailable' : reasons.length > 0 ? 'degraded' : 'ok';
  return {
    httpStatus: status === 'unavailable' ? 503 : 200,
    body: {
      status,
      reasons: [...fatal, ...reasons],
      ...members,
      ...Object.assign({}, ...parts.map((part) => part.members)),
    },
  };
}

/**
 * What happens to requests while Redis is away.
 *
 * @param outage.whose of which keys, if only some servers of a Cluster are away
 */
export function whileAwayText({
  onFailure,
  hasDirectory = false,
  whose,
}: {
  readonly onFailure: StoreOnRedis['onFailure'];
  readonly hasDirectory?: boolean;
  readonly whose?: 'its' | 'their';
}): string {
  if (onFailure === 'refuse') return `requests with ${whose ? `${whose} keys` : 'a key'} are answered 503`;
  const unread = hasDirectory ? ', and keys of the directory that a process has not read get 503' : '';
  return `limits ${whose ? `of ${whose} keys ` : ''}are counted by each process on its own${unread}`;
}

/** One sentence without its final dot. */
export function unreadForwardedForText({ proxy, form }: UnreadForwardedFor): string {
  return `the trusted proxy ${proxy} writes entries of X-Forwarded-For that are no addresses (of the form ${form}), so its clients share one address`;
}

function configReasons({ lastError, kept = [], waitsForRestart = [] }: NotInForce): string[] {
  const reasons = kept.map(({ file, reason, since, revokes }) => {
    const revoked = revokes ? ', without the keys and tokens that it revokes' : '';
    return `${file} keeps its last valid content since ${since}${revoked}: ${reason}`;
  });
  if (lastError !== undefined && kept.length === 0) {
    reasons.push('the configuration on disk is not valid; the last valid configuration stays in force');
  }
  if (waitsForRestart.length > 0) {
    reasons.push(`a change of ${waitsForRestart.join(', ')} takes effect at the next start`);
  }
  return reasons;
}

/**
 * The reasons for unavailable servers of a Redis Cluster. An unavailable server affects only its own keys. The status
 * is `degraded` and not `unavailable`, because a load balancer would otherwise remove every replica.
 */
function serversAway({ servers = [], onFailure }: StoreOnRedis): string[] {
  const effect = whileAwayText({ onFailure, whose: 'its' });
  return servers.flatMap(({ name, available, reason }) =>
    available ? [] : [`Redis server ${name} is away (${reason ?? 'not connected'}); ${effect}`],
  );
}

/** The reasons for faulty upstreams. With several upstreams, each reason names its upstream. */
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
