import type { RedisKeyKind } from '../../../redis/redis-keys.ts';

/** The keys of credits in Redis. */
export const creditKeys = {
  credits: {
    /** In the slot of the counts, so one script can write both keys. */
    name: (prefix: string, keyId: string) => `${prefix}:{${keyId}}:credits`,
    pattern: '<prefix>:{<key id>}:credits',
    type: 'hash',
    bytesMax: 80_000,
    expires:
      '`usage.keepDays` plus two days after the day of the failed requests, and at the earliest after the end of their month.',
    writtenBy:
      '`capabilities/makegood/credits/give-back.lua` writes it when an operator gives failed units back.',
    howMany: 'One per API key that received a credit.',
    size: 'The maximum is reached if an upstream failed for two days and the plan has a trial; an hour with failed units takes at most 600 octets for each upstream, and at most 600 octets more for the trial.',
  },
} as const satisfies Readonly<Record<string, RedisKeyKind>>;
