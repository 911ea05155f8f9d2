import { once } from 'node:events';
import type { Redis } from 'ioredis';
import type { WindowsMs } from '../../gateway/limit/calendar-windows.ts';
import type { QuotaStore } from '../../gateway/limit/store/quota-store.ts';
import { createRedisClient } from '../../gateway/limit/store/redis-client.ts';
import { freshPrefix, redisUrl } from '../support/redis.ts';
import { tunedBounds } from '../support/tuned-bounds.ts';
import { patientStore } from '../support/tuning.ts';
import type { Subject } from './quota-store-guarantees.ts';

/** How a store on Redis is made; the broken limiters have the same shape. */
export type MakeStore = (deps: {
  client: Redis;
  prefix: string;
  windowsMs: WindowsMs;
  /** Generous: what is tested here is what Redis decides, not how fast this machine is. */
  deadlineMs: number;
  patientDeadlineMs: number;
  /** The clock of the process that the store runs in. */
  nowMs: () => number;
}) => QuotaStore;

/** Stores on the Redis of this test run, each with a connection of its own. */
export async function redisSubject(make: MakeStore): Promise<RedisSubject> {
  const prefix = freshPrefix();
  const clients: Redis[] = [];
  const own = await connect();

  return {
    prefix,
    client: own,
    async open(windowsMs, skewMs = 0) {
      return make({
        client: await connect(),
        prefix,
        windowsMs,
        deadlineMs: 20_000,
        patientDeadlineMs: 20_000,
        nowMs: () => Date.now() + skewMs,
      });
    },
    async nowMs() {
      const [seconds, micros] = await own.time();
      return Number(seconds) * 1000 + Math.floor(Number(micros) / 1000);
    },
    async close() {
      const keys = await own.keys(`${prefix}:*`);
      if (keys.length > 0) await own.del(keys);
      for (const client of clients) client.disconnect();
    },
  };

  async function connect(): Promise<Redis> {
    const client = createRedisClient(redisUrl(), tunedBounds(patientStore));
    client.on('error', () => {});
    clients.push(client);
    if (client.status !== 'ready') await once(client, 'ready');
    return client;
  }
}

export interface RedisSubject extends Subject {
  readonly prefix: string;
  readonly client: Redis;
  /** Removes what the stores left behind. */
  close(): Promise<void>;
}
