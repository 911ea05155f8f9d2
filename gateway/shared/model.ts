/**
 * The data types that the steps of the request path share. All members are readonly: a step takes these types as arguments and returns them
 * as results.
 */

/** The windows of the UTC calendar that a plan may limit, shortest first. The windows begin and end on the store's clock. */
export const planWindows = ['second', 'minute', 'hour', 'day', 'month'] as const;

export type PlanWindow = (typeof planWindows)[number];

/** A limit of at most `max` requests in each window; `max` is a whole number from 1 to 999,999,999,999,999 (RFC 9651 §3.3.1). */
export interface Limit {
  readonly window: PlanWindow;
  readonly max: number;
  /** The name of the group of operations that the limit counts; absent if it counts all operations. */
  readonly group?: string | undefined;
  /** The ids of the operations of the group. Absent in a grant, which states only the name of the group. */
  readonly operations?: readonly string[] | undefined;
}

/**
 * The limits of a plan or key: at least one. First are the limits that count all operations, and then the limits of each group. Their windows
 * are sorted, the shortest first, and each window is there at most once.
 */
export type Limits = readonly Limit[];

/** A plan of the configuration, created by `compilePlan`. */
export interface Plan extends PlanMembers {
  readonly name: string;
  /** Whether each key on the plan has its own limits. */
  readonly isCustom: boolean;
  /** The limits of the plan; empty for a custom plan. */
  readonly limits: Limits;
  /** The number of requests of one key that all processes may serve at the same time; absent: any number. */
  readonly concurrent?: number | undefined;
  /** Ids of the operations that keys on the plan may call; undefined: all. */
  readonly operations: readonly string[] | undefined;
  /**
   * Scheduled limits of the plan, the earliest first; undefined when there are none. `limits` applies until the first scheduled change
   * (`plansAt`).
   */
  readonly changes?: readonly PlanChange[] | undefined;
  /** The limits of the trial: every request is also decided against them, but they refuse no request; undefined: no trial. */
  readonly trial?: Limits | undefined;
}

/** The members of plans that belong to capabilities, which add them with `declare module`. */
// biome-ignore lint/suspicious/noEmptyInterface: capabilities add their members
export interface PlanMembers {}

/** The figures of plans in responses that belong to capabilities. */
// biome-ignore lint/suspicious/noEmptyInterface: capabilities add their members
export interface PlanFigures {}

/** Numbers that capabilities add to the simulated figures of a plan. */
// biome-ignore lint/suspicious/noEmptyInterface: capabilities add their members
export interface PlanAdvice {}

/** Lines of the configuration that capabilities propose with a simulation, each by the name of the plan. */
// biome-ignore lint/suspicious/noEmptyInterface: capabilities add their members
export interface Proposals {}

/** The members of keys in responses that belong to capabilities. */
// biome-ignore lint/suspicious/noEmptyInterface: capabilities add their members
export interface KeyMembers {}

/** What the processes have decided about plans, by capability. */
// biome-ignore lint/suspicious/noEmptyInterface: capabilities add their members
export interface PlanStates {}

/** All limits of a plan from one time until the next scheduled change. Times are epoch ms on the store's clock. */
export interface PlanChange {
  readonly fromMs: number;
  readonly limits: Limits;
}

/** All plans, in the order of the configuration. The key of the Map is the name of the plan. */
export type Plans = ReadonlyMap<string, Plan>;

/** One entry of `keys`: a caller with its plan and limits. The quota and the ban of a key are stored under its id. */
export interface Key {
  readonly id: string;
  readonly plan: string;
  readonly name?: string | undefined;
  readonly limits: Limits;
  /** The limits of the trial of the key's plan; absent: no trial. */
  readonly trial?: Limits | undefined;
  /** The names of the groups that the key states itself, in place of groups of its plan; absent: none. */
  readonly ownGroups?: readonly string[] | undefined;
  /** The number of requests that all processes may serve at the same time; absent: any number. */
  readonly concurrent?: number | undefined;
  /** Ids of the operations that the key may call; absent: all. */
  readonly operations?: readonly string[] | undefined;
  /** The addresses and CIDR ranges from which clients may use the key; absent: every address. */
  readonly addresses?: readonly string[] | undefined;
  readonly disabled: boolean;
  /**
   * The `changedMs` of the key's quota hash when the key was read. If `changedMs` in the hash has changed before the decision, the store
   * returns `stale`. The field is absent for a key of the configuration, which changes only with a reload or a leak of one of its secrets.
   */
  readonly generation?: number;
}

