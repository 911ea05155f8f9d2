import type { RedisKeyKind } from '../../redis/redis-keys.ts';

/** The keys of the bucket for reports of leaked secrets in Redis. The README describes them. */
export const leakReportKeys = {
  leaks: {
    name: (prefix: string) => `${prefix}:leaks`,
    pattern: '<prefix>:leaks:<client address, IPv6 as its /64>',
    type: 'string',
    bytesMax: 120,
  },
} as const satisfies Readonly<Record<string, RedisKeyKind>>;
