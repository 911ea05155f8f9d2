/** The data types that the steps of the request path share. */

/** Shortest first. The windows follow the UTC calendar on the store's clock. */
export const planWindows = ['second', 'minute', 'hour', 'day', 'month'] as const;

export type PlanWindow = (typeof planWindows)[number];

/** At most `max` in each window: a whole number from 1 to 999,999,999,999,999 (RFC 9651 §3.3.1). */
export interface Limit {
  readonly window: PlanWindow;
  readonly max: number;
  /** The group of operations that is counted; absent: all operations are counted. */
  readonly group?: string | undefined;
  /** The operations of the group. Absent in a grant, which states only the name of the group. */
  readonly operations?: readonly string[] | undefined;
}

/** At least one. Limits that count all operations come before limits of groups. Each window is there at most once, the shortest first. */
export type Limits = readonly Limit[];

/** Created by `compilePlan`. */
export interface Plan extends PlanMembers {
  readonly name: string;
  /** Whether each key on the plan has its own limits. */
  readonly isCustom: boolean;
  /** Empty for a custom plan. */
  readonly limits: Limits;
  /** Requests of one key that all processes may serve at the same time; absent: any number. */
  readonly concurrent?: number | undefined;
  /** Operations that keys on the plan may call; undefined: all. */
  readonly operations: readonly string[] | undefined;
  /** Scheduled limits, the earliest first. `limits` applies until the first change (`plansAt`). */
  readonly changes?: readonly PlanChange[] | undefined;
  /** Every request is also decided against the limits of the trial, but they refuse no request; undefined: no trial. */
  readonly trial?: Limits | undefined;
}

/** Capabilities add members to this interface and to those below with `declare module`. */
// biome-ignore lint/suspicious/noEmptyInterface: capabilities add their members
export interface PlanMembers {}

/** Figures of plans in responses. */
// biome-ignore lint/suspicious/noEmptyInterface: capabilities add their members
export interface PlanFigures {}

/** Numbers in the simulated figures of a plan. */
// biome-ignore lint/suspicious/noEmptyInterface: capabilities add their members
export interface PlanAdvice {}

/** Lines of the configuration that are proposed with a simulation, each by the name of the plan. */
// biome-ignore lint/suspicious/noEmptyInterface: capabilities add their members
export interface Proposals {}

/** Members of keys in responses. */
// biome-ignore lint/suspicious/noEmptyInterface: capabilities add their members
export interface KeyMembers {}

/** Decisions of the processes about plans, by capability. */
// biome-ignore lint/suspicious/noEmptyInterface: capabilities add their members
export interface PlanStates {}

/** All limits of a plan from one time until the next scheduled change; epoch ms on the store's clock. */
export interface PlanChange {
  readonly fromMs: number;
  readonly limits: Limits;
}

/** The plan of a key from one time until the key's next change; epoch ms on the store's clock. */
export interface KeyChange {
  readonly fromMs: number;
  readonly plan: string;
  /** On a custom plan. */
  readonly limits?: Limits | undefined;
}

/** By name, in the order of the configuration. */
export type Plans = ReadonlyMap<string, Plan>;

/** An entry of `keys`. The quota and the ban are stored under its id. */
export interface Key {
  readonly id: string;
  readonly plan: string;
  readonly name?: string | undefined;
  readonly limits: Limits;
  /** The stated changes of the key's plan, past ones too; absent without changes. */
  readonly changes?: readonly KeyChange[] | undefined;
  /** The trial of the key's plan. */
  readonly trial?: Limits | undefined;
  /** The groups that the key states itself, in place of groups of its plan. */
  readonly ownGroups?: readonly string[] | undefined;
  /** Requests that all processes may serve at the same time; absent: any number. */
  readonly concurrent?: number | undefined;
  /** Operations that the key may call; absent: all. */
  readonly operations?: readonly string[] | undefined;
  /** Addresses and CIDR ranges from which clients may use the key; absent: every address. */
  readonly addresses?: readonly string[] | undefined;
  readonly disabled: boolean;
  /**
   * The `changedMs` of the key's quota hash when the key was read. If the hash has changed before the decision, the store returns `stale`.
   * Absent for a key of the configuration, which changes only with a reload or a leak of one of its secrets.
   */
  readonly generation?: number;
}

/** Ids appear in Redis keys, headers and log lines, so they have no braces (Redis Cluster's hash tags), spaces or control characters. */
export const keyIdPattern = /^[A-Za-z0-9._:@+-]{1,100}$/;