/**
 * Temporary limits that an operator gives a key. These limits replace the key's limits of the same windows from `fromMs` until `untilMs`,
 * epoch ms on the store's clock. A window that the key does not limit stays unlimited.
 */
export interface Grant {
  /** Empty for a grant that only has exemptions. */
  readonly limits: Limits;
  /** The names of the exemptions of the key (`Exemption`); absent without exemptions. */
  readonly exemptions?: readonly string[] | undefined;
  /** The beginning of the grant; absent if the grant begins immediately. */
  readonly fromMs?: number | undefined;
  readonly untilMs: number;
}

/** One secret of a key. The secret is valid before `expiresMs` (epoch; Infinity when it never expires). */
export interface Secret {
  /** Lower-case hex SHA-256. */
  readonly digest: string;
  readonly expiresMs: number;
  /** When the secret was issued, epoch ms; absent if the configuration does not state it. */
  readonly createdMs?: number | undefined;
}

/** A report that a secret was found where everyone can read it. The texts come from the reporter, and are cleaned and short. */
export interface Leak {
  /** The time of the first report, epoch ms on the store's clock. */
  readonly atMs: number;
  /** The reporter: `github`, or the name of a token of the admin API. */
  readonly by: string;
  /** Whether the secret ended because of the report. */
  readonly ended: boolean;
  /** The place where the secret was found, the kind of this place, and the scanner's name for the kind of secret. */
  readonly url?: string | undefined;
  readonly source?: string | undefined;
  readonly type?: string | undefined;
  /** The first digits of the digest of the leaked secret from which this secret descends; absent if this secret itself was found. */
  readonly ancestor?: string | undefined;
}

/** The key and the secret that belong to a digest. */
export interface FoundKey {
  readonly key: Key;
  readonly secret: Secret;
}

/**
 * The keys of a configuration, up to 100,000, in a packed form. `get` creates a new key object in a few microseconds, so
 * two calls return different objects.
 */
export interface Keys {
  readonly size: number;
  /** The number of secrets of all keys. */
  readonly secrets: number;
  has(id: string): boolean;
  get(id: string): Key | undefined;
  /** Finds the key by the lower-case hex SHA-256 digest of a secret. The secret may be expired, and the key may be disabled. */
  find(digest: string): FoundKey | undefined;
  /** The secrets of a key in their order in the file; none for an unknown key. */
  secretsOf(id: string): readonly Secret[];
  /**
   * The ids, sorted by code units. If `after` is present, only greater ids are included. `after` may be any text, even if no key has this
   * id.
   */
  ids(after?: string): Iterable<string>;
  /** The position of an id in the order of `ids`, from 0; undefined when no key has the id. */
  rankOf(id: string): number | undefined;
  /**
   * Calls `visit` for each key, in any order. With 100,000 keys, `tally` takes about a millisecond. `lastEndMs` is the time by which all
   * secrets of the key have expired, epoch ms; 0 without a secret.
   */
  tally(visit: (plan: string, isDisabled: boolean, lastEndMs: number) => void): void;
}

/** A secret that was read from the key directory. The secret is cached until `period` ends or its key changes. */
export type ReadSecret =
  | {
      readonly kind: 'usable';
      readonly key: Key;
      /** The expiry of the secret, as in `Secret`. */
      readonly expiresMs: number;
      readonly period: Readonly<Period>;
      /**
       * The period for which the cached key may be used to refuse requests. This period is short, because refused requests do not reach the
       * limiter, and only the limiter detects a changed key.
       */
      readonly refusalPeriod: Readonly<Period>;
    }
  | {
      readonly kind: 'refused';
      readonly keyId: string;
      /** `no_plan`: the configuration no longer has the plan of the key. `leaked`: the secret ended because it leaked. */
      readonly status: 'disabled' | 'no_plan' | 'leaked';
      readonly expiresMs: number;
      readonly period: Readonly<Period>;
    };

