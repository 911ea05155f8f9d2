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
    bytesMax: 1_500,
    expires:
      'At the latest of these times: the end of the longest limited window, the expiry of counted refusals, the end of a grant, the end of a lease, `bans.max` after the end of a ban. For a key of the directory also: 3.5 to 7 days after a process last read the key.',
    writtenBy:
      'The chapters of `quota/` write it: `decide-key.lua` on each admitted request, and on each refusal that reaches Redis; `adjust.lua`, `thresholds.lua` and `marks.lua` on changes of operators, credits, reports of thresholds, leaks and changes of keys.',
    howMany:
      'One per API key with requests since the last expiry, and one per key of the directory that a process has read.',
    size: '232 octets with limits per minute and day; a grant adds 50 octets, or 70 octets if the grant starts later; reported thresholds of hour, day and month add 50 octets; a trial adds 160 octets with two windows, and up to 350 octets with five windows. Redis stores a hash compactly while each value has at most 64 octets.',
  },
  usageDay: {
    name: (prefix: string, id: string) => `${prefix}:{${id}}:usage`,
    pattern: '<prefix>:{<key id>}:usage:<days since 1970>',
    type: 'hash',
    bytesMax: 16_384,
    expires: '`usage.keepDays` plus two days after the day that is counted.',
    writtenBy:
      '`usage/store/add-counts.lua`. Each process runs it every ten seconds for each busy API key, and at most once a minute for each quiet API key. A call has up to 16 API keys.',
    howMany: 'One per API key and day on which it was active.',
    size: 'This is the size for five operations, with admitted and refused requests in every minute of the day.',
  },
  usageTotals: {
    name: (prefix: string, id: string) => `${prefix}:{${id}}:usage-totals`,
    pattern: '<prefix>:{<key id>}:usage-totals',
    type: 'hash',
    bytesMax: 8_192,
    expires: '400 days after the usage of a day was last added.',
    writtenBy:
      '`usage/store/add-counts.lua` writes it once per API key and active day, at least one day after that day has ended.',
    howMany: 'One per API key that was active within 400 days.',
  },
  usageOperations: {
    name: (prefix: string) => `${prefix}:usage:operations`,
    pattern: '<prefix>:usage:operations:<days since 1970>',
    type: 'hash',
    bytesMax: 400_000,
    expires: '`usage.keepDays`, or 15 if that is more, plus two days after the day that is counted.',
    writtenBy:
      '`usage/store/add-counts.lua`. Each process runs it every ten seconds, in calls of at most 250 fields.',
    howMany: 'One per day.',
    size: 'This is the size for 50 operations that were called in each hour, and up to 2,000 octets for each used secret that is not valid.',
  },
  usageActive: {
    name: (prefix: string) => `${prefix}:usage:active`,
    pattern: '<prefix>:usage:active',
    type: 'zset',
    bytesMax: 1_200_000,
    expires: '`usage.keepDays` plus two days after a key was active.',
    writtenBy:
      '`usage/store/redis-usage-store.ts` writes it. Each process updates the entry of an active API key about once a minute, usually writes at most ten times a second, and writes at most 10,000 entries a minute.',
    howMany: 'A single key with the 10,000 most recently active API keys.',
  },
  address: {
    name: (prefix: string) => `${prefix}:address`,
    pattern: '<prefix>:address:<client address, IPv6 as its /64>',
    type: 'string',
    bytesMax: 120,
    expires: '60 s after the first counted request.',
    writtenBy:
      '`request/limit/minute-bucket.ts` writes it on each malformed request, and on each request whose key is missing, not valid or not allowed from the address, until the limit is exceeded. The API reference and preflights have limits of their own.',
    howMany: 'One per client address that sent a request without a valid key within a minute.',
  },
  preflight: {
    name: (prefix: string) => `${prefix}:preflight`,
    pattern: '<prefix>:preflight:<client address, IPv6 as its /64>',
    type: 'string',
    bytesMax: 120,
    expires: '60 s after the first counted preflight.',
    writtenBy:
      '`request/limit/minute-bucket.ts` writes it on each CORS preflight, until the limit is exceeded.',
    howMany: 'One per client address that sent a preflight within a minute.',
  },
  docs: {
    name: (prefix: string) => `${prefix}:docs`,
    pattern: '<prefix>:docs:<client address, IPv6 as its /64>',
    type: 'string',
    bytesMax: 120,
    expires: '60 s after the first counted request.',
    writtenBy:
      '`request/limit/minute-bucket.ts` writes it on each request for the API reference, until the limit is exceeded.',
    howMany: 'One per client address that read the reference within a minute.',
  },
  leakedSecrets: {
    name: (prefix: string) => `${prefix}:leaked-secrets`,
    pattern: '<prefix>:leaked-secrets',
    type: 'hash',
    isPermanent: true,
    bytesMax: 130_000_000,
    expires:
      'Never. An entry is removed ten minutes after the last gateway’s configuration no longer has the secret.',
    writtenBy:
      '`keys/leaks/blocked/add-leak.lua` writes it on the first report of a leaked secret of the configuration, and again if Redis has lost it. `keys/leaks/blocked/renew-leaks.lua` writes it once a minute while a configuration has a leaked secret.',
    howMany: 'A single key, with an entry for each leaked secret of the configuration.',
    size: 'The maximum is reached if all of 100,000 secrets leak; each leaked secret takes at most 1,300 octets.',
  },
  directoryRecord: {
    name: (prefix: string, keyId: string) => `${prefix}:{${keyId}}:key`,
    pattern: '<prefix>:{<key id>}:key',
    type: 'hash',
    isPermanent: true,
    bytesMax: 3_000,
    expires: 'Never, because it is the record of an API key.',
    writtenBy: '`keys/directory/store/change-record.lua` writes it on each change of a key of the directory.',
    howMany: 'One per API key of the directory.',
    size: '500 octets with one secret and a name; each further secret adds 120 octets, or 350 octets if its holder issued it. Each removed secret with descendants adds 170 octets (at most 200 for each secret of an operator). Each leaked secret adds at most 900 octets more.',
  },
  directoryRemoved: {
    name: (prefix: string, keyId: string) => `${prefix}:{${keyId}}:removed`,
    pattern: '<prefix>:{<key id>}:removed',
    type: 'hash',
    bytesMax: 800,
    expires: 'A day after a key with this id was removed.',
    writtenBy:
      '`keys/directory/store/change-record.lua` writes it on each removal of a key from the directory.',
    howMany: 'One per id that was removed within a day.',
    size: 'This is the size with 20 removals of the same id; each removal adds about 25 octets.',
  },
  directoryDigest: {
    name: (prefix: string, digest: string) => `${prefix}:digest:${digest}`,
    pattern: '<prefix>:digest:<SHA-256 of a secret>',
    type: 'string',
    isPermanent: true,
    bytesMax: 250,
    expires: 'Never; removed with the secret.',
    writtenBy:
      '`keys/directory/store/redis-directory-store.ts` writes it on each change of a key of the directory.',
    howMany: 'One per secret of the directory.',
  },
  directoryIds: {
    name: (prefix: string) => `${prefix}:directory:ids`,
    pattern: '<prefix>:directory:ids',
    type: 'zset',
    isPermanent: true,
    bytesMax: 140_000_000,
    expires: 'Never. The entry of an API key is removed with the API key.',
    writtenBy:
      '`keys/directory/store/redis-directory-store.ts` writes it whenever a key is created or removed.',
    howMany: 'A single key. Each API key of the directory has an entry of about 130 octets.',
  },
  directoryForm: {
    /** A hash tag, so that the copies are in distant slots of a Cluster. */
    name: (prefix: string, copy: string) => `${prefix}:directory:form:{${copy}}`,
    pattern: '<prefix>:directory:form:{<0 to 3>}',
    type: 'string',
    isPermanent: true,
    bytesMax: 120,
    expires: 'Never, because it states the form of all secrets of the directory.',
    writtenBy:
      '`keys/directory/store/form-marks.ts` writes it while the directory is empty, and on the first import.',
    howMany: 'Four copies.',
  },
  directoryOnce: {
    name: (prefix: string, name: string) => `${prefix}:directory:once:${name}`,
    pattern: '<prefix>:directory:once:<name>',
    type: 'string',
    bytesMax: 1_000,
    expires: 'A day after the change.',
    writtenBy:
      '`keys/directory/store/redis-directory-store.ts` writes it when a key is issued with an Idempotency-Key.',
    howMany: 'One per Idempotency-Key that has not expired.',
  },
  processes: {
    /** In one slot of a Cluster, so one MGET can read all states. */
    name: (prefix: string, id: string) => `${prefix}:fleet:{processes}:state:${id}`,
    pattern: '<prefix>:fleet:{processes}:state:<process id>',
    type: 'string',
    bytesMax: 1_600,
    expires: '5 s after the process last wrote the key.',
    writtenBy: 'Each process writes it once a second (`fleet/presence.ts`).',
    howMany: 'One per process.',
    size: 'This is the size with one target; each further target adds 130 octets.',
  },
  processesSeen: {
    name: (prefix: string) => `${prefix}:fleet:{processes}:seen`,
    pattern: '<prefix>:fleet:{processes}:seen',
    type: 'zset',
    bytesMax: 240_000,
    expires: '5 s after a process last wrote the key.',
    writtenBy: 'Each process writes it once a second with `fleet/note-seen.lua`.',
    howMany: 'A single key with an entry for each of up to 2,000 processes.',
  },
  flush: {
    name: (prefix: string) => `${prefix}:fleet:{processes}:flush`,
    pattern: '<prefix>:fleet:{processes}:flush',
    type: 'string',
    bytesMax: 120,
    expires: '5 s after an operator’s command last flushed the counts of all processes.',
    writtenBy: '`fleet/flush/raise-flush.lua` writes it before a command reads counts of all processes.',
    howMany: 'A single key.',
  },
  healthFailing: {
    /** All keys of health checks are in one slot, so a script can write several keys. */
    name: (prefix: string) => `${prefix}:fleet:{health}:failing`,
    pattern: '<prefix>:fleet:{health}:failing',
    type: 'hash',
    bytesMax: 600_000,
    expires: '30 s after the last report about a failing target.',
    writtenBy:
      '`request/forward/upstream/fleet/share-health.lua`. More than two processes that check the same target run it five times a second. It writes only if a target fails or has failed.',
    howMany: 'A single key with a field for each of up to 1,000 targets with failed checks.',
    size: 'This is the size for 1,000 targets. A target takes at most 600 octets.',
  },
  healthCheckers: {
    name: (prefix: string, id: string) => `${prefix}:fleet:{health}:checkers:${id}`,
    pattern: '<prefix>:fleet:{health}:checkers:<digest of the check>',
    type: 'string',
    bytesMax: 160,
    expires: '20 s after the last process was counted.',
    writtenBy:
      '`request/forward/upstream/fleet/count-checkers.lua`. Each process runs it every nine seconds.',
    howMany: 'One per target and kind of check.',
  },
  changes: {
    /** In the same slot as `changesReports`, so one script can write both. */
    name: (prefix: string) => `${prefix}:fleet:{changes}`,
    pattern: '<prefix>:fleet:{changes}',
    type: 'stream',
    bytesMax: 120_000_000,
    expires: '90 days after the last change.',
    writtenBy:
      '`fleet/add-report.lua` adds each change of a key. Each process also adds each valid and each failed reload of the configuration.',
    howMany: 'A single key with the last 20,000 changes.',
    size: 'An entry takes 250 octets for a reload, 400 for most changes of keys, 1,500 for a failed reload, and 6,000 for a change of every field of a key.',
  },
  changesReports: {
    name: (prefix: string) => `${prefix}:fleet:{changes}:reports`,
    pattern: '<prefix>:fleet:{changes}:reports',
    type: 'hash',
    bytesMax: 4_000_000,
    expires: '90 days after the last change.',
    writtenBy:
      '`fleet/add-report.lua` writes it on each new entry of the stream, and when another process reports an existing entry.',
    howMany: 'A single key with at most two fields for each change.',
    size: 'Each further process that reports a change adds 16 octets.',
  },
  events: {
    name: (prefix: string) => `${prefix}:fleet:{events}`,
    pattern: '<prefix>:fleet:{events}',
    type: 'stream',
    bytesMax: 1_500_000,
    expires: '7 days after the last event.',
    writtenBy:
      '`fleet/add-report.lua` adds each event. Each process adds at most 20 events of a kind in one burst, and then about 16 per minute.',
    howMany: 'A single key with the last 2,000 events.',
  },
  eventsReports: {
    name: (prefix: string) => `${prefix}:fleet:{events}:reports`,
    pattern: '<prefix>:fleet:{events}:reports',
    type: 'hash',
    bytesMax: 800_000,
    expires: '7 days after the last event.',
    writtenBy:
      '`fleet/add-report.lua` writes it on each new entry of the stream, and when another process reports an existing entry.',
    howMany: 'A single key with at most two fields for each event.',
  },
  dataMark: {
    name: (prefix: string) => `${prefix}:data-mark`,
    pattern: '<prefix>:data-mark',
    type: 'string',
    isPermanent: true,
    bytesMax: 120,
    expires: 'Never, because a missing key means that Redis has lost its data.',
    writtenBy:
      'The first gateway writes it, and each gateway reads it every five seconds (`server/data-mark.ts`).',
    howMany: 'One.',
  },
  probe: {
    name: (prefix: string) => `${prefix}:probe`,
    pattern: '<prefix>:probe',
    type: 'string',
    bytesMax: 100,
    expires: '1 s after it was written.',
    writtenBy: 'Each process writes it once a second (`request/limit/store/store-watch.ts`).',
    howMany: 'One.',
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
  readonly expires: string;
  readonly writtenBy: string;
  readonly howMany: string;
  /** What the size depends on. */
  readonly size?: string;
}
