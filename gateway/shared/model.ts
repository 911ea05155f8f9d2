/**
 * The data types that the stations of the request path share. All members are readonly: a station takes these types as
 * arguments and returns them as results.
 */

/** The windows of the UTC calendar that a plan may limit, shortest first. The store's clock decides when they end. */
export const planWindows = ['second', 'minute', 'hour', 'day', 'month'] as const;

export type PlanWindow = (typeof planWindows)[number];

/** At most `max` requests in each window; a whole number from 1 to 999,999,999,999,999 (RFC 9651 §3.3.1). */
export interface Limit {
  readonly window: PlanWindow;
  readonly max: number;
}

/** The limits of a plan or key: at least one, shortest window first, each window at most once. */
export type Limits = readonly Limit[];

/** A plan, as `compilePlan` makes it. */
export interface Plan {
  readonly name: string;
  /** Whether each key on the plan has its own limits. */
  readonly isCustom: boolean;
  /** Empty for a custom plan. */
  readonly limits: Limits;
  /** Ids of the operations that keys on the plan may call; undefined: all. */
  readonly operations: readonly string[] | undefined;
}

/** Plans by name, in the order of the configuration. */
export type Plans = ReadonlyMap<string, Plan>;

/** One entry of `keys`: a caller with its plan and limits. Quota and ban belong to its id. */
export interface Key {
  readonly id: string;
  readonly plan: string;
  readonly name?: string | undefined;
  readonly limits: Limits;
  /** Ids of the operations that the key may call; absent: all. */
  readonly operations?: readonly string[] | undefined;
  readonly disabled: boolean;
  /**
   * Present for a key that can change without a reload: the `changedMs` of its quota hash when the key was read. The
   * store answers `stale` when the two values differ.
   */
  readonly generation?: number;
}

/**
 * Limits that an operator gives a key for a while. They replace the limits of the same windows from `fromMs` until
 * `untilMs`, epoch ms on the store's clock. Windows that the key's own limits do not name stay without a limit.
 */
export interface Grant {
  readonly limits: Limits;
  /** Absent: the grant begins at once. */
  readonly fromMs?: number | undefined;
  readonly untilMs: number;
}

/** One secret of a key. It is valid before `expiresMs` (epoch; Infinity when it never expires). */
export interface Secret {
  /** Lower-case hex SHA-256. */
  readonly digest: string;
  readonly expiresMs: number;
  /** When the secret was issued, epoch ms; absent if the configuration does not state it. */
  readonly createdMs?: number | undefined;
}

/** The key and expiry for the digest of a secret. */
export interface FoundKey {
  readonly key: Key;
  readonly secret: Secret;
}

/**
 * The keys of a configuration, which may be 100,000. They are packed: `get` makes a new key object in a few
 * microseconds, so two calls return different objects.
 */
export interface Keys {
  readonly size: number;
  /** The number of secrets of all keys. */
  readonly secrets: number;
  has(id: string): boolean;
  get(id: string): Key | undefined;
  /**
   * Finds the key with the lower-case hex SHA-256 digest of a secret, even an expired secret or a secret of a disabled
   * key.
   */
  find(digest: string): FoundKey | undefined;
  /** The secrets of a key in their order in the file; none for an unknown key. */
  secretsOf(id: string): readonly Secret[];
  /** Ids in the order of code units. `after` begins with the next id, even if no key has the id `after`. */
  ids(after?: string): Iterable<string>;
  /** The rank of an id in that order, from 0; undefined when no key has the id. */
  rankOf(id: string): number | undefined;
  /**
   * Visits all keys, in no order, in about a millisecond for 100,000. `lastEndMs`: the end of the last secret, epoch
   * ms; 0 without a secret.
   */
  tally(visit: (plan: string, isDisabled: boolean, lastEndMs: number) => void): void;
}

/** A secret that was read from the directory. It is cached for `period`, which ends early when its key changes. */
export type ReadSecret =
  | {
      readonly kind: 'usable';
      readonly key: Key;
      /** The expiry of the secret, as in `Secret`. */
      readonly expiresMs: number;
      readonly period: Readonly<Period>;
    }
  | {
      readonly kind: 'refused';
      readonly keyId: string;
      /** `no_plan`: the configuration no longer has the plan of the key. */
      readonly status: 'disabled' | 'no_plan';
      readonly expiresMs: number;
      readonly period: Readonly<Period>;
    };

