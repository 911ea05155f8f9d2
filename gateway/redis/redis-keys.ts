/**
 * Every key that Tollgate keeps in Redis. Nothing else is written there, and nothing without an expiry but the key
 * directory: a test runs all of it and holds what it finds against this table. `prefix` is `redis.prefix` of the configuration. What a kind takes
 * for 1, 1,000 or 1,000,000 API keys is `bytesEach` times its `count`.
 */
export const redisKeys = {
  quota: {
    /** The braces are a hash tag: all of an API key lies in one slot of a Redis Cluster. */
    name: (prefix: string, keyId: string) => `${prefix}:{${keyId}}`,
    pattern: '<prefix>:{<key id>}',
    type: 'hash',
    slot: 'by key id',
    expiry:
      'the end of the longest limited window, of the strikes, of a grant, or `bans.max` after a ban ended or was lifted',
    writer:
      'request/limit/store/decide-quota.lua with each admitted request and each shared refusal; change-quota.lua; keys/directory/store/note-change.lua',
    count: 'one per API key seen within its expiry',
    // 232 with a minute and a day: 232 MB for a million API keys. A grant is 50 more, with a
    // beginning 70; one of several windows may be longer than the 64 octets up to which Redis keeps a hash that small.
    bytesEach: 400,
  },
  usageDay: {
    name: (prefix: string, id: string) => `${prefix}:{${id}}:usage`,
    pattern: '<prefix>:{<key id>}:usage:<days since 1970>',
    type: 'hash',
    slot: 'by key id',
    expiry: '`usage.keepDays` and two days after its day',
    writer: 'usage/store/add-counts.lua, once per active API key, process and ten seconds',
    count: 'one per API key and day on which it was active',
    // A key that sends in every minute of the day, refusals among them, with five operations: see usage/README.md.
    bytesEach: 16_384,
  },
  usageTotals: {
    name: (prefix: string, id: string) => `${prefix}:{${id}}:usage-totals`,
    pattern: '<prefix>:{<key id>}:usage-totals',
    type: 'hash',
    slot: 'by key id',
    expiry: '400 days after a day was added',
    writer:
      'usage/store/add-counts.lua, once per API key and day on which it was active, some hours after that day',
    count: 'one per API key that was active within 400 days',
    bytesEach: 8_192,
  },
  usageOperations: {
    name: (prefix: string) => `${prefix}:usage:operations`,
    pattern: '<prefix>:usage:operations:<days since 1970>',
    type: 'hash',
    slot: 'its own',
    expiry: '`usage.keepDays` and two days after its day',
    writer: 'usage/store/add-counts.lua, once per process, ten seconds and 250 fields',
    count: 'one per day',
    // 50 operations in each hour.
    bytesEach: 400_000,
  },
  usageActive: {
    name: (prefix: string) => `${prefix}:usage:active`,
    pattern: '<prefix>:usage:active',
    type: 'zset',
    slot: 'its own',
    expiry: '`usage.keepDays` and two days after a key was active',
    writer:
      'usage/store/redis-usage-store.ts, at most once per process and second, for keys that were not active within a minute',
    count: 'one, with the 10,000 API keys that were active last',
    bytesEach: 1_200_000,
  },
  address: {
    name: (prefix: string) => `${prefix}:address`,
    pattern: '<prefix>:address:<client address, IPv6 as its /64>',
    type: 'string',
    slot: 'by address',
    expiry: '60 s after the first request of its minute',
    writer: 'request/limit/minute-bucket.ts with each request without a valid key, until its limit is passed',
    count: 'one per client address that sent such a request within a minute; none per API key',
    bytesEach: 120,
  },
  preflight: {
    name: (prefix: string) => `${prefix}:preflight`,
    pattern: '<prefix>:preflight:<client address, IPv6 as its /64>',
    type: 'string',
    slot: 'by address',
    expiry: '60 s after the first preflight of its minute',
    writer: 'request/limit/minute-bucket.ts with each CORS preflight, until its limit is passed',
    count: 'one per client address that sent a preflight within a minute; none per API key',
    bytesEach: 120,
  },
  docs: {
    name: (prefix: string) => `${prefix}:docs`,
    pattern: '<prefix>:docs:<client address, IPv6 as its /64>',
    type: 'string',
    slot: 'by address',
    expiry: '60 s after the first request of its minute',
    writer:
      'request/limit/minute-bucket.ts with each request for the API reference, until its limit is passed',
    count: 'one per client address that read the reference within a minute; none per API key',
    bytesEach: 120,
  },
  limits: {
    name: (prefix: string) => `${prefix}:limits`,
    pattern: '<prefix>:limits:<key id>',
    type: 'string',
    slot: 'by key id',
    expiry: '60 s after the first request of its minute',
    writer: 'request/limit/minute-bucket.ts with each request for `limitsPath`, until its limit is passed',
    count: 'one per API key that read its limits within a minute',
    bytesEach: 120,
  },
  directoryRecord: {
    name: (prefix: string, keyId: string) => `${prefix}:{${keyId}}:key`,
    pattern: '<prefix>:{<key id>}:key',
    type: 'hash',
    slot: 'by key id',
    expiry: 'none: it is the truth about a key',
    writer: 'keys/directory/store/change-record.lua with each change of a key of the directory',
    count: 'one per API key of the directory',
    // 500 with one secret and a name; each further secret takes 120.
    bytesEach: 3_000,
  },
  directoryRemoved: {
    name: (prefix: string, keyId: string) => `${prefix}:{${keyId}}:removed`,
    pattern: '<prefix>:{<key id>}:removed',
    type: 'hash',
    slot: 'by key id',
    expiry: 'a day after a key with this id was removed',
    writer: 'keys/directory/store/change-record.lua with each key of the directory that is removed',
    count: 'one per id that was removed within a day',
    // With 20 removals; each takes about 25.
    bytesEach: 800,
  },
  directoryDigest: {
    name: (prefix: string, digest: string) => `${prefix}:digest:${digest}`,
    pattern: '<prefix>:digest:<SHA-256 of a secret>',
    type: 'string',
    slot: 'by digest',
    expiry: 'none: it is removed with the secret',
    writer: 'keys/directory/store/redis-directory-store.ts with each change of a key of the directory',
    count: 'one per secret of the directory',
    bytesEach: 250,
  },
  directoryIds: {
    name: (prefix: string) => `${prefix}:directory:ids`,
    pattern: '<prefix>:directory:ids',
    type: 'zset',
    slot: 'its own',
    expiry: 'none: its entries are removed with the keys',
    writer: 'keys/directory/store/redis-directory-store.ts with each key that is created or removed',
    count: 'one, with an entry for each API key of the directory: about 130 octets each',
    bytesEach: 140_000_000,
  },
  directoryOnce: {
    name: (prefix: string, name: string) => `${prefix}:directory:once:${name}`,
    pattern: '<prefix>:directory:once:<name>',
    type: 'string',
    slot: 'by name',
    expiry: 'what its writer states',
    writer: 'keys/directory/store/redis-directory-store.ts for each change that names an Idempotency-Key',
    count: 'one per Idempotency-Key within that time',
    bytesEach: 1_000,
  },
  processes: {
    /** The hash tag keeps all, and the next, in one slot: they are read together. */
    name: (prefix: string, id: string) => `${prefix}:fleet:{processes}:state:${id}`,
    pattern: '<prefix>:fleet:{processes}:state:<process id>',
    type: 'string',
    slot: 'its own',
    expiry: '5 s after the process last wrote it',
    writer: 'fleet/presence.ts, once a second from each process',
    count: 'one per process; none per API key',
    // With one target; 130 for each further one.
    bytesEach: 1_600,
  },
  processesSeen: {
    name: (prefix: string) => `${prefix}:fleet:{processes}:seen`,
    pattern: '<prefix>:fleet:{processes}:seen',
    type: 'zset',
    slot: 'with the last',
    expiry: '5 s after a process last wrote it',
    writer: 'fleet/note-seen.lua, once a second from each process',
    count: 'one, with an entry for each of up to 500 processes; none per API key',
    bytesEach: 60_000,
  },
  changes: {
    /** The hash tag keeps it in one slot with the next. */
    name: (prefix: string) => `${prefix}:fleet:{changes}`,
    pattern: '<prefix>:fleet:{changes}',
    type: 'stream',
    slot: 'its own',
    expiry: '90 days after the last change',
    writer:
      'fleet/list-store.ts with each change of a key, and with each reload of the configuration, valid or not, from each process',
    count: 'one, with the last 10,000 changes; none per API key',
    // 250 for a reload, 400 for most changes of keys; up to 1,500 for a reload that failed, and 6,000 for a change of everything.
    bytesEach: 60_000_000,
  },
  changesReports: {
    name: (prefix: string) => `${prefix}:fleet:{changes}:reports`,
    pattern: '<prefix>:fleet:{changes}:reports',
    type: 'hash',
    slot: 'with the last',
    expiry: '90 days after the last change',
    writer: 'fleet/list-reports.lua, as the last and once more by each process that reports the same',
    count:
      'one, with two fields for each change at most, and three while it is being added; none per API key',
    // 16 more for each process that reported a change.
    bytesEach: 4_000_000,
  },
  events: {
    name: (prefix: string) => `${prefix}:fleet:{events}`,
    pattern: '<prefix>:fleet:{events}',
    type: 'stream',
    slot: 'its own',
    expiry: '7 days after the last event',
    writer: 'fleet/list-store.ts with each event, at most 16 a minute of one kind and process and 20 at once',
    count: 'one, with the last 2,000 events; none per API key',
    bytesEach: 1_500_000,
  },
  eventsReports: {
    name: (prefix: string) => `${prefix}:fleet:{events}:reports`,
    pattern: '<prefix>:fleet:{events}:reports',
    type: 'hash',
    slot: 'with the last',
    expiry: '7 days after the last event',
    writer: 'fleet/list-reports.lua, as the last and once more by each process that reports the same',
    count: 'one, with two fields for each event at most, and three while it is being added; none per API key',
    bytesEach: 800_000,
  },
  probe: {
    name: (prefix: string) => `${prefix}:probe`,
    pattern: '<prefix>:probe',
    type: 'string',
    slot: 'its own; in a Redis Cluster one on each server, with a number behind it',
    expiry: '1 s after it was written',
    writer: 'request/limit/store/store-watch.ts, once a second from each process',
    count: 'one',
    bytesEach: 100,
  },
} as const satisfies Record<string, RedisKeyKind>;

export interface RedisKeyKind {
  /** The key, or what stands before the rate limiter library's own `:<client address>` or `:<key id>`. */
  readonly name: (prefix: string, id: string) => string;
  readonly pattern: string;
  readonly type: 'hash' | 'stream' | 'string' | 'zset';
  /** What decides on the slot of a Redis Cluster. */
  readonly slot: string;
  readonly expiry: string;
  /** Who writes it, and when. */
  readonly writer: string;
  /** How many there are. */
  readonly count: string;
  /** `MEMORY USAGE` at most, octets, with names of 20 characters. */
  readonly bytesEach: number;
}
