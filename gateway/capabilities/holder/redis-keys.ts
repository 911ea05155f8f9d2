import type { RedisKeyKind } from '../../redis/redis-keys.ts';

/** The keys of the bucket for reads of key holders in Redis. The README describes them. */
export const holderKeys = {
  limits: {
    name: (prefix: string) => `${prefix}:limits`,
    pattern: '<prefix>:limits:<key id>',
    type: 'string',
    bytesMax: 120,
  },
} as const satisfies Readonly<Record<string, RedisKeyKind>>;