/**
 * Temporary limits that an operator gives a key, epoch ms on the store's clock. They replace the key's limits of the same windows. A window
 * that the key does not limit stays unlimited.
 */
export interface Grant {
  /** Empty for a grant that only has exemptions. */
  readonly limits: Limits;
  /** Names of `Exemption`s; absent without exemptions. */
  readonly exemptions?: readonly string[] | undefined;
  /** Absent if the grant begins immediately. */
  readonly fromMs?: number | undefined;
  readonly untilMs: number;
}

/** Valid before `expiresMs` (epoch; Infinity when it never expires). */
export interface Secret {
  /** Lower-case hex SHA-256. */
  readonly digest: string;
  readonly expiresMs: number;
  /** Epoch ms; absent if the configuration does not state it. */
  readonly createdMs?: number | undefined;
}

/** A report that a secret was found where everyone can read it. The texts come from the reporter, and are cleaned and short. */
export interface Leak {
  /** The first report, epoch ms on the store's clock. */
  readonly atMs: number;
  /** `github`, or the name of a token of the admin API. */
  readonly by: string;
  /** Whether the secret ended because of the report. */
  readonly ended: boolean;
  /** The place where the secret was found, the kind of this place, and the scanner's name for the kind of secret. */
  readonly url?: string | undefined;
  readonly source?: string | undefined;
  readonly type?: string | undefined;
  /** The first digits of the digest of the leaked secret from which this one descends; absent if this secret itself was found. */
  readonly ancestor?: string | undefined;
}

export interface FoundKey {
  readonly key: Key;
  readonly secret: Secret;
}

/**
 * The keys of a configuration, up to 100,000, in a packed form. `get` creates a new object in a few microseconds, so two calls return
 * different objects.
 */
export interface Keys {
  readonly size: number;
  /** The number of secrets of all keys. */
  readonly secrets: number;
  has(id: string): boolean;
  get(id: string): Key | undefined;
  /** @param digest lower-case hex SHA-256. The secret may be expired, and the key may be disabled */
  find(digest: string): FoundKey | undefined;
  /** Secrets in their order in the file; none for an unknown key. */
  secretsOf(id: string): readonly Secret[];
  /** Sorted by code units; only ids greater than `after`, which may be any text. */
  ids(after?: string): Iterable<string>;
  /** The position in the order of `ids`, from 0; undefined when no key has the id. */
  rankOf(id: string): number | undefined;
  /**
   * Calls `visit` for each key, in any order; a millisecond for 100,000 keys. By `lastEndMs` all secrets of the key have expired, epoch ms;
   * 0 without a secret.
   */
  tally(visit: (plan: string, isDisabled: boolean, lastEndMs: number) => void): void;
}

/** A secret from the key directory, cached until `period` ends or its key changes. */
export type ReadSecret =
  | {
      readonly kind: 'usable';
      readonly key: Key;
      readonly expiresMs: number;
      readonly period: Readonly<Period>;
      /**
       * For refusals by the cached key. It is short, because refused requests do not reach the limiter, and only the limiter detects a
       * changed key.
       */
      readonly refusalPeriod: Readonly<Period>;
    }
  | {
      readonly kind: 'refused';
      readonly keyId: string;
      /** `no_plan`: the configuration gives the key no limits on its plan. `leaked`: the secret ended because it leaked. */
      readonly status: 'disabled' | 'no_plan' | 'leaked';
      readonly expiresMs: number;
      readonly period: Readonly<Period>;
    };

/** Epoch ms, without the end. */
export interface Period {
  fromMs: number;
  untilMs: number;
}

/** Whether a time is in a period. The start of the period is checked too, because the clock may have been set back. */
export function isIn({ fromMs, untilMs }: Readonly<Period>, nowMs: number): boolean {
  return nowMs >= fromMs && nowMs < untilMs;
}

/**
 * A limit per minute on requests that do not count towards a quota. A client address has four: requests without a valid key, CORS
 * preflights, requests for the API reference, and reports of leaked secrets. A key has one: reads of its limits.
 */
export type BucketName = 'address' | 'preflight' | 'docs' | 'leaks' | 'limits';

export type WindowName = PlanWindow | BucketName;

export interface Window {
  readonly name: WindowName;
  /** Absent if the limit counts all operations. */
  readonly group?: string | undefined;
  readonly limit: number;
  /** Never negative, even if a reload has lowered the limit below the used requests. */
  readonly remaining: number;
  /** When `remaining` equals `limit` again, epoch ms on the clock of the decision. */
  readonly resetMs: number;
  readonly windowSeconds: number;
}