/** A period from one instant to just before another, epoch ms. */
export interface Period {
  fromMs: number;
  untilMs: number;
}

/**
 * Limits per minute on requests that no quota counts. A client address has three buckets: requests without a valid key,
 * CORS preflights, and requests for the API reference. A key has one, for reading its own limits.
 */
export type BucketName = 'address' | 'preflight' | 'docs' | 'limits';

/** A window of a key's plan, or a bucket. */
export type WindowName = PlanWindow | BucketName;

/** A period that a limit covers, with the remaining requests of the caller. */
export interface Window {
  readonly name: WindowName;
  readonly limit: number;
  /** Never negative, even when a reload lowered the limit below the used requests. */
  readonly remaining: number;
  /** When `remaining` equals `limit` again, epoch ms on the deciding clock. */
  readonly resetMs: number;
  readonly windowSeconds: number;
}

/** All figures for the rate-limit headers of one response. */
export interface RateLimitState {
  /** The clock of the decision (the clock of Redis if Redis decided), epoch ms. */
  readonly nowMs: number;
  readonly windows: readonly Window[];
  /**
   * The window that would refuse first: the smallest remaining, or at a tie the later reset. A ban does not change it
   * (`toldWindow`).
   */
  readonly inForce: Window;
  /** The present ban of the key. Epoch ms on the deciding clock. */
  readonly ban?: {
    readonly untilMs: number;
    /** When the request fits. This is later than `untilMs` if a window has no room before. */
    readonly retryAtMs: number;
  };
}

/** The window of `X-RateLimit-*`. During a ban it has nothing left until the request fits. */
export function toldWindow({ inForce, ban }: RateLimitState): Window {
  return ban === undefined ? inForce : { ...inForce, remaining: 0, resetMs: ban.retryAtMs };
}

/**
 * The counts behind a decision: `shared` in Redis, `local` in this process while Redis is away, or `memory` without
 * Redis.
 */
export type DecisionSource = 'shared' | 'local' | 'memory';

/** The decision of the plan's windows and the ban ladder about one request of a valid key. */
export type Decision =
  | {
      readonly kind: 'admitted';
      /** The cost of the request, which is charged to every window. */
      readonly units: number;
      readonly rateLimit: RateLimitState;
      readonly source: DecisionSource;
    }
  | {
      /** The same request fits at `retryAtMs` (epoch, deciding clock). `banned` is a refusal by the ban ladder. */
      readonly kind: 'refused' | 'banned';
      /** The cost that the request would have had. */
      readonly units: number;
      readonly rateLimit: RateLimitState;
      readonly source: DecisionSource;
      readonly retryAtMs: number;
    }
  | {
      /** The store is away and `redis.onFailure` is `refuse`. `rateLimit` has the last known figures. */
      readonly kind: 'unavailable';
      readonly rateLimit: RateLimitState;
      readonly source: 'local';
      readonly retryAtMs: number;
    };

/** The key changed after it was read. Nothing was decided or charged, and the caller reads the key again. */
export interface StaleKey {
  readonly kind: 'stale';
}

/**
 * The decision of a bucket. `counted` does not admit the request: a request without a valid key still gets 401 or 400.
 */
export interface BucketDecision {
  readonly kind: 'counted' | 'refused';
  readonly rateLimit: RateLimitState;
  readonly source: DecisionSource;
}

/** The present quota of a key. Reading it charges nothing. */
export interface KeyStatus {
  /** The figures that the next request would get, before its charge. */
  readonly rateLimit: RateLimitState;
  /** When the next request fits (epoch ms, deciding clock); 0: now. */
  readonly retryAtMs: number;
  /** The used requests in each window of `rateLimit`, in the same order. After a reload they may exceed the limit. */
  readonly used: readonly number[];
  /** Refusals that count towards the next ban, and the number of consecutive bans. */
  readonly strikes: number;
  readonly banLevel: number;
  /**
   * The grant of the key until it ends. `fromMs` is present until the grant begins. After that `rateLimit` has the
   * resulting limits.
   */
  readonly grant?: Grant;
}

/** The ban ladder: `after` refusals within `withinMs` ban for `forMs`, doubling up to `maxMs`. */
export interface BanPolicy {
  readonly after: number;
  readonly withinMs: number;
  readonly forMs: number;
  readonly maxMs: number;
}

