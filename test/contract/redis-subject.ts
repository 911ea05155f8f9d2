import { once } from 'node:events';
import type { Redis } from 'ioredis';
import type { WindowsMs } from '../../gateway/limit/calendar-windows.ts';
import type { QuotaStore } from '../../gateway/limit/store/quota-store.ts';
import { createRedisClient } from '../../gateway/redis/redis-client.ts';
import { freshPrefix, redisUrl } from '../support/redis.ts';
import { tunedBounds } from '../support/tuned-bounds.ts';
import { patientStore } from '../support/tuning.ts';
import type { Subject } from './quota-store-guarantees.ts';

/** Makes a store on Redis; the broken limiters have the same signature. */
export type MakeStore = (deps: {
  client: Redis;
  prefix: string;
  windowsMs: WindowsMs;
  /** Long: these tests are about what Redis decides, not about the speed of this machine. */
  deadlineMs: number;
  patientDeadlineMs: number;
  /** The clock of the process, not of Redis. */
  nowMs: () => number;
}) => QuotaStore;

/** Stores on the Redis of this test run, each with its own connection. */
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
  /** Deletes the stores' keys in Redis and closes all connections. */
  close(): Promise<void>;
}
