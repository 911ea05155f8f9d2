import type { RedisKeyKind } from '../../redis/redis-keys.ts';

/** The keys of webhooks in Redis. The README describes them. */
export const webhooksKeys = {
  deliveries: {
    /** All keys of the queue are in one slot of a Cluster, so one script can write them. */
    name: (prefix: string) => `${prefix}:notify:{deliveries}`,
    pattern: '<prefix>:notify:{deliveries}',
    type: 'hash',
    bytesMax: 20_000_000,
  },
  deliveriesOrder: {
    name: (prefix: string) => `${prefix}:notify:{deliveries}:order`,
    pattern: '<prefix>:notify:{deliveries}:order',
    type: 'zset',
    bytesMax: 1_500_000,
  },
  deliveriesEnded: {
    name: (prefix: string) => `${prefix}:notify:{deliveries}:ended`,
    pattern: '<prefix>:notify:{deliveries}:ended',
    type: 'zset',
    bytesMax: 1_500_000,
  },
  deliveriesDue: {
    name: (prefix: string) => `${prefix}:notify:{deliveries}:due`,
    pattern: '<prefix>:notify:{deliveries}:due',
    type: 'zset',
    bytesMax: 5_000_000,
  },
  deliveriesReceivers: {
    name: (prefix: string) => `${prefix}:notify:{deliveries}:receivers`,
    pattern: '<prefix>:notify:{deliveries}:receivers',
    type: 'hash',
    bytesMax: 20_000,
  },
  deliveriesSame: {
    name: (prefix: string, digest: string) => `${prefix}:notify:{deliveries}:same:${digest}`,
    pattern: '<prefix>:notify:{deliveries}:same:<digest of the identity of an event>',
    type: 'string',
    bytesMax: 40_000,
  },
  noticeScans: {
    name: (prefix: string) => `${prefix}:notify:{scans}`,
    pattern: '<prefix>:notify:{scans}',
    type: 'hash',
    bytesMax: 300,
  },
  noticeScanLeader: {
    name: (prefix: string) => `${prefix}:notify:{scans}:leader`,
    pattern: '<prefix>:notify:{scans}:leader',
    type: 'string',
    bytesMax: 120,
  },
} as const satisfies Readonly<Record<string, RedisKeyKind>>;
