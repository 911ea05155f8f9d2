import type { RedisKeyKind } from '../../../redis/redis-keys.ts';

/** The keys of guards in Redis. The README describes them. */
export const guardKeys = {
  guard: {
    /** The identity of the guarded edit is a hash tag, so that the hashes of several plans are in distant slots of a Cluster. */
    name: (prefix: string, identity: string) => `${prefix}:guard:{${identity}}`,
    pattern: '<prefix>:guard:{<identity of a guarded edit>}',
    type: 'hash',
    bytesMax: 100_000,
  },
  activeKeys: {
    name: (prefix: string, plan: string) => `${prefix}:active-keys:${plan}`,
    pattern: '<prefix>:active-keys:<plan>',
    type: 'zset',
    bytesMax: 1_000,
  },
} as const satisfies Readonly<Record<string, RedisKeyKind>>;