/** A period in epoch ms. The period includes its start and excludes its end. */
export interface Period {
  fromMs: number;
  untilMs: number;
}

/**
 * A bucket is a limit per minute on requests that do not count towards a quota. A client address has four buckets: requests without a
 * valid key, CORS preflights, requests for the API reference, and reports of leaked secrets. A key has one bucket, which counts reads of the
 * key's limits.
 */
export type BucketName = 'address' | 'preflight' | 'docs' | 'leaks' | 'limits';

/** A window of a key's plan, or a bucket. */
export type WindowName = PlanWindow | BucketName;

/** A period that a limit covers, with the remaining requests of the caller. */
export interface Window {
  readonly name: WindowName;
  /** The group of operations that the limit counts; absent if it counts all operations. */
  readonly group?: string | undefined;
  readonly limit: number;
  /** The remaining requests. The number is never negative, even if a reload has lowered the limit below the used requests. */
  readonly remaining: number;
  /** The time at which `remaining` equals `limit` again, epoch ms on the clock of the decision. */
  readonly resetMs: number;
  readonly windowSeconds: number;
}

/** All figures for the rate-limit headers of one response. */
export interface RateLimitState {
  /** The clock of the decision (the clock of Redis if Redis decided), epoch ms. */
  readonly nowMs: number;
  readonly windows: readonly Window[];
  /**
   * The window with the least `remaining`, which is the first to refuse requests. If several windows have the least `remaining`, `inForce`
   * is the one that resets last. A ban does not change this window (`shownWindow`).
   */
  readonly inForce: Window;
  /** The current ban of the key. Times of the ban are epoch ms on the clock of the decision. */
  readonly ban?: {
    readonly untilMs: number;
    /**
     * The time at which the same request would be admitted. `retryAtMs` is later than `untilMs` if a window is still exhausted at
     * `untilMs`.
     */
    readonly retryAtMs: number;
  };
}

/**
 * Returns the window for the `X-RateLimit-*` fields. During a ban, its `remaining` is 0 and its `resetMs` is the `retryAtMs` of the ban.
 */
export function shownWindow({ inForce, ban }: RateLimitState): Window {
  return ban === undefined ? inForce : { ...inForce, remaining: 0, resetMs: ban.retryAtMs };
}

/**
 * Where the counts for a decision are stored. `shared`: in Redis. `local`: in this process, because Redis is unavailable. `memory`: in
 * this process, because no Redis is configured.
 */
export type DecisionSource = 'shared' | 'local' | 'memory';

/**
 * What the trial of a plan would have done with a request. `banned`: refused during a ban of the trial. `concurrent`: refused by the
 * concurrency limit, which refuses the same requests with and without the trial. The name of a window: refused by this window, which is the
 * window that a response would name. `group`: refused by a window of a group of operations.
 */
export type TrialOutcome = 'admitted' | 'banned' | 'concurrent' | 'group' | PlanWindow;

/** What a request is charged. */
export interface Charge {
  /** The cost in whole units. */
  readonly units: number;
  /** The id of the operation. The request is also charged in the windows of the groups that have this operation. */
  readonly operation?: string | undefined;
}

interface DecisionFigures {
  /** The cost of the request. An admitted request is charged this cost in every window. A request that is not admitted is not charged. */
  readonly units: number;
  readonly rateLimit: RateLimitState;
  readonly source: DecisionSource;
  /** Absent if the plan has no trial, and if the decision is `unavailable`. */
  readonly trial?: TrialOutcome;
}

