/**
 * The keys that Tollgate writes to Redis. Capabilities have keys of their own, beside their code. `npm run references` writes
 * `config/reference/redis-keys.md` from these tables. A test runs the gateway and compares the keys in Redis with them. `prefix` is
 * `redis.prefix` of the configuration.
 */
export const redisKeys = {
  quota: {
    /** The counts, the usage and the thresholds of an API key are in one slot of a Redis Cluster, by the hash tag in braces. */
    name: (prefix: string, keyId: string) => `${prefix}:{${keyId}}`,
    pattern: '<prefix>:{<key id>}',
    type: 'hash',
    bytesMax: 3_000,
    bytesFor: 'without groups and `concurrent`',
    expires:
      'A second after the latest of these times: the end of each limited window, of counted refusals, of a grant and of a lease; `bans.max` after a ban, its lifting or a reset; an hour after a leak; two minutes after a change of a key of the directory, and 3.5 to 7 days after a process last read it for a request.',
    writtenBy:
      'The scripts of `quota/`, when a decision changes counts, a ban or a lease; on grants, bans, resets and credits by operators; on reports of thresholds and leaks; and when a key of the directory changes or is first read.',
    howMany: 'At most one per API key.',
    size: 'With limits per minute and day, it is 150 octets, or 250 octets after a refusal. A grant of these limits adds 50 octets, and a trial up to 350 octets.',
  },
  usageDay: {
    name: (prefix: string, id: string) => `${prefix}:{${id}}:usage`,
    pattern: '<prefix>:{<key id>}:usage:<days since 1970>',
    type: 'hash',
    bytesMax: 16_384,
    bytesFor: 'for five operations, with admitted and refused requests in every minute of the day',
    expires: '`usage.keepDays` plus two days after the day that is counted.',
    writtenBy:
      '`usage/store/add-counts.lua`, usually run by each process every ten seconds for each busy API key and once a minute for each quiet one.',
    howMany: 'At most one per API key and day.',
    size: 'Costs, groups and trials add more.',
  },
  usageTotals: {
    name: (prefix: string, id: string) => `${prefix}:{${id}}:usage-totals`,
    pattern: '<prefix>:{<key id>}:usage-totals',
    type: 'hash',
    bytesMax: 8_192,
    bytesFor: 'if each request costs one unit, without groups',
    expires: '400 days after the usage of a day was last added.',
    writtenBy:
      '`usage/store/add-counts.lua`, once per API key and active day, at least one day after that day has ended.',
    howMany: 'At most one per API key.',
  },
  usageOperations: {
    name: (prefix: string) => `${prefix}:usage:operations`,
    pattern: '<prefix>:usage:operations:<days since 1970>',
    type: 'hash',
    bytesMax: 400_000,
    bytesFor: 'for 50 operations that were called in each hour',
    expires: '`usage.keepDays`, or 15 if that is more, plus two days after the day that is counted.',
    writtenBy: '`usage/store/add-counts.lua`, usually run every ten seconds by each process with requests.',
    howMany: 'At most one per day.',
    size: 'A used secret that is not valid adds up to 2,000 octets.',
  },
  usageActive: {
    name: (prefix: string) => `${prefix}:usage:active`,
    pattern: '<prefix>:usage:active',
    type: 'zset',
    bytesMax: 1_400_000,
    expires: '`usage.keepDays` plus two days after an entry was last written.',
    writtenBy:
      '`usage/store/redis-usage-store.ts`, in each process about once a minute for an active API key, and for at most 10,000 a minute on average.',
    howMany: 'One, with up to 10,000 recently active API keys.',
  },
  address: {
    name: (prefix: string) => `${prefix}:address`,
    pattern: '<prefix>:address:<client address, IPv6 as its /64>',
    type: 'string',
    bytesMax: 120,
    expires: '60 s after the first counted request.',
    writtenBy:
      '`request/limit/minute-bucket.ts`, on each request with a malformed head, or with a key or link that is missing, invalid, not allowed from the address or cannot be read, until the limit is exceeded.',
    howMany: 'One per client address with counted requests within a minute.',
  },
  preflight: {
    name: (prefix: string) => `${prefix}:preflight`,
    pattern: '<prefix>:preflight:<client address, IPv6 as its /64>',
    type: 'string',
    bytesMax: 120,
    expires: '60 s after the first counted preflight.',
    writtenBy:
      '`request/limit/minute-bucket.ts`, on each CORS preflight of an allowed origin, until the limit is exceeded.',
    howMany: 'One per client address with counted preflights within a minute.',
  },
  docs: {
    name: (prefix: string) => `${prefix}:docs`,
    pattern: '<prefix>:docs:<client address, IPv6 as its /64>',
    type: 'string',
    bytesMax: 120,
    expires: '60 s after the first counted request.',
    writtenBy:
      '`request/limit/minute-bucket.ts`, on each request for the API reference or the page of key holders, until the limit is exceeded.',
    howMany: 'One per client address with counted requests within a minute.',
  },
  leakedSecrets: {
    name: (prefix: string) => `${prefix}:leaked-secrets`,
    pattern: '<prefix>:leaked-secrets',
    type: 'hash',
    isPermanent: true,
    bytesMax: 130_000_000,
    bytesFor: 'if all of 100,000 secrets leak',
    expires: 'Never. A gateway removes an entry when no configuration has had the secret for ten minutes.',
    writtenBy:
      '`keys/leaks/blocked/add-leak.lua`, on the first report of a leaked secret, when a later report ends the secret, and again if Redis has lost it; and `renew-leaks.lua`, once a minute in each gateway while there is a leaked secret.',
    howMany: 'One, with an entry for each leaked secret of the configuration.',
    size: 'A leaked secret takes at most 1,300 octets.',
  },
  directoryRecord: {
    name: (prefix: string, keyId: string) => `${prefix}:{${keyId}}:key`,
    pattern: '<prefix>:{<key id>}:key',
    type: 'hash',
    isPermanent: true,
    bytesMax: 3_000,
    bytesFor: 'for a name and 16 secrets of an operator',
    expires: 'Never.',
    writtenBy: '`keys/directory/store/change-record.lua`, on each change of the key.',
    howMany: 'One per API key of the directory.',
    size: 'With one secret and a name, it is 600 octets. A further secret of an operator adds 130 octets, and one that the holder issued 310 octets. A removed secret with descendants adds 160 octets (at most 200 such secrets for each secret of an operator), and a leaked secret up to 900 octets. Limits, addresses and operations add their length as JSON.',
  },
  directoryRemoved: {
    name: (prefix: string, keyId: string) => `${prefix}:{${keyId}}:removed`,
    pattern: '<prefix>:{<key id>}:removed',
    type: 'hash',
    bytesMax: 800,
    bytesFor: 'for 20 removals of the same id',
    expires: 'A day after a key with this id was last removed.',
    writtenBy: '`keys/directory/store/change-record.lua`, on each removal of a key from the directory.',
    howMany: 'One per id of a key that was removed within a day.',
  },
  directoryDigest: {
    name: (prefix: string, digest: string) => `${prefix}:digest:${digest}`,
    pattern: '<prefix>:digest:<SHA-256 of a secret>',
    type: 'string',
    isPermanent: true,
    bytesMax: 250,
    expires: 'Never. It is removed when the key no longer has the digest.',
    writtenBy: '`keys/directory/store/redis-directory-store.ts`, when the key gets the secret.',
    howMany: 'One per secret of the directory, and per removed secret with descendants.',
  },
  directoryIds: {
    name: (prefix: string) => `${prefix}:directory:ids`,
    pattern: '<prefix>:directory:ids',
    type: 'zset',
    isPermanent: true,
    bytesMax: 150_000_000,
    bytesFor: 'for 1,000,000 API keys',
    expires: 'Never. The entry of an API key is removed with the API key.',
    writtenBy: '`keys/directory/store/redis-directory-store.ts`, when a key is created or removed.',
    howMany: 'One, with an entry of about 140 octets for each API key of the directory.',
  },
  directoryForm: {
    /** A hash tag, so that the copies are in distant slots of a Cluster. */
    name: (prefix: string, copy: string) => `${prefix}:directory:form:{${copy}}`,
    pattern: '<prefix>:directory:form:{<0 to 3>}',
    type: 'string',
    isPermanent: true,
    bytesMax: 120,
    expires: 'Never.',
    writtenBy: '`keys/directory/store/form-marks.ts`, before the first key and on the first import.',
    howMany: 'Four copies, which state whether Tollgate issued all secrets of the directory.',
  },
  directoryOnce: {
    name: (prefix: string, name: string) => `${prefix}:directory:once:${name}`,
    pattern: '<prefix>:directory:once:<digest of the token’s name and the Idempotency-Key>',
    type: 'string',
    bytesMax: 1_000,
    expires: 'A day after the first request for a new key with the Idempotency-Key.',
    writtenBy: '`keys/directory/store/redis-directory-store.ts`, on this request.',
    howMany: 'One per Idempotency-Key that was used for a new key within a day.',
  },
  processes: {
    /** In one slot of a Cluster, so one MGET can read all states. */
    name: (prefix: string, id: string) => `${prefix}:fleet:{processes}:state:${id}`,
    pattern: '<prefix>:fleet:{processes}:state:<process id>',
    type: 'string',
    bytesMax: 1_600,
    bytesFor: 'with one target and no fault',
    expires: '5 s after it was last written.',
    writtenBy: '`fleet/presence.ts`, once a second.',
    howMany: 'One per process that serves requests.',
    size: 'Each further healthy target adds 130 octets.',
  },
  processesSeen: {
    name: (prefix: string) => `${prefix}:fleet:{processes}:seen`,
    pattern: '<prefix>:fleet:{processes}:seen',
    type: 'zset',
    bytesMax: 240_000,
    expires: '5 s after a process last wrote the key.',
    writtenBy: '`fleet/note-seen.lua`, once a second for each process.',
    howMany: 'One, with an entry for each of up to 2,000 processes.',
  },
  flush: {
    name: (prefix: string) => `${prefix}:fleet:{processes}:flush`,
    pattern: '<prefix>:fleet:{processes}:flush',
    type: 'string',
    bytesMax: 120,
    expires: '10 s after it was written.',
    writtenBy:
      '`fleet/flush/raise-flush.lua`, when an operator reads counts of all processes, unless an earlier flush suffices.',
    howMany: 'One.',
  },
  healthFailing: {
    /** All keys of health checks are in one slot, so a script can write several keys. */
    name: (prefix: string) => `${prefix}:fleet:{health}:failing`,
    pattern: '<prefix>:fleet:{health}:failing',
    type: 'hash',
    bytesMax: 600_000,
    bytesFor: 'for 1,000 targets',
    expires: '30 s after the last report about a failing target.',
    writtenBy:
      '`request/forward/upstream/fleet/share-health.lua`, run about five times a second by each process that shares a target with more than one other; it writes only if a target fails or has failed.',
    howMany: 'One, with a field for each of up to 1,000 targets with failed checks.',
    size: 'A target takes at most 600 octets.',
  },
  healthCheckers: {
    name: (prefix: string, id: string) => `${prefix}:fleet:{health}:checkers:${id}`,
    pattern: '<prefix>:fleet:{health}:checkers:<digest of the check>',
    type: 'string',
    // 152 octets, and 168 if the script reuses the memory of a longer argument of an earlier script.
    bytesMax: 170,
    expires: '20 s after the last process was counted.',
    writtenBy:
      '`request/forward/upstream/fleet/count-checkers.lua`, run by each process at least every nine seconds or so.',
    howMany: 'One per target and kind of check.',
  },
  changes: {
    /** In the same slot as `changesReports`, so one script can write both. */
    name: (prefix: string) => `${prefix}:fleet:{changes}`,
    pattern: '<prefix>:fleet:{changes}',
    type: 'stream',
    bytesMax: 130_000_000,
    bytesFor: 'for entries of 6,000 octets',
    expires: '90 days after the last change.',
    writtenBy: '`fleet/add-report.lua`, on each change for the record of changes.',
    howMany: 'One, with at most the last 20,000 changes.',
    size: 'An entry takes 200 octets for most changes of keys, 450 for a small edit of a file, 1,500 for a failed reload with a long reason, 6,000 for a change of every field of a key, and about 5,000 more for an edit of 200 keys.',
  },
  changesReports: {
    name: (prefix: string) => `${prefix}:fleet:{changes}:reports`,
    pattern: '<prefix>:fleet:{changes}:reports',
    type: 'hash',
    bytesMax: 6_000_000,
    bytesFor: 'if one process reports each change',
    expires: '90 days after the last change.',
    writtenBy:
      '`fleet/add-report.lua`, on each new entry of the stream, and when another process reports an entry.',
    howMany: 'One, with at most two fields for each change.',
    size: 'Each further process that reports a change adds 16 octets.',
  },
  events: {
    name: (prefix: string) => `${prefix}:fleet:{events}`,
    pattern: '<prefix>:fleet:{events}',
    type: 'stream',
    bytesMax: 1_900_000,
    bytesFor: 'for events of 700 octets',
    expires: '7 days after the last event.',
    writtenBy:
      '`fleet/add-report.lua`. Each gateway adds at most 20 events of a kind in one burst, and then about 16 a minute.',
    howMany: 'One, with at most the last 2,000 events.',
  },
  eventsReports: {
    name: (prefix: string) => `${prefix}:fleet:{events}:reports`,
    pattern: '<prefix>:fleet:{events}:reports',
    type: 'hash',
    bytesMax: 800_000,
    bytesFor: 'if one process reports each event',
    expires: '7 days after the last event.',
    writtenBy:
      '`fleet/add-report.lua`, on each new entry of the stream, and when another process reports an entry.',
    howMany: 'One, with at most two fields for each event.',
    size: 'Each further process that reports an event adds 16 octets.',
  },
  dataMark: {
    name: (prefix: string) => `${prefix}:data-mark`,
    pattern: '<prefix>:data-mark',
    type: 'string',
    isPermanent: true,
    bytesMax: 120,
    expires: 'Never. A missing key means that Redis has lost its data.',
    writtenBy: '`server/data-mark.ts`, in each gateway every five seconds if it is missing.',
    howMany: 'One.',
  },
  probe: {
    name: (prefix: string) => `${prefix}:probe`,
    pattern: '<prefix>:probe',
    type: 'string',
    bytesMax: 100,
    expires: '1 s after it was written.',
    writtenBy:
      '`request/limit/store/server-watch.ts`, in each process once a second while the server is available.',
    howMany: 'One per Redis server. In a Cluster, a number follows the name.',
  },
} as const satisfies Record<string, RedisKeyKind>;

/** The texts are sentences of the reference. */
export interface RedisKeyKind {
  /** For keys of rate-limiter-flexible: the part before `:<client address>` or `:<key id>`. */
  readonly name: (prefix: string, id: string) => string;
  readonly pattern: string;
  readonly type: 'hash' | 'stream' | 'string' | 'zset';
  /** True for a key without an expiry. */
  readonly isPermanent?: true;
  /** In octets by `MEMORY USAGE`, with ids and names of 20 characters. */
  readonly bytesMax: number;
  /** The case that `bytesMax` is for, as the end of a sentence. */
  readonly bytesFor?: string;
  readonly expires: string;
  readonly writtenBy: string;
  readonly howMany: string;
  /** What the size depends on. */
  readonly size?: string;
}
