import type { RedisKeyKind } from '../../redis/redis-keys.ts';

/** The keys of the bucket for reports of leaked secrets in Redis. */
export const leakReportKeys = {
  leaks: {
    name: (prefix: string) => `${prefix}:leaks`,
    pattern: '<prefix>:leaks:<client address, IPv6 as its /64>',
    type: 'string',
    bytesMax: 120,
    expires: '60 s after the first counted request.',
    writtenBy:
      '`request/limit/minute-bucket.ts`, on each request for `leaksPath`, until the limit is exceeded.',
    howMany: 'One per client address with counted requests within a minute.',
  },
} as const satisfies Readonly<Record<string, RedisKeyKind>>;