/** Events of keys, Redis and targets. Each goes once to the log and to the list of events. */
export type BanEvent =
  | {
      readonly kind: 'ban';
      readonly keyId: string;
      readonly plan: string | undefined;
      /** 1 for the first of consecutive bans. */
      readonly level: number;
      /** The end of the ban on the store's clock, epoch ms. */
      readonly untilMs: number;
    }
  | {
      readonly kind: 'ban_ended';
      readonly keyId: string;
      readonly plan: string | undefined;
      readonly untilMs: number;
      /** `lifted`: the ban ended before its time. */
      readonly ended: 'expired' | 'lifted';
    };

export type StoreEvent =
  | {
      readonly kind: 'store_away';
      /** The server of a Redis Cluster. */
      readonly server?: string;
      readonly reason: string;
      readonly onFailure: 'local' | 'refuse';
    }
  | {
      readonly kind: 'store_back';
      readonly server?: string;
      readonly awayMs: number;
    };

export type TargetEvent =
  | {
      readonly kind: 'target_unhealthy';
      readonly upstream: string;
      readonly target: string;
      /** `silent`: the target gets requests only when no other target is healthy. */
      readonly health: 'silent' | 'down';
      readonly reason: string | undefined;
    }
  | {
      readonly kind: 'target_healthy';
      readonly upstream: string;
      readonly target: string;
      readonly unhealthyMs: number;
    };

/** The path of the API document as JSON, served with the API reference. */
export const apiDocumentPath = '/openapi.json';

/** Without an API document, a configuration has one operation, which every request matches. This is its method. */
export const anyMethod = '*';

export type Method = 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'OPTIONS' | typeof anyMethod;

/** When an operation was deprecated (RFC 9745) and when it is removed (RFC 8594), epoch ms. */
export interface Deprecation {
  /** Absent when the API document does not state the date. */
  readonly sinceMs?: number | undefined;
  readonly sunsetMs?: number | undefined;
  /** The path template of the operation to use instead, relative to the base URL. */
  readonly successor?: string | undefined;
  /** The response from `sunsetMs` on: 410, or the same as before. */
  readonly afterSunset: 'gone' | 'serve';
}

/** Method and path template of the API document. */
export interface Operation {
  readonly id: string;
  readonly method: Method;
  /** Relative to the base URL, for example `/pets/{petId}`. */
  readonly template: string;
  readonly stability?: 'experimental' | 'beta' | undefined;
  readonly deprecation?: Deprecation | undefined;
  readonly upgrade?: 'websocket' | undefined;
  /** The name of the upstream that its requests are forwarded to. */
  readonly upstream: string;
}

/** A named pool of targets: every address of its host is a target. */
export interface Upstream {
  /** The name in `x-upstream` and `/readyz`. */
  readonly name: string;
  /** `http://host:port` or `https://host:port`, without a path. */
  readonly url: string;
  /**
   * The verification of `https` targets, and the client certificate; absent: the name in `url`, and Node's authorities.
   */
  readonly tls?: UpstreamTls | undefined;
  /** The path that a healthy target answers with 2xx. Undefined: a healthy target accepts a connection. */
  readonly health: string | undefined;
  /** The `Host` that a target receives: the Host of the client (`keep`), or host and port of `url` (`target`). */
  readonly host: 'keep' | 'target';
  /**
   * Timeouts for the connection, for the first byte of the response after the sent request, and for the whole exchange.
   * An absent timeout has its default.
   */
  readonly timeouts: {
    readonly connectMs?: number | undefined;
    readonly headersMs?: number | undefined;
    readonly totalMs?: number | undefined;
  };
}

/** The Redis that shares counts, keys and records. One of `url`, `cluster` and `sentinel` is present. */
export interface RedisSettings {
  /** One server: `redis://` or, with TLS, `rediss://`, optionally with user, password and database. */
  readonly url?: string | undefined;
  /** A Redis Cluster: URLs of some of its servers, all with TLS or all without. */
  readonly cluster?: readonly string[] | undefined;
  /** Redis under Sentinel, which names the master. */
  readonly sentinel?:
    | {
        /** The name of the master in the Sentinels. */
        readonly name: string;
        /** The `host:port` of each Sentinel. */
        readonly hosts: readonly string[];
        /** The user for the Sentinels. The password is a secret: no log, message or response may show it. */
        readonly username?: string | undefined;
        readonly password?: string | undefined;
      }
    | undefined;
  /** The user for the servers; absent if the URL has it, or none is needed. The password is a secret. */
  readonly username?: string | undefined;
  readonly password?: string | undefined;
  /** TLS for servers and Sentinels; absent: only if a URL has `rediss://`. */
  readonly tls?: Pick<UpstreamTls, 'ca' | 'own'> | undefined;
  readonly prefix: string;
  readonly onFailure: 'local' | 'refuse';
}

