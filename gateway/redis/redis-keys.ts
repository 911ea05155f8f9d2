/**
 * The keys that Tollgate writes to Redis. Capabilities have keys of their own, beside their code. [keys.md](./keys.md) states what writes
 * each key, when it expires, and how many there are. A test runs the gateway and compares the keys in Redis with this table. `prefix` is
 * `redis.prefix` of the configuration.
 */
export const redisKeys = {
  quota: {
    /** All data of an API key is in one slot of a Redis Cluster, by the hash tag in braces. */
    name: (prefix: string, keyId: string) => `${prefix}:{${keyId}}`,
    pattern: '<prefix>:{<key id>}',
    type: 'hash',
    bytesMax: 1_500,
  },
  usageDay: {
    name: (prefix: string, id: string) => `${prefix}:{${id}}:usage`,
    pattern: '<prefix>:{<key id>}:usage:<days since 1970>',
    type: 'hash',
    bytesMax: 16_384,
  },
  usageTotals: {
    name: (prefix: string, id: string) => `${prefix}:{${id}}:usage-totals`,
    pattern: '<prefix>:{<key id>}:usage-totals',
    type: 'hash',
    bytesMax: 8_192,
  },
  usageOperations: {
    name: (prefix: string) => `${prefix}:usage:operations`,
    pattern: '<prefix>:usage:operations:<days since 1970>',
    type: 'hash',
    bytesMax: 400_000,
  },
  usageActive: {
    name: (prefix: string) => `${prefix}:usage:active`,
    pattern: '<prefix>:usage:active',
    type: 'zset',
    bytesMax: 1_200_000,
  },
  address: {
    name: (prefix: string) => `${prefix}:address`,
    pattern: '<prefix>:address:<client address, IPv6 as its /64>',
    type: 'string',
    bytesMax: 120,
  },
  preflight: {
    name: (prefix: string) => `${prefix}:preflight`,
    pattern: '<prefix>:preflight:<client address, IPv6 as its /64>',
    type: 'string',
    bytesMax: 120,
  },
  docs: {
    name: (prefix: string) => `${prefix}:docs`,
    pattern: '<prefix>:docs:<client address, IPv6 as its /64>',
    type: 'string',
    bytesMax: 120,
  },
  leakedSecrets: {
    name: (prefix: string) => `${prefix}:leaked-secrets`,
    pattern: '<prefix>:leaked-secrets',
    type: 'hash',
    expires: false,
    bytesMax: 130_000_000,
  },
  directoryRecord: {
    name: (prefix: string, keyId: string) => `${prefix}:{${keyId}}:key`,
    pattern: '<prefix>:{<key id>}:key',
    type: 'hash',
    expires: false,
    bytesMax: 3_000,
  },
  directoryRemoved: {
    name: (prefix: string, keyId: string) => `${prefix}:{${keyId}}:removed`,
    pattern: '<prefix>:{<key id>}:removed',
    type: 'hash',
    bytesMax: 800,
  },
  directoryDigest: {
    name: (prefix: string, digest: string) => `${prefix}:digest:${digest}`,
    pattern: '<prefix>:digest:<SHA-256 of a secret>',
    type: 'string',
    expires: false,
    bytesMax: 250,
  },
  directoryIds: {
    name: (prefix: string) => `${prefix}:directory:ids`,
    pattern: '<prefix>:directory:ids',
    type: 'zset',
    expires: false,
    bytesMax: 140_000_000,
  },
  directoryForm: {
    /** A hash tag, so that the copies are in distant slots of a Cluster. */
    name: (prefix: string, copy: string) => `${prefix}:directory:form:{${copy}}`,
    pattern: '<prefix>:directory:form:{<0 to 3>}',
    type: 'string',
    expires: false,
    bytesMax: 120,
  },
  directoryOnce: {
    name: (prefix: string, name: string) => `${prefix}:directory:once:${name}`,
    pattern: '<prefix>:directory:once:<name>',
    type: 'string',
    bytesMax: 1_000,
  },
  processes: {
    /** In one slot of a Cluster, so one MGET can read all states. */
    name: (prefix: string, id: string) => `${prefix}:fleet:{processes}:state:${id}`,
    pattern: '<prefix>:fleet:{processes}:state:<process id>',
    type: 'string',
    bytesMax: 1_600,
  },
  processesSeen: {
    name: (prefix: string) => `${prefix}:fleet:{processes}:seen`,
    pattern: '<prefix>:fleet:{processes}:seen',
    type: 'zset',
    bytesMax: 240_000,
  },
  flush: {
    name: (prefix: string) => `${prefix}:fleet:{processes}:flush`,
    pattern: '<prefix>:fleet:{processes}:flush',
    type: 'string',
    bytesMax: 120,
  },
  healthFailing: {
    /** All keys of health checks are in one slot, so a script can write several keys. */
    name: (prefix: string) => `${prefix}:fleet:{health}:failing`,
    pattern: '<prefix>:fleet:{health}:failing',
    type: 'hash',
    bytesMax: 600_000,
  },
  healthCheckers: {
    name: (prefix: string, id: string) => `${prefix}:fleet:{health}:checkers:${id}`,
    pattern: '<prefix>:fleet:{health}:checkers:<digest of the check>',
    type: 'string',
    bytesMax: 160,
  },
  changes: {
    /** In the same slot as `changesReports`, so one script can write both. */
    name: (prefix: string) => `${prefix}:fleet:{changes}`,
    pattern: '<prefix>:fleet:{changes}',
    type: 'stream',
    bytesMax: 120_000_000,
  },
  changesReports: {
    name: (prefix: string) => `${prefix}:fleet:{changes}:reports`,
    pattern: '<prefix>:fleet:{changes}:reports',
    type: 'hash',
    bytesMax: 4_000_000,
  },
  events: {
    name: (prefix: string) => `${prefix}:fleet:{events}`,
    pattern: '<prefix>:fleet:{events}',
    type: 'stream',
    bytesMax: 1_500_000,
  },
  eventsReports: {
    name: (prefix: string) => `${prefix}:fleet:{events}:reports`,
    pattern: '<prefix>:fleet:{events}:reports',
    type: 'hash',
    bytesMax: 800_000,
  },
  dataMark: {
    name: (prefix: string) => `${prefix}:data-mark`,
    pattern: '<prefix>:data-mark',
    type: 'string',
    expires: false,
    bytesMax: 120,
  },
  probe: {
    name: (prefix: string) => `${prefix}:probe`,
    pattern: '<prefix>:probe',
    type: 'string',
    bytesMax: 100,
  },
} as const satisfies Record<string, RedisKeyKind>;

export interface RedisKeyKind {
  /** For keys of rate-limiter-flexible: the part before `:<client address>` or `:<key id>`. */
  readonly name: (prefix: string, id: string) => string;
  readonly pattern: string;
  readonly type: 'hash' | 'stream' | 'string' | 'zset';
  /** False: never. */
  readonly expires?: false;
  /** In octets by `MEMORY USAGE`, with names of 20 characters. */
  readonly bytesMax: number;
}