/** For the rate-limit headers of one response. */
export interface RateLimitState {
  /** The clock of the decision (of Redis if Redis decided), epoch ms. */
  readonly nowMs: number;
  readonly windows: readonly Window[];
  /** The window with the least `remaining`; the last to reset if several have it. A ban does not change it (`shownWindow`). */
  readonly inForce: Window;
  /** The current ban, epoch ms on the clock of the decision. */
  readonly ban?: {
    readonly untilMs: number;
    /** When the same request would be admitted: after `untilMs` if a window is still exhausted then. */
    readonly retryAtMs: number;
    /** Present if an operator made the ban. */
    readonly byHand?: { readonly reason?: string | undefined };
  };
}

/** The window for the `X-RateLimit-*` fields. */
export function shownWindow({ inForce, ban }: RateLimitState): Window {
  return ban === undefined ? inForce : { ...inForce, remaining: 0, resetMs: ban.retryAtMs };
}

/** The place of the counts: Redis (`shared`), or this process, because Redis is unavailable (`local`) or not configured (`memory`). */
export type DecisionSource = 'shared' | 'local' | 'memory';

/**
 * The effect that the trial would have had on a request. `banned`: refused during a ban of the trial. `concurrent`: refused by the
 * concurrency limit, which is the same with and without the trial. A window: refused by it, as a response would name it. `group`: refused
 * by a window of a group.
 */
export type TrialOutcome = 'admitted' | 'banned' | 'concurrent' | 'group' | PlanWindow;

export interface Charge {
  readonly units: number;
  /** The request is also charged in the windows of the groups that have this operation. */
  readonly operation?: string | undefined;
}

interface DecisionFigures {
  /** An admitted request is charged this cost in every window. A request that is not admitted is not charged. */
  readonly units: number;
  readonly rateLimit: RateLimitState;
  readonly source: DecisionSource;
  /** Absent if the plan has no trial, and if the decision is `unavailable`. */
  readonly trial?: TrialOutcome;
}

/** About one request of a valid key. */
export type Decision =
  | (DecisionFigures & {
      readonly kind: 'admitted';
      /** Exemptions of the running grant; absent without exemptions. */
      readonly exemptions?: readonly string[];
    })
  | (DecisionFigures & {
      /**
       * The same request would be admitted at `retryAtMs` (epoch ms on the clock of the decision). `banned`: refused during a ban.
       * `crowded`: refused by the concurrency limit; its `retryAtMs` is a guess, because the end of a running request is unknown.
       */
      readonly kind: 'refused' | 'banned' | 'crowded';
      readonly retryAtMs: number;
    })
  | (DecisionFigures & {
      /** The store is unavailable and `redis.onFailure` is `refuse`. The figures are the last known ones. */
      readonly kind: 'unavailable';
      readonly retryAtMs: number;
    });

/** The key changed after it was read. The request is neither decided nor charged, and the caller reads the key again. */
export interface StaleKey {
  readonly kind: 'stale';
}

/** A counted request is not always served: without a valid key it gets 401 or 400. */
export interface BucketDecision {
  readonly kind: 'counted' | 'refused';
  readonly rateLimit: RateLimitState;
  readonly source: DecisionSource;
  readonly trial?: undefined;
}

/** Reading the quota costs no units. */
export interface KeyStatus {
  readonly rateLimit: RateLimitState;
  /** When the next request would be admitted (epoch ms on the clock of the decision), if its operation is in no group; 0: now. */
  readonly retryAtMs: number;
  /** The used requests in the windows of `rateLimit`, in the same order. May exceed the limit after a reload with lower limits. */
  readonly used: readonly number[];
  /** Refusals that counted towards the next ban at the last request (`countingStrikes`), and the consecutive bans. */
  readonly strikes: number;
  /** The time of the first of these refusals, epoch ms. */
  readonly strikesFromMs: number;
  readonly banLevel: number;
  /**
   * Absent once the grant has ended. `fromMs` is present only before the grant begins. After that, `rateLimit` contains the resulting
   * limits.
   */
  readonly grant?: Grant;
  /** While Redis is away: nothing is known about the counts of the key. */
  readonly isUnknown?: true;
}

/** A key with `after` refusals within `withinMs` is banned for `forMs`. Each further ban lasts twice as long, up to `maxMs`. */
export interface BanPolicy {
  readonly after: number;
  readonly withinMs: number;
  readonly forMs: number;
  readonly maxMs: number;
}