/** Certificates and keys are texts in PEM. */
export interface UpstreamTls {
  /** The trusted authorities, which replace Node's. */
  readonly ca?: string | undefined;
  /** The name or address of the target's certificate, in place of the host in `url`. */
  readonly serverName?: string | undefined;
  /** The certificate of the gateway with its chain and key, for targets that request one. */
  readonly own?:
    | {
        readonly cert: string;
        /** The unencrypted key. It is a secret: no log, message or response may show it. */
        readonly key: string;
      }
    | undefined;
}

/** The address of a listener. A listener with a certificate speaks only TLS. */
export interface ListenAddress {
  readonly host: string;
  readonly port: number;
  readonly tls?: Certificate | undefined;
}

/** The admin listener, and the tokens and names of its API. */
export interface AdminSettings extends ListenAddress {
  readonly tokens: readonly AdminToken[];
  /** Accepted host names in lower case, in addition to `localhost` and IP addresses. */
  readonly hosts: readonly string[];
}

export interface AdminToken {
  readonly name: string;
  /** Lower-case hex SHA-256 digest of the token. */
  readonly sha256: string;
  /** A token with `write` can read too. */
  readonly may: 'read' | 'write';
}

/** The certificate of a listener with its private key. */
export interface Certificate {
  /** The file of the certificate, for messages. */
  readonly file: string;
  /** PEM: the certificate, followed by its chain. */
  readonly cert: string;
  /** The unencrypted key in PEM. It is a secret: no log, message or response may show it. */
  readonly key: string;
  /** The end of the certificate, epoch ms. */
  readonly notAfterMs: number;
}

/**
 * All settings of the operator, validated, with every default. All members except the keys are plain data, which
 * `config/settings-message.ts` sends to other threads and processes.
 */
export interface Settings {
  /** A digest of the configuration files, 12 hex digits. The access line and `/readyz` show it. */
  readonly version: string;
  readonly environment: string;
  /** The path of `baseUrl`, for example `/v1`: the prefix of every operation. */
  readonly basePath: string;
  /** The number of processes that serve requests; `auto`: one for each CPU. */
  readonly workers: number | 'auto';
  readonly listen: ListenAddress;
  readonly admin: AdminSettings;
  /** Absent: counts are in memory. */
  readonly redis?: RedisSettings | undefined;
  /** At least one. The first upstream serves every operation without an `x-upstream`. */
  readonly upstreams: readonly Upstream[];
  /** The configured plans; `plansAt` gives the effective plans. */
  readonly plans: Plans;
  readonly keys: Keys;
  /** Whether the directory is on, so that keys can be issued while gateways run. */
  readonly directory: boolean;
  /** The file of `keys`; absent if no file has a list. */
  readonly keysFile?:
    | {
        /** Relative to the folder of the main file, unless the main file has an absolute path. */
        readonly path: string;
        /**
         * The first line of each entry, from 1, by `rankOf`. It is not a member of a key, because a new line at the top
         * of the file would then change every key, and a reload replaces only changed keys.
         */
        readonly lines: Uint32Array;
      }
    | undefined;
  readonly operations: readonly Operation[];
  /** The path where a key reads its own limits; absent: none. */
  readonly limitsPath?: string | undefined;
  /** The path of the API reference, and its API document as JSON; absent: none. */
  readonly docs?: { readonly path: string; readonly document: string } | undefined;
  readonly bans: BanPolicy;
  readonly addressBucket: { readonly perMinute: number };
  readonly bodyBytesMax: number;
  /** The number of days for which each minute of each key is recorded; 0: no usage record. */
  readonly usage: { readonly keepDays: number };
  /** Absent: no page of another origin may call the API from a browser. */
  readonly cors?: { readonly origins: readonly string[] } | undefined;
  /** Absent: no `Strict-Transport-Security`. The field is sent only over TLS. */
  readonly hsts?: { readonly maxAgeSeconds: number; readonly includeSubDomains: boolean } | undefined;
  /** Addresses and CIDR ranges whose `X-Forwarded-*` fields are trusted. */
  readonly trustedProxies: readonly string[];
}
