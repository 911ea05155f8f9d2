import type { RedisKeyKind } from '../../redis/redis-keys.ts';

/** The keys of webhooks in Redis. */
export const webhooksKeys = {
  deliveries: {
    /** All keys of the queue are in one slot of a Cluster, so one script can write them. */
    name: (prefix: string) => `${prefix}:notify:{deliveries}`,
    pattern: '<prefix>:notify:{deliveries}',
    type: 'hash',
    bytesMax: 20_000_000,
    bytesFor: 'for three receivers and bodies of 400 octets',
    expires: '30 days after the last change.',
    writtenBy:
      'The scripts of `capabilities/webhooks/queue/scripts/`, when an event is added, when a delivery is claimed or sent again, and when an attempt ends.',
    howMany: 'One, with up to 10,000 webhook events, their bodies and their deliveries.',
    size: 'Each further receiver adds up to 3,200,000 octets. A body has at most 20,000 octets.',
  },
  deliveriesOrder: {
    name: (prefix: string) => `${prefix}:notify:{deliveries}:order`,
    pattern: '<prefix>:notify:{deliveries}:order',
    type: 'zset',
    bytesMax: 1_500_000,
    expires: '30 days after the last change.',
    writtenBy: '`capabilities/webhooks/queue/scripts/add-event.lua`, on each new event.',
    howMany: 'One, with an entry for each event.',
  },
  deliveriesEnded: {
    name: (prefix: string) => `${prefix}:notify:{deliveries}:ended`,
    pattern: '<prefix>:notify:{deliveries}:ended',
    type: 'zset',
    bytesMax: 1_500_000,
    expires: '30 days after the last change.',
    writtenBy: 'The same scripts as for the hash, when the last delivery of an event ends.',
    howMany: 'One, with an entry for each event that waits for no delivery.',
  },
  deliveriesDue: {
    name: (prefix: string) => `${prefix}:notify:{deliveries}:due`,
    pattern: '<prefix>:notify:{deliveries}:due',
    type: 'zset',
    bytesMax: 5_000_000,
    bytesFor: 'for 10,000 events that wait for three receivers',
    expires: '30 days after the last change.',
    writtenBy: 'The same scripts as for the hash, when the time of the next attempt of a delivery changes.',
    howMany: 'One, with an entry for each delivery that has a time for its next attempt.',
  },
  deliveriesReceivers: {
    name: (prefix: string) => `${prefix}:notify:{deliveries}:receivers`,
    pattern: '<prefix>:notify:{deliveries}:receivers',
    type: 'hash',
    bytesMax: 20_000,
    bytesFor: 'for 100 receivers',
    expires: '30 days after the last change.',
    writtenBy:
      '`capabilities/webhooks/queue/scripts/claim-due.lua`, about every five seconds for each receiver, and `note-receivers.lua`, once a minute by each gateway.',
    howMany: 'One, with a field for each receiver.',
  },
  deliveriesSame: {
    name: (prefix: string, digest: string) => `${prefix}:notify:{deliveries}:same:${digest}`,
    pattern: '<prefix>:notify:{deliveries}:same:<digest of the identity of an event>',
    type: 'string',
    bytesMax: 50_000,
    bytesFor: 'if 500 processes have reported the event four times',
    expires:
      'A day after the last new event with this identity, or after the end of the ban or window that it is about; earlier if no process will report the event again.',
    writtenBy:
      '`capabilities/webhooks/queue/scripts/add-event.lua`, on each report that several processes may send.',
    howMany: 'One per reported identity that has not expired.',
    size: 'One report takes 200 octets.',
  },
  noticeScans: {
    name: (prefix: string) => `${prefix}:notify:{scans}`,
    pattern: '<prefix>:notify:{scans}',
    type: 'hash',
    bytesMax: 300,
    expires: '400 days after the last scan.',
    writtenBy:
      '`capabilities/webhooks/schedule/scan-state.ts`, after each complete scan for events that become due with the time.',
    howMany: 'One, with the end of the last scan for each of three types of events.',
  },
  noticeScanLeader: {
    name: (prefix: string) => `${prefix}:notify:{scans}:leader`,
    pattern: '<prefix>:notify:{scans}:leader',
    type: 'string',
    bytesMax: 120,
    expires: '30 s after the next scan is due; during a scan, 30 s after the last write.',
    writtenBy: '`capabilities/webhooks/schedule/scan-state.ts`, before, during and after a scan.',
    howMany: 'One.',
  },
} as const satisfies Readonly<Record<string, RedisKeyKind>>;