export interface QuotaRules {
  readonly bans: BanPolicy;
  /** Percentages of a limit that are reported when a key reaches them: whole numbers, ascending. */
  readonly thresholds?: readonly number[] | undefined;
}

/** The API document in JSON, served together with the API reference. */
export const apiDocumentPath = '/openapi.json';

/** The method of the one operation of a configuration without an API document, which every request matches. */
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

// biome-ignore lint/suspicious/noEmptyInterface: capabilities add their members
export interface DeprecationMembers {}

/** When an operation was deprecated (RFC 9745) and is removed (RFC 8594), epoch ms. */
export interface Deprecation extends DeprecationMembers {
  /** Absent when the API document does not state the date. */
  readonly sinceMs?: number | undefined;
  readonly sunsetMs?: number | undefined;
  /** The path template of the operation that replaces it, relative to the base URL. */
  readonly successor?: string | undefined;
  /** After `sunsetMs`, requests get 410 (`gone`), or are still served. */
  readonly afterSunset: 'gone' | 'serve';
}

export interface Operation {
  readonly id: string;
  readonly method: Method;
  /** Relative to the base URL, for example `/pets/{petId}`. */
  readonly template: string;
  readonly stability?: 'experimental' | 'beta' | undefined;
  readonly deprecation?: Deprecation | undefined;
  readonly upgrade?: 'websocket' | undefined;
  /** The units that a request is charged; absent: 1. */
  readonly cost?: number | undefined;
  readonly upstream: string;
}

/** The unit of limits: units if an operation has a cost other than 1. */
export function countedBy(operations: readonly Operation[]): 'request' | 'unit' {
  return operations.some(({ cost = 1 }) => cost !== 1) ? 'unit' : 'request';
}

/** A pool of targets: every address of its host. */
export interface Upstream {
  /** As in `x-upstream` and `/readyz`. */
  readonly name: string;
  /** `http://host:port` or `https://host:port`, without a path. */
  readonly url: string;
  /**
   * For `https` targets. By default, certificates must match the host in `url` and be issued by a certificate authority that Node.js
   * trusts.
   */
  readonly tls?: UpstreamTls | undefined;
  /** The path to which a healthy target responds with 2xx. Without a path, a target is healthy if it accepts a connection. */
  readonly health: string | undefined;
  /** The `Host` field that a target receives: the client's (`keep`), or the host and port of `url` (`target`). */
  readonly host: 'keep' | 'target';
  /** Whether a path with `%2F` is refused. */
  readonly encodedSlashes: 'refuse' | 'forward';
  /** For the connect, for the first octet of the response, and for the whole exchange; absent: the default. */
  readonly timeouts: {
    readonly connectMs?: number | undefined;
    readonly headersMs?: number | undefined;
    readonly totalMs?: number | undefined;
  };
  /** The upstream fails from this share (0 to 1) and number of failed requests in a minute. */
  readonly failing: { readonly shareMin: number; readonly failuresMin: number };
}

/** Exactly one of `url`, `cluster` and `sentinel` is present. */
export interface RedisSettings {
  /** `redis://`, or `rediss://` for TLS. It may contain a user, a password and a database. */
  readonly url?: string | undefined;
  /** Some servers of a Redis Cluster. Either all URLs use TLS, or none. */
  readonly cluster?: readonly string[] | undefined;
  readonly sentinel?:
    | {
        /** As in the configuration of the Sentinels. */
        readonly name: string;
        /** The `host:port` of each Sentinel. */
        readonly hosts: readonly string[];
        /** For the Sentinels. The password is a secret: no log, message or response may show it. */
        readonly username?: string | undefined;
        readonly password?: string | undefined;
      }
    | undefined;
  /** For the Redis servers; absent if the URL contains it, or if no user is needed. The password is a secret. */
  readonly username?: string | undefined;
  readonly password?: string | undefined;
  /** For Redis servers and Sentinels. Without it, TLS is used only for `rediss://` URLs. */
  readonly tls?: Pick<UpstreamTls, 'ca' | 'clientCertificate'> | undefined;
  readonly prefix: string;
  readonly onFailure: 'local' | 'refuse';
}

/** For connections to targets or Redis. Certificates and keys are PEM texts. */
export interface UpstreamTls {
  /** Replaces the certificate authorities of Node.js. */
  readonly ca?: string | undefined;
  /** The name or address that the target's certificate must have, in place of the host in `url`. */
  readonly serverName?: string | undefined;
  /** With its chain and key, for targets that request a client certificate. */
  readonly clientCertificate?:
    | {
        readonly cert: string;
        /** Unencrypted. A secret: no log, message or response may show it. */
        readonly key: string;
      }
    | undefined;
}

