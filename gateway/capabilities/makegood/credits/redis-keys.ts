import type { RedisKeyKind } from '../../../redis/redis-keys.ts';

/** The keys of credits in Redis. */
export const creditKeys = {
  credits: {
    /** In the slot of the counts, so one script can write both keys. */
    name: (prefix: string, keyId: string) => `${prefix}:{${keyId}}:credits`,
    pattern: '<prefix>:{<key id>}:credits',
    type: 'hash',
    bytesMax: 80_000,
    bytesFor: 'if one upstream failed for two days and the plan has a trial',
    expires: '`usage.keepDays` plus two days after the last day of the periods of its credits.',
    writtenBy: '`capabilities/makegood/credits/give-back.lua`, when an operator gives failed units back.',
    howMany: 'At most one per API key.',
    size: 'An hour with failed units takes at most 600 octets for each upstream, and at most 600 octets more for the trial.',
  },
} as const satisfies Readonly<Record<string, RedisKeyKind>>;