/** The decision about one request of a valid key, made from the windows of its plan and the rules for bans. */
export type Decision =
  | (DecisionFigures & {
      readonly kind: 'admitted';
      /** The exemptions of the running grant of the key; absent without exemptions. */
      readonly exemptions?: readonly string[];
    })
  | (DecisionFigures & {
      /**
       * A refusal. The same request would be admitted at `retryAtMs` (epoch ms on the clock of the decision). `banned` means that the
       * request is refused during a ban. `crowded` means that the concurrency limit refuses the request. The `retryAtMs` of `crowded` is
       * a guess, because the end of a running request is unknown.
       */
      readonly kind: 'refused' | 'banned' | 'crowded';
      readonly retryAtMs: number;
    })
  | (DecisionFigures & {
      /** The store is unavailable and `redis.onFailure` is `refuse`. `rateLimit` has the last known figures. */
      readonly kind: 'unavailable';
      readonly retryAtMs: number;
    });

/** The result for a key that changed after it was read. The request is neither decided nor charged, and the caller reads the key again. */
export interface StaleKey {
  readonly kind: 'stale';
}

/** The decision of a bucket. A counted request is not always served. For example, a counted request without a valid key gets 401 or 400. */
export interface BucketDecision {
  readonly kind: 'counted' | 'refused';
  readonly rateLimit: RateLimitState;
  readonly source: DecisionSource;
  /** A bucket has no trial. */
  readonly trial?: undefined;
}

/** The current quota of a key. Reading the quota costs no units. */
export interface KeyStatus {
  /** The current figures, without the charge of a further request. */
  readonly rateLimit: RateLimitState;
  /**
   * The time at which the next request would be admitted (epoch ms on the clock of the decision), if its operation is in no group; 0: now.
   */
  readonly retryAtMs: number;
  /**
   * The used requests in each window of `rateLimit`, in the same order. After a reload with lower limits, the used requests may exceed the
   * limit.
   */
  readonly used: readonly number[];
  /** Refusals that count towards the next ban, and the number of consecutive bans. */
  readonly strikes: number;
  readonly banLevel: number;
  /**
   * The grant of the key; absent once the grant has ended. `fromMs` is present only before the grant begins. From the beginning of
   * the grant, `rateLimit` contains the resulting limits.
   */
  readonly grant?: Grant;
}

/**
 * The rules for bans. A key with `after` refusals within `withinMs` is banned for `forMs`. Each further ban lasts twice as long, up to
 * `maxMs`.
 */
export interface BanPolicy {
  readonly after: number;
  readonly withinMs: number;
  readonly forMs: number;
  readonly maxMs: number;
}

/** The settings that apply to the decisions on all keys. */
export interface QuotaRules {
  readonly bans: BanPolicy;
  /** The percentages of a limit that are reported when a key reaches them: whole numbers, ascending. Absent or empty: none. */
  readonly thresholds?: readonly number[] | undefined;
}

/** The path of the API document in JSON, which the gateway serves together with the API reference. */
export const apiDocumentPath = '/openapi.json';

/** Without an API document, a configuration has one operation, which every request matches. The operation's method is `*`. */
export const anyMethod = '*';

export type Method =
  | 'GET'
  | 'HEAD'
  | 'POST'
  | 'PUT'
  | 'PATCH'
  | 'DELETE'
  | 'OPTIONS'
  | 'QUERY'
  | typeof anyMethod;

/** The members of deprecations that belong to capabilities. */
// biome-ignore lint/suspicious/noEmptyInterface: capabilities add their members
export interface DeprecationMembers {}

/** The times at which an operation was deprecated (RFC 9745) and is removed (RFC 8594), epoch ms. */
export interface Deprecation extends DeprecationMembers {
  /** The time of the deprecation; absent when the API document does not state the date. */
  readonly sinceMs?: number | undefined;
  readonly sunsetMs?: number | undefined;
  /** The path template of the operation that replaces this operation, relative to the base URL. */
  readonly successor?: string | undefined;
  /** The behaviour after `sunsetMs`. With `gone`, requests get 410. With `serve`, requests are still served. */
  readonly afterSunset: 'gone' | 'serve';
}