/** A listener with a certificate accepts only TLS. */
interface ListenAddress {
  readonly host: string;
  readonly port: number;
  readonly tls?: Certificate | undefined;
}

export interface AdminSettings extends ListenAddress {
  readonly tokens: readonly AdminToken[];
  /** In lower case, in addition to `localhost` and IP addresses. */
  readonly hosts: readonly string[];
}

export interface AdminToken {
  readonly name: string;
  /** Lower-case hex SHA-256. */
  readonly sha256: string;
  /** `write` includes reading. */
  readonly may: 'read' | 'write';
}

/** The author of a change through the admin API. */
export interface Author {
  /** The name of the token. */
  readonly by: string;
  /** The person and the host that the command claims, "alice on ops-1". The gateway cannot verify it. */
  readonly ranBy?: string | undefined;
}

export interface Certificate {
  /** For messages. */
  readonly file: string;
  /** Followed by its chain, in PEM. */
  readonly cert: string;
  /** Unencrypted, in PEM. A secret: no log, message or response may show it. */
  readonly key: string;
  /** Epoch ms. */
  readonly notAfterMs: number;
}

/** The main file in the form that `statedForm` makes. The code reads only the members with a type of their own. */
export interface StatedSettings extends Readonly<Record<string, unknown>> {
  readonly listen: StatedListener;
  readonly admin: StatedListener;
}

export interface StatedListener {
  readonly host: string;
  readonly port: number;
  readonly tls?: Readonly<Record<string, unknown>> | undefined;
}

// biome-ignore lint/suspicious/noEmptyInterface: capabilities add their members
export interface SettingsMembers {}

/**
 * The validated settings, with the default of each omitted setting. All members except the keys are plain data, which
 * `config/loader/settings-message.ts` sends to other threads and processes.
 */
export interface Settings extends SettingsMembers {
  /** A digest of the configuration files, 12 hex digits, for the access line and `/readyz`. */
  readonly version: string;
  readonly environment: string;
  /** With defaults and without secrets, plans and keys, for `/settings`. */
  readonly stated: StatedSettings;
  /** The path of `baseUrl`, for example `/v1`. */
  readonly basePath: string;
  /** Processes that serve requests; `auto`: one for each CPU. */
  readonly workers: number | 'auto';
  readonly listen: ListenAddress;
  readonly admin: AdminSettings;
  /** Absent: counts are in memory. */
  readonly redis?: RedisSettings | undefined;
  /** At least one. The first serves every operation without an `x-upstream`. */
  readonly upstreams: readonly Upstream[];
  /** `plansAt` returns the plans with the limits that apply at a given time. */
  readonly plans: Plans;
  /** Added by `followPlanChanges`; absent without a decision. */
  readonly planStates?: PlanStates | undefined;
  readonly keys: Keys;
  /** Whether keys can be issued while gateways run. */
  readonly directory: boolean;
  /** Absent if no file has a list of keys. */
  readonly keysFile?:
    | {
        /** Relative to the folder of the main file, or absolute if the main file has an absolute path. */
        readonly path: string;
        /**
         * The line of each key, from 1, at the index that `rankOf` returns. If line numbers were members of keys, a new line at the top of
         * the file would change every key, and a reload would replace all keys.
         */
        readonly lines: Uint32Array;
      }
    | undefined;
  readonly operations: readonly Operation[];
  /** The path of the API reference, and the API document as JSON. */
  readonly docs?: { readonly path: string; readonly document: string } | undefined;
  readonly bans: BanPolicy;
  /** Whether a client sees the reason of a ban by an operator. */
  readonly showsBanReason: boolean;
  readonly addressBucket: { readonly perMinute: number };
  readonly bodyBytesMax: number;
  /** Days for which the usage record keeps each minute of each key; 0: no usage record. */
  readonly usage: { readonly keepDays: number };
  /** Percentages of limits at which a capability wants notices, ascending. */
  readonly thresholds: readonly number[];
  /** The web origins whose pages may call the API from a browser. */
  readonly cors?: { readonly origins: readonly string[] } | undefined;
  /** `Strict-Transport-Security`, which is sent only over TLS. */
  readonly hsts?: { readonly maxAgeSeconds: number; readonly includeSubDomains: boolean } | undefined;
  /** Addresses and CIDR ranges whose `X-Forwarded-*` fields are trusted. */
  readonly trustedProxies: readonly string[];
}
