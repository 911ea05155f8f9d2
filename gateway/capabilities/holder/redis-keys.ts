import type { RedisKeyKind } from '../../redis/redis-keys.ts';

/** The keys of links and of the buckets for reads of key holders in Redis. */
export const holderKeys = {
  limits: {
    name: (prefix: string) => `${prefix}:limits`,
    pattern: '<prefix>:limits:<key id>',
    type: 'string',
    bytesMax: 120,
    expires: '60 s after the first counted request.',
    writtenBy:
      '`request/limit/minute-bucket.ts`, on each request with a valid secret for the data of its key (`limitsPath`), until the limit is exceeded.',
    howMany: 'One per API key with counted requests within a minute.',
  },
  linkReads: {
    name: (prefix: string) => `${prefix}:limits-by-link`,
    pattern: '<prefix>:limits-by-link:<16 digits of the digest of a link>',
    type: 'string',
    bytesMax: 120,
    expires: '60 s after the first counted request.',
    writtenBy:
      '`request/limit/minute-bucket.ts`, on each request with a valid link, until the limit is exceeded.',
    howMany: 'One per link that was used within a minute.',
  },
  links: {
    name: (prefix: string, keyId: string) => `${prefix}:{${keyId}}:links`,
    pattern: '<prefix>:{<key id>}:links',
    type: 'hash',
    bytesMax: 12_000,
    bytesFor: 'for ten links of a key with 16 secrets in a file',
    expires: 'At the end of the link that was to end last.',
    writtenBy: '`capabilities/holder/links/add-link.lua`, when an operator makes a link.',
    howMany: 'One per API key with a link.',
    size: 'A link of a key in the directory takes 250 octets.',
  },
} as const satisfies Readonly<Record<string, RedisKeyKind>>;