/** An operation of the API document: a method with a path template. */
export interface Operation {
  readonly id: string;
  readonly method: Method;
  /** The path template, relative to the base URL, for example `/pets/{petId}`. */
  readonly template: string;
  readonly stability?: 'experimental' | 'beta' | undefined;
  readonly deprecation?: Deprecation | undefined;
  readonly upgrade?: 'websocket' | undefined;
  /** The units that a request is charged in each window; absent: 1. */
  readonly cost?: number | undefined;
  /** The name of the upstream that receives the requests of the operation. */
  readonly upstream: string;
}

/** Returns the unit that limits count: requests, or units if an operation has a cost other than 1. */
export function countedBy(operations: readonly Operation[]): 'request' | 'unit' {
  return operations.some(({ cost = 1 }) => cost !== 1) ? 'unit' : 'request';
}

/** A named pool of targets: every address of its host is a target. */
export interface Upstream {
  /** The name of the upstream in `x-upstream` and `/readyz`. */
  readonly name: string;
  /** The URL of the upstream, `http://host:port` or `https://host:port`, without a path. */
  readonly url: string;
  /**
   * The verification of `https` targets, and the client certificate. By default, certificates must match the host in `url` and be issued by
   * a certificate authority that Node.js trusts.
   */
  readonly tls?: UpstreamTls | undefined;
  /**
   * The path of the health check, to which a healthy target responds with 2xx. Without a path, a target is healthy if it accepts a
   * connection.
   */
  readonly health: string | undefined;
  /** The `Host` field that a target receives: the client's `Host` (`keep`), or the host and port of `url` (`target`). */
  readonly host: 'keep' | 'target';
  /** Whether the gateway refuses a path with `%2F`, or forwards it. */
  readonly encodedSlashes: 'refuse' | 'forward';
  /** The timeouts for the connect, for the first octet of the response, and for the whole exchange. An absent timeout has its default. */
  readonly timeouts: {
    readonly connectMs?: number | undefined;
    readonly headersMs?: number | undefined;
    readonly totalMs?: number | undefined;
  };
}

/** The Redis that shares counts, keys and records. Exactly one of `url`, `cluster` and `sentinel` is present. */
export interface RedisSettings {
  /**
   * The URL of a single server. The URL begins with `redis://`, or with `rediss://` for TLS. The URL may contain a user, a password and a
   * database.
   */
  readonly url?: string | undefined;
  /** The URLs of some servers of a Redis Cluster. Either all of these URLs use TLS, or none of them. */
  readonly cluster?: readonly string[] | undefined;
  /** A Redis whose master is found through Sentinel. */
  readonly sentinel?:
    | {
        /** The name of the master in the configuration of the Sentinels. */
        readonly name: string;
        /** The `host:port` of each Sentinel. */
        readonly hosts: readonly string[];
        /** The user name for the Sentinels. The password is a secret: no log, message or response may show it. */
        readonly username?: string | undefined;
        readonly password?: string | undefined;
      }
    | undefined;
  /** The user name for the Redis servers; absent if the URL contains it, or if no user is needed. The password is a secret. */
  readonly username?: string | undefined;
  readonly password?: string | undefined;
  /** The TLS settings for Redis servers and Sentinels. Without these settings, TLS is used only for `rediss://` URLs. */
  readonly tls?: Pick<UpstreamTls, 'ca' | 'clientCertificate'> | undefined;
  readonly prefix: string;
  readonly onFailure: 'local' | 'refuse';
}

/** The TLS settings for connections to targets or Redis. Certificates and keys are PEM texts. */
export interface UpstreamTls {
  /** The trusted certificate authorities, which replace the certificate authorities of Node.js. */
  readonly ca?: string | undefined;
  /** The name or address that the target's certificate must have, in place of the host in `url`. */
  readonly serverName?: string | undefined;
  /** The gateway's client certificate with its chain and key, for targets that request a client certificate. */
  readonly clientCertificate?:
    | {
        readonly cert: string;
        /** The unencrypted private key. The private key is a secret: no log, message or response may show it. */
        readonly key: string;
      }
    | undefined;
}

/** The address of a listener. A listener with a certificate accepts only TLS. */
interface ListenAddress {
  readonly host: string;
  readonly port: number;
  readonly tls?: Certificate | undefined;
}

