import {
  type DeliveryQueue,
  type EventReport,
  newEventId,
  type WebhookEvent,
} from '../../../../gateway/capabilities/webhooks/queue/delivery-queue.ts';
import { createRedisQueue } from '../../../../gateway/capabilities/webhooks/queue/redis-queue.ts';
import type { RedisCommands, RedisConnection } from '../../../../gateway/redis/redis-connection.ts';
import { connectRedis, type RedisPlace, removeAll } from '../../../support/connect-redis.ts';
import { freshPrefix, redisUrl } from '../../../support/redis.ts';
import { tunedBounds } from '../../../support/tuned-bounds.ts';
import { patientStore } from '../../../support/tuning.ts';

export type QueueTuning = Parameters<typeof tunedBounds>[0];

/** A queue under test. Each process has its own adapter. */
export interface QueueSubject {
  open(processId?: string): DeliveryQueue;
  close(): Promise<void>;
}

/** Claims that last, so that a pause of the machine ends no claim. */
export const longClaims = { webhookClaimMs: 600_000, webhookSenderMs: 600_000 } as const;

/** @param options.place by default the Redis of this test run */
export async function redisSubject(
  tuning: QueueTuning = {},
  place: RedisPlace = { url: redisUrl() },
): Promise<QueueSubject & { readonly redis: RedisConnection }> {
  const bounds = tunedBounds({ ...patientStore, ...longClaims, webhookPollMs: 20, ...tuning });
  const redis = await connectRedis({ prefix: freshPrefix(), place, bounds });
  const queues: DeliveryQueue[] = [];
  return {
    redis,
    open(processId = 'p1') {
      const queue = createRedisQueue({ redis, processId, bounds });
      queues.push(queue);
      return queue;
    },
    async close() {
      await Promise.all(queues.map((queue) => queue.close()));
      await removeAll(redis);
    },
  };
}

/** A connection on which the replies of the first calls of a script are lost, or on which these calls are not sent. */
export function failingCalls(
  redis: RedisConnection,
  script: string,
  { lose, times }: { readonly lose: 'call' | 'reply'; readonly times: number },
): RedisConnection {
  let left = times;
  const commands = new Proxy(redis.commands, {
    get(client, name) {
      const member: unknown = Reflect.get(client, name);
      if (typeof member !== 'function' || name !== script) return member;
      return async (...args: unknown[]) => {
        left -= 1;
        const reply = left < 0 || lose === 'reply' ? await member.apply(client, args) : undefined;
        if (left >= 0) throw new Error('Connection is closed.');
        return reply;
      };
    },
  }) as RedisCommands;
  return { ...redis, commands };
}

/** A report about a new event that no other report is merged with. */
export function reportOf(
  receivers: readonly string[],
  {
    identity = { what: [], mergedWithinMs: 0, isOnce: false },
    ...event
  }: Partial<WebhookEvent & Pick<EventReport, 'identity'>> = {},
): EventReport {
  const id = newEventId();
  const filled = { id, type: 'target.down', body: `{"id":"${id}"}`, atMs: Date.now(), subject: '', ...event };
  return { event: filled, identity, receivers };
}

/** Reports of all processes about the thing `name` are one event. */
export function onceReportOf(receivers: readonly string[], name: string, event: Partial<WebhookEvent> = {}) {
  const identity = { what: ['once', name], mergedWithinMs: 600_000, isOnce: true };
  return reportOf(receivers, { identity, ...event });
}

export function receiverOf(id: string, url = `https://${id}.example.com/hook?token=secret`) {
  return { id, url, secrets: [`whsec_${Buffer.alloc(32, id).toString('base64')}`] };
}
