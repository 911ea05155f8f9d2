/**
 * The data types that the stations of the request path share. All of it is readonly: a station takes it as arguments and
 * gives it as results.
 */

/** The calendar windows that a plan may limit, shortest first: those of UTC, on the store's clock. */
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
  /** Each of its keys states its own limits. */
  readonly isCustom: boolean;
  /** None of a custom plan. */
  readonly limits: Limits;
  /** Ids of the operations that its keys may call; undefined: all. */
  readonly operations: readonly string[] | undefined;
}

/** By name, in the order of the configuration. */
export type Plans = ReadonlyMap<string, Plan>;

/** One entry of `keys`: who calls, on which plan, with which limits. Quota and ban belong to its id. */
export interface Key {
  readonly id: string;
  readonly plan: string;
  readonly name?: string | undefined;
  readonly limits: Limits;
  /** Ids of the operations that it may call; absent: all. */
  readonly operations?: readonly string[] | undefined;
  readonly disabled: boolean;
  /**
   * Only of a key that may change without a reload: the `changedMs` of its quota hash when the key was read. The store
   * answers `stale` when the two differ.
   */
  readonly generation?: number;
}

/**
 * What an operator gives a key for a while: limits that replace those of the same windows from `fromMs` until `untilMs`, epoch
 * ms on the store's clock. Windows that the key's own limits do not name stay without a limit.
 */
export interface Grant {
  readonly limits: Limits;
  /** Absent: it holds at once. */
  readonly fromMs?: number | undefined;
  readonly untilMs: number;
}

/** One secret of a key. It is valid before `expiresMs` (epoch; Infinity when it never expires). */
export interface Secret {
  /** Lower-case hex SHA-256. */
  readonly digest: string;
  readonly expiresMs: number;
  /** When it was issued, epoch ms; absent where nobody wrote that down. */
  readonly createdMs?: number | undefined;
}

/** What the digest of a secret leads to. */
export interface FoundKey {
  readonly key: Key;
  readonly secret: Secret;
}

/**
 * The keys of a configuration, which may be 100,000. They are packed: a key is made when it is asked for, which takes a few
 * microseconds, and is not the same object the next time.
 */
export interface Keys {
  readonly size: number;
  /** Secrets of all keys. */
  readonly secrets: number;
  has(id: string): boolean;
  get(id: string): Key | undefined;
  /** By the lower-case hex SHA-256 digest of a secret, expired ones and those of disabled keys included. */
  find(digest: string): FoundKey | undefined;
  /** In their order in the file; none for a key that is not there. */
  secretsOf(id: string): readonly Secret[];
  /** In the order of code units; with `after` those behind it, whether it is there or not. */
  ids(after?: string): Iterable<string>;
  /** The place of an id in that order, from 0; undefined when no key has it. */
  rankOf(id: string): number | undefined;
  /** Visits all keys, in no order, in about a millisecond for 100,000. `lastEndMs`: when the last secret ends, epoch ms; 0 without one. */
  tally(visit: (plan: string, isDisabled: boolean, lastEndMs: number) => void): void;
}

/** A secret that was read from the directory while the gateway runs. It may be used within `period`, which ends early when its key changes. */
export type ReadSecret =
  | {
      readonly kind: 'usable';
      readonly key: Key;
      /** As of `Secret`. */
      readonly expiresMs: number;
      readonly period: Readonly<Period>;
    }
  | {
      readonly kind: 'refused';
      readonly keyId: string;
      /** `no_plan`: the configuration does not have its plan any more. */
      readonly status: 'disabled' | 'no_plan';
      readonly expiresMs: number;
      readonly period: Readonly<Period>;
    };

/** From one instant to before another, epoch ms. */
export interface Period {
  fromMs: number;
  untilMs: number;
}

/**
 * Limits of a minute on what is charged to no quota. Of a client address: its requests without a valid key, and its CORS
 * preflights, and its requests for the API reference; of a key: how often it reads its own limits.
 */