/** The admin listener, with the tokens and the host names of its API. */
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
  /** The name of the certificate's file, for messages. */
  readonly file: string;
  /** The certificate followed by its chain, in PEM. */
  readonly cert: string;
  /** The unencrypted private key in PEM. The private key is a secret: no log, message or response may show it. */
  readonly key: string;
  /** The expiry of the certificate, epoch ms. */
  readonly notAfterMs: number;
}

/** The members of the main file, in the form that `statedForm` makes. The code reads only the members with a type of their own. */
export interface StatedSettings extends Readonly<Record<string, unknown>> {
  readonly listen: StatedListener;
  readonly admin: StatedListener;
}

export interface StatedListener {
  readonly host: string;
  readonly port: number;
  readonly tls?: Readonly<Record<string, unknown>> | undefined;
}

/** The settings that belong to capabilities, in the form in which they are stated. */
// biome-ignore lint/suspicious/noEmptyInterface: capabilities add their members
export interface SettingsMembers {}

/**
 * The validated settings of the operator, including the default of each omitted setting. All members except the keys are plain data, which
 * `config/loader/settings-message.ts` sends to other threads and processes.
 */
export interface Settings extends SettingsMembers {
  /** A digest of the configuration files, 12 hex digits. The access line and `/readyz` show the digest. */
  readonly version: string;
  readonly environment: string;
  /** The settings as they are stated, with defaults and without secrets, for `/settings`. Plans and keys are not among them. */
  readonly stated: StatedSettings;
  /** The path of `baseUrl`, for example `/v1`: the prefix of every operation. */
  readonly basePath: string;
  /** The number of processes that serve requests; `auto`: one for each CPU. */
  readonly workers: number | 'auto';
  readonly listen: ListenAddress;
  readonly admin: AdminSettings;
  /** The shared Redis. Without Redis, counts are in memory. */
  readonly redis?: RedisSettings | undefined;
  /** The upstreams, at least one. The first upstream serves every operation without an `x-upstream`. */
  readonly upstreams: readonly Upstream[];
  /** The configured plans. `plansAt` returns the plans with the limits that apply at a given time. */
  readonly plans: Plans;
  /** What the processes have decided about plans; absent without a decision. `followPlanChanges` adds it to the configuration. */
  readonly planStates?: PlanStates | undefined;
  readonly keys: Keys;
  /** Whether the key directory is enabled, so that keys can be issued while gateways run. */
  readonly directory: boolean;
  /** The file with the list of keys; absent if no file has such a list. */
  readonly keysFile?:
    | {
        /** The path of the file, relative to the folder of the main file, or absolute if the main file has an absolute path. */
        readonly path: string;
        /**
         * The line number of each key in the file, from 1, at the index that `rankOf` returns. A line number is not a member of its key. If
         * line numbers were members of keys, a new line at the top of the file would change every key, and a reload would replace all keys.
         */
        readonly lines: Uint32Array;
      }
    | undefined;
  readonly operations: readonly Operation[];
  /** The path of the API reference, and the API document as JSON; absent: there is no API reference. */
  readonly docs?: { readonly path: string; readonly document: string } | undefined;
  readonly bans: BanPolicy;
  readonly addressBucket: { readonly perMinute: number };
  readonly bodyBytesMax: number;
  /** The number of days for which the usage record keeps each minute of each key; 0: no usage record. */
  readonly usage: { readonly keepDays: number };
  /** The percentages of limits at which a capability wants notices, ascending. Without percentages, no threshold is watched. */
  readonly thresholds: readonly number[];
  /** The web origins whose pages may call the API from a browser; absent: no origin. */
  readonly cors?: { readonly origins: readonly string[] } | undefined;
  /** The `Strict-Transport-Security` field, which is sent only over TLS; absent: the field is not sent. */
  readonly hsts?: { readonly maxAgeSeconds: number; readonly includeSubDomains: boolean } | undefined;
  /** Addresses and CIDR ranges whose `X-Forwarded-*` fields are trusted. */
  readonly trustedProxies: readonly string[];
}
