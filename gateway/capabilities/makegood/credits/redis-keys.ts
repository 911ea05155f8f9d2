import type { RedisKeyKind } from '../../../redis/redis-keys.ts';

/** The keys of credits in Redis. The README describes them. */
export const creditKeys = {
  credits: {
    /** In the slot of the counts, so one script can write both keys. */
    name: (prefix: string, keyId: string) => `${prefix}:{${keyId}}:credits`,
    pattern: '<prefix>:{<key id>}:credits',
    type: 'hash',
    bytesMax: 80_000,
  },
} as const satisfies Readonly<Record<string, RedisKeyKind>>;