export type BucketName = 'address' | 'preflight' | 'docs' | 'limits';

/** A window of a key's plan, or a bucket. */
export type WindowName = PlanWindow | BucketName;

/** A period that a limit covers, and where the caller stands in it. */
export interface Window {
  readonly name: WindowName;
  readonly limit: number;
  /** Never negative, also when a reload lowered the limit below what was used. */
  readonly remaining: number;
  /** When `remaining` is `limit` again, epoch ms on the deciding clock. */
  readonly resetMs: number;
  readonly windowSeconds: number;
}

/** All figures that the rate-limit headers of one answer are made of. */
export interface RateLimitState {
  /** The deciding clock (Redis's, when it decided), epoch ms. */
  readonly nowMs: number;
  readonly windows: readonly Window[];
  /**
   * The window that would refuse first: smallest remaining, on a tie the one that resets later. A ban does not change it
   * (`toldWindow`).
   */
  readonly inForce: Window;
  /** The ban that the key is under. Epoch ms on the deciding clock. */
  readonly ban?: {
    readonly untilMs: number;
    /** The request finds room, later than `untilMs` where a window has none before. */
    readonly retryAtMs: number;
  };
}

/** The window of `X-RateLimit-*`. During a ban it has nothing left until the request finds room. */
export function toldWindow({ inForce, ban }: RateLimitState): Window {
  return ban === undefined ? inForce : { ...inForce, remaining: 0, resetMs: ban.retryAtMs };
}

/** Which counts a decision rests on: `shared` in Redis, this process's own while it is away, or in `memory` without Redis. */
export type DecisionSource = 'shared' | 'local' | 'memory';

/** What the plan's windows and the ban ladder say to one request of a valid key. */
export type Decision =
  | {
      readonly kind: 'admitted';
      /** What the request costs: all windows are charged so many units. */
      readonly units: number;
      readonly rateLimit: RateLimitState;
      readonly source: DecisionSource;
    }
  | {
      /** The same request finds room at `retryAtMs` (epoch, deciding clock); `banned` is a refusal by the ban ladder. */
      readonly kind: 'refused' | 'banned';
      /** What the request would have cost. */
      readonly units: number;
      readonly rateLimit: RateLimitState;
      readonly source: DecisionSource;
      readonly retryAtMs: number;
    }
  | {
      /** The store is away and `redis.onFailure` is `refuse`; `rateLimit` is what was last seen. */
      readonly kind: 'unavailable';
      readonly rateLimit: RateLimitState;
      readonly source: 'local';
      readonly retryAtMs: number;
    };

/** The key was changed after it was read: nothing was decided or charged, and the caller reads it again. */
export interface StaleKey {
  readonly kind: 'stale';
}

/** What a bucket says. `counted` is no admission: a request without a valid key that is counted still hears 401 or 400. */
export interface BucketDecision {
  readonly kind: 'counted' | 'refused';
  readonly rateLimit: RateLimitState;
  readonly source: DecisionSource;
}

/** Where a key is now, with nothing charged. */
export interface KeyStatus {
  /** As its next request would be told, before it is charged. */
  readonly rateLimit: RateLimitState;
  /** A request at this instant (epoch ms, deciding clock) finds room; 0: one finds it now. */
  readonly retryAtMs: number;
  /** The requests used in each window of `rateLimit`, in its order: after a reload they may be more than the limit. */
  readonly used: readonly number[];
  /** Refusals that count towards the next ban, and how many bans led here. */
  readonly strikes: number;
  readonly banLevel: number;
  /** Until it has ended. Its `fromMs` is there until it begins; from then on `rateLimit` shows the limits that it leads to. */
  readonly grant?: Grant;
}

/** The ban ladder: `after` refusals within `withinMs` ban for `forMs`, doubling up to `maxMs`. */
export interface BanPolicy {
  readonly after: number;
  readonly withinMs: number;
  readonly forMs: number;
  readonly maxMs: number;
}

