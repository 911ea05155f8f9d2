import { newEventId } from '../../../gateway/capabilities/webhooks/queue/delivery-queue.ts';
import { createRedisQueue } from '../../../gateway/capabilities/webhooks/queue/redis-queue.ts';
import { webhooksKeys } from '../../../gateway/capabilities/webhooks/redis-keys.ts';
import type { CapabilityCases } from '../../support/capability-cases.ts';

const receiver = { url: 'https://one.example.com/hook', secretFile: 'one-hook', events: ['quota.threshold'] };
const notify = (members: object) => ({ notify: [{ ...receiver, ...members }] });
const inQueue = (use: string) => `capabilities/webhooks/queue/${use}`;

export const cases: CapabilityCases = {
  defaults: { notify: [] },
  effective: {
    notify: [{ id: '0123456789ab', url: 'http://127.0.0.1:1', secrets: [], events: [], at: [] }],
  },
  secretSetting: {
    name: 'notify',
    settings: {
      notify: [{ url: 'https://hooks.example.com/', secretFile: 'notify-secret', events: ['key.banned'] }],
    },
    shownAsStated: ['keys', 'plans', 'operations'].map((member) => `notify.[].${member}`),
    url: (secret) => `https://hooks.example.com/${secret}?token=${secret}`,
    secretFile: `whsec_${'a'.repeat(40)}`,
  },
  files: { 'one-hook': `whsec_${'a'.repeat(40)}`, 'other-hook': `whsec_${'b'.repeat(40)}` },
  settings: {
    'notify.[].url': [notify({}), notify({ url: 'https://one.example.com/other' })],
    'notify.[].secretFile': [notify({}), notify({ secretFile: 'other-hook' })],
    'notify.[].events': [notify({}), notify({ events: ['quota.threshold', 'key.banned'] })],
    'notify.[].at': [notify({}), notify({ at: [50] })],
    'notify.[].keys': [notify({}), notify({ keys: ['acme'] })],
    'notify.[].operations': [
      notify({ events: ['operation.sunset'] }),
      notify({ events: ['operation.sunset'], operations: ['listPets'] }),
    ],
    'notify.[].plans': [notify({}), notify({ plans: ['free'] })],
  },
  // The gateway has no receiver. `deliveries-browser.test.ts` shows deliveries.
  pages: [['/deliveries', ['.empty pre'], '/deliveries']],
  needRedis: [
    [
      'a receiver of webhooks',
      notify({}),
      'notify',
      '`notify` needs `redis`: without Redis, a restart would lose the events that wait for their delivery; add `redis`, or remove `notify`',
    ],
  ],
  // All keys of the queue have the same hash tag.
  severalKeys: [
    'redis-queue.ts: numberOfKeys: number',
    ...['add-event.lua: KEYS[5]', 'add-event.lua: KEYS[index]', 'claim-due.lua: KEYS[5]'].map(inScripts),
    ...['leave-receivers.lua: KEYS[5]', 'note-receivers.lua: KEYS[5]'].map(inScripts),
    ...['2', '3', '4', 'i'].map((key) => inScripts(`queue-state.lua: KEYS[${key}]`)),
  ].map(inQueue),
  redisKeys: {
    kinds: webhooksKeys,
    config: () => ({
      settings: {
        notify: [
          {
            url: 'http://127.0.0.1:1',
            secretFile: 'hook',
            events: ['key.expiring', 'operation.sunset', 'plan.changed'],
          },
        ],
      },
      files: { hook: `whsec_${Buffer.alloc(32).toString('base64')}` },
    }),
    async fill({ connection, bounds, keyId }) {
      const queue = createRedisQueue({ redis: connection, processId: 'ab12cd34ef56', bounds });
      const receivers = ['hook', 'another'].map((id) => ({ id, url: `https://${id}.example.com` }));
      await queue.noteReceivers(receivers);
      const about = { type: 'key.banned', body: '{}', atMs: Date.now(), subject: `key ${keyId}` };
      const identity = { what: ['ban', keyId], mergedWithinMs: 600_000, isOnce: true };
      await queue.add({ event: { id: newEventId(), ...about }, identity, receivers: ['hook'] });
      const claims = await queue.claim([{ receiver: 'hook', deliveriesMax: 1 }]);
      for (const delivery of claims?.deliveries ?? [])
        await queue.settle(delivery, { kind: 'delivered', status: 204 });
      const other = { ...identity, what: ['ban', 'another'] };
      await queue.add({ event: { id: newEventId(), ...about }, identity: other, receivers: ['another'] });
      await queue.close();
    },
  },
};

function inScripts(use: string): string {
  return `scripts/${use}`;
}
