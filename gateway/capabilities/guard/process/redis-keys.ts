import type { RedisKeyKind } from '../../../redis/redis-keys.ts';

/** The keys of guards in Redis. */
export const guardKeys = {
  guard: {
    /** The identity of the guarded edit is a hash tag, so that the hashes of several plans are in distant slots of a Cluster. */
    name: (prefix: string, identity: string) => `${prefix}:guard:{${identity}}`,
    pattern: '<prefix>:guard:{<identity of a guarded edit>}',
    type: 'hash',
    bytesMax: 100_000,
    bytesFor: 'for 64 keys that send requests in each ten seconds of the last ten minutes, and ten processes',
    expires: '30 days after a gateway with this guard in its configuration last reported.',
    writtenBy:
      '`capabilities/guard/process/decide-guard.lua`, run by each process once a second for each plan with a guard.',
    howMany:
      'At most one per plan with a guard, and one for each earlier edit of such a plan until it expires.',
    size: 'Each further process adds 110 octets.',
  },
  activeKeys: {
    name: (prefix: string, plan: string) => `${prefix}:active-keys:${plan}`,
    pattern: '<prefix>:active-keys:<plan>',
    type: 'zset',
    bytesMax: 1_000,
    expires: '24 hours after a key of the plan was last noted.',
    writtenBy:
      '`capabilities/guard/process/active-keys.ts`, in each process for up to ten keys of the plan in ten minutes.',
    howMany: 'At most one per plan with limits of its own.',
  },
} as const satisfies Readonly<Record<string, RedisKeyKind>>;
