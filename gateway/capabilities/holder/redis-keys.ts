import type { RedisKeyKind } from '../../redis/redis-keys.ts';

/** The keys of links and of the buckets for reads of key holders in Redis. The README describes them. */
export const holderKeys = {
  limits: {
    name: (prefix: string) => `${prefix}:limits`,
    pattern: '<prefix>:limits:<key id>',
    type: 'string',
    bytesMax: 120,
  },
  linkReads: {
    name: (prefix: string) => `${prefix}:limits-by-link`,
    pattern: '<prefix>:limits-by-link:<16 digits of the digest of a link>',
    type: 'string',
    bytesMax: 120,
  },
  links: {
    name: (prefix: string, keyId: string) => `${prefix}:{${keyId}}:links`,
    pattern: '<prefix>:{<key id>}:links',
    type: 'hash',
    bytesMax: 12_000,
  },
} as const satisfies Readonly<Record<string, RedisKeyKind>>;
