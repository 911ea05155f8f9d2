/**
 * Every key that Tollgate keeps in Redis. Nothing else is written there, and nothing without an expiry: a test runs all
 * of it and holds what it finds against this table. `prefix` is `redis.prefix` of the configuration. What a kind takes
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
      'the end of the longest limited window, of the strikes, or `bans.max` after a ban ended or was lifted',
    writer:
      'limit/store/decide-quota.lua with each admitted request and each shared refusal; change-quota.lua',
    count: 'one per API key seen within its expiry',
    // 232 with a minute and a day: 232 MB for a million API keys.
    bytesEach: 400,
  },
  address: {
    name: (prefix: string) => `${prefix}:address`,
    pattern: '<prefix>:address:<client address, IPv6 as its /64>',
    type: 'string',
    slot: 'by address',
    expiry: '60 s after the first request of its minute',
    writer: 'limit/minute-bucket.ts with each request without a valid key, until its limit is passed',
    count: 'one per client address that sent such a request within a minute; none per API key',
    bytesEach: 120,
  },
  preflight: {
    name: (prefix: string) => `${prefix}:preflight`,
    pattern: '<prefix>:preflight:<client address, IPv6 as its /64>',
    type: 'string',
    slot: 'by address',
    expiry: '60 s after the first preflight of its minute',
    writer: 'limit/minute-bucket.ts with each CORS preflight, until its limit is passed',
    count: 'one per client address that sent a preflight within a minute; none per API key',
    bytesEach: 120,
  },
  docs: {
    name: (prefix: string) => `${prefix}:docs`,
    pattern: '<prefix>:docs:<client address, IPv6 as its /64>',
    type: 'string',
    slot: 'by address',
    expiry: '60 s after the first request of its minute',
    writer: 'limit/minute-bucket.ts with each request for the API reference, until its limit is passed',
    count: 'one per client address that read the reference within a minute; none per API key',
    bytesEach: 120,
  },
  limits: {
    name: (prefix: string) => `${prefix}:limits`,
    pattern: '<prefix>:limits:<key id>',
    type: 'string',
    slot: 'by key id',
    expiry: '60 s after the first request of its minute',
    writer: 'limit/minute-bucket.ts with each request for `limitsPath`, until its limit is passed',
    count: 'one per API key that read its limits within a minute',
    bytesEach: 120,
  },
  probe: {
    name: (prefix: string) => `${prefix}:probe`,
    pattern: '<prefix>:probe',
    type: 'string',
    slot: 'its own',
    expiry: '1 s after it was written',
    writer: 'limit/store/store-watch.ts, once a second from each process',
    count: 'one',
    bytesEach: 100,
  },
} as const satisfies Record<string, RedisKeyKind>;

export interface RedisKeyKind {
  /** The key, or what stands before the rate limiter library's own `:<client address>` or `:<key id>`. */
  readonly name: (prefix: string, id: string) => string;
  readonly pattern: string;
  readonly type: 'hash' | 'string';
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