/** What happens to keys, to Redis and to targets, told once to the log and to the list of events. */
export type BanEvent =
  | {
      readonly kind: 'ban';
      readonly keyId: string;
      readonly plan: string | undefined;
      /** 1: the first ban in a row. */
      readonly level: number;
      /** On the store's clock, epoch ms. */
      readonly untilMs: number;
    }
  | {
      readonly kind: 'ban_ended';
      readonly keyId: string;
      readonly plan: string | undefined;
      readonly untilMs: number;
      /** Lifted: before its time. */
      readonly ended: 'expired' | 'lifted';
    };

export type StoreEvent =
  | {
      readonly kind: 'store_away';
      /** Which one, in a Redis Cluster. */
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
      /** Silent: it gets requests where no other target is healthy. */
      readonly health: 'silent' | 'down';
      readonly reason: string | undefined;
    }
  | {
      readonly kind: 'target_healthy';
      readonly upstream: string;
      readonly target: string;
      readonly unhealthyMs: number;
    };

/** Where the API document is served as JSON, beside the API reference. */
export const apiDocumentPath = '/openapi.json';

/** The method of the one operation of a configuration without an API document, which every request is. */
export const anyMethod = '*';

export type Method = 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'OPTIONS' | typeof anyMethod;

/** When an operation was deprecated (RFC 9745) and when it is removed (RFC 8594), epoch ms. */
export interface Deprecation {
  /** Absent when the API document does not say since when. */
  readonly sinceMs?: number | undefined;
  readonly sunsetMs?: number | undefined;
  /** The path template of the operation to use instead, relative to the base URL. */
  readonly successor?: string | undefined;
  /** What is answered from `sunsetMs` on: 410, or the operation as before. */
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

/** A named pool that requests are forwarded to: every address its host resolves to is a target. */
export interface Upstream {
  /** What `x-upstream` and `/readyz` call it. */
  readonly name: string;
  /** `http://host:port` or `https://host:port`, without a path. */
  readonly url: string;
  /** How `https` targets are verified, and what this side shows them; absent: by the name in `url`, by Node's authorities. */
  readonly tls?: UpstreamTls | undefined;
  /** The path that a healthy target answers with 2xx. Undefined: a healthy target accepts a connection. */
  readonly health: string | undefined;
  /** What a target reads in `Host`: what the client sent (`keep`), or host and port of `url` (`target`). */
  readonly host: 'keep' | 'target';
  /**
   * To connect, from the sent request to the first byte of the response, and for the whole exchange. Where one is absent,
   * the bound that ships holds.
   */
  readonly timeouts: {
    readonly connectMs?: number | undefined;
    readonly headersMs?: number | undefined;
    readonly totalMs?: number | undefined;
  };
}

/** Where counts, keys and records are shared: one of `url`, `cluster` and `sentinel` is there. */
export interface RedisSettings {
  /** One server: `redis://` or, over TLS, `rediss://`, perhaps with user, password and database. */
  readonly url?: string | undefined;
  /** A Redis Cluster: URLs of some of its servers, all with or all without TLS. */
  readonly cluster?: readonly string[] | undefined;
  /** The master that Sentinels name. */
  readonly sentinel?:
    | {
        /** What they call the master. */
        readonly name: string;
        /** `host:port` of each. */
        readonly hosts: readonly string[];
        /** For the Sentinels themselves. The password is a secret: no log, message or response may show it. */
        readonly username?: string | undefined;
        readonly password?: string | undefined;
      }
    | undefined;
  /** For the servers; absent where the URL has them, or none is needed. The password is a secret. */
  readonly username?: string | undefined;
  readonly password?: string | undefined;
  /** Servers, and Sentinels, are reached over TLS; absent: only where a URL says so. */
  readonly tls?: Pick<UpstreamTls, 'ca' | 'own'> | undefined;
  readonly prefix: string;
  readonly onFailure: 'local' | 'refuse';
}

/** Certificates and keys are texts in PEM. */
export interface UpstreamTls {
  /** The authorities that are trusted in place of Node's. */
  readonly ca?: string | undefined;
  /** The name or address that a target's certificate is for, in place of the host in `url`. */
  readonly serverName?: string | undefined;
  /** What this side authenticates itself with, where targets ask for that: a certificate with its chain, and its key. */
  readonly own?:
    | {
        readonly cert: string;
        /** Not encrypted. A secret: no log, message or response may show it. */
        readonly key: string;
      }
    | undefined;
}

/** Where a listener listens. With a certificate it speaks TLS and nothing else. */
export interface ListenAddress {
  readonly host: string;
  readonly port: number;
  readonly tls?: Certificate | undefined;
}

/** The admin listener, and who may use its API. */
export interface AdminSettings extends ListenAddress {
  readonly tokens: readonly AdminToken[];
  /** Host names in lower case by which it may be reached, beside `localhost` and addresses. */
  readonly hosts: readonly string[];
}

export interface AdminToken {
  readonly name: string;
  /** Lower-case hex SHA-256 digest of the token. */
  readonly sha256: string;
  /** `write` may read, too. */
  readonly may: 'read' | 'write';
}

/** A certificate with its private key, as a listener presents it. */
export interface Certificate {
  /** The file of the certificate, for messages. */
  readonly file: string;
  /** PEM: the certificate itself, then the rest of its chain. */
  readonly cert: string;
  /** PEM, not encrypted. A secret: no log, message or response may show it. */
  readonly key: string;
  /** It is valid until this instant, epoch ms. */
  readonly notAfterMs: number;
}

/**
 * Everything an operator writes, validated, with every default filled in. Plain data but for the keys:
 * `config/settings-message.ts` takes it to other threads and processes.
 */
export interface Settings {
  /** A digest of the files it was read from, 12 hex digits; on the access line and in `/readyz`. */
  readonly version: string;
  readonly environment: string;
  /** The path of `baseUrl`, for example `/v1`: the prefix of every operation. */
  readonly basePath: string;
  /** How many processes serve requests; `auto`: as many as there are CPUs. */
  readonly workers: number | 'auto';
  readonly listen: ListenAddress;
  readonly admin: AdminSettings;
  /** Absent: the embedded memory store. */
  readonly redis?: RedisSettings | undefined;
  /** At least one. The first serves every operation that names none. */
  readonly upstreams: readonly Upstream[];
  /** As they are stated; `plansAt` says which hold. */
  readonly plans: Plans;
  readonly keys: Keys;
  /** Whether there are also keys that are issued while gateways run, in the directory. */
  readonly directory: boolean;
  /** Where `keys` are written; absent where no file has a list. */
  readonly keysFile?:
    | {
        /** Relative to the folder of the main file, unless that names it by an absolute path. */
        readonly path: string;
        /**
         * The line where each entry begins, from 1, by `rankOf`. No member of a key: one more line at the top of the file would
         * change every key, and a reload replaces only those that changed.
         */
        readonly lines: Uint32Array;
      }
    | undefined;
  readonly operations: readonly Operation[];
  /** Where a key reads its own limits; absent: nowhere. */
  readonly limitsPath?: string | undefined;
  /** Where the API reference is, and the API document as it shows it, JSON; absent: nowhere. */
  readonly docs?: { readonly path: string; readonly document: string } | undefined;
  readonly bans: BanPolicy;
  readonly addressBucket: { readonly perMinute: number };
  readonly bodyBytesMax: number;
  /** For how many days each minute of each key is recorded; 0: nothing is. */
  readonly usage: { readonly keepDays: number };
  /** Absent: no page of another origin may call the API from a browser. */
  readonly cors?: { readonly origins: readonly string[] } | undefined;
  /** Absent: no `Strict-Transport-Security`. It is sent over TLS only. */
  readonly hsts?: { readonly maxAgeSeconds: number; readonly includeSubDomains: boolean } | undefined;
  /** Addresses and CIDR ranges whose `X-Forwarded-*` is believed. */
  readonly trustedProxies: readonly string[];
}
