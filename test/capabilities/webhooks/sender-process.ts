/** A process with one sender of webhooks. It sends its process id in the fleet to its parent process, and runs until it is killed. */
import { randomBytes } from 'node:crypto';
import { pino } from 'pino';
import { createRedisQueue } from '../../../gateway/capabilities/webhooks/queue/redis-queue.ts';
import { createSender } from '../../../gateway/capabilities/webhooks/sender/sender.ts';
import type { Receiver } from '../../../gateway/capabilities/webhooks/settings/receivers.ts';
import type { Bounds } from '../../../gateway/shared/timeouts-and-sizes.ts';
import { connectRedis, type RedisPlace } from '../../support/connect-redis.ts';
import { tunedBounds } from '../../support/tuned-bounds.ts';

export interface SenderOptions {
  readonly place: RedisPlace;
  readonly prefix: string;
  readonly receivers: readonly Pick<Receiver, 'id' | 'url' | 'secrets'>[];
  readonly tuning: Partial<Omit<Bounds, 'windowsMs'>>;
}

const { place, prefix, receivers, tuning }: SenderOptions = JSON.parse(process.argv[2] ?? '');
const bounds = tunedBounds(tuning);
const redis = await connectRedis({ prefix, place, bounds });
const processId = randomBytes(6).toString('hex');
const queue = createRedisQueue({ redis, processId, bounds });
const sender = createSender({ queue, nowMs: Date.now, log: pino({ level: 'silent' }), bounds });
sender.start(receivers);
process.send?.(processId);
process.once('disconnect', () => process.exit());
