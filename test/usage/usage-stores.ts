import { once } from 'node:events';
import type { Redis } from 'ioredis';
import { createRedisClient } from '../../gateway/redis/redis-client.ts';
import { createMemoryUsageStore } from '../../gateway/usage/store/memory-usage-store.ts';
import { createRedisUsageStore } from '../../gateway/usage/store/redis-usage-store.ts';
import type { UsageStore } from '../../gateway/usage/store/usage-store.ts';
import { freshPrefix, redisUrl } from '../support/redis.ts';
import { tunedBounds } from '../support/tuned-bounds.ts';
import { patientStore } from '../support/tuning.ts';

/** Patient: these tests are about what is stored, not about the speed of this machine. */
const usageBounds = tunedBounds({
  ...patientStore,
  usageCallTimeoutMs: 20_000,
  usageActiveKeysMax: 5,
  usageMemoryCheckIntervalMs: 50,
});

export interface StoreSubject {
  /** One more adapter on the same data, as another process has. */
  open(): UsageStore;
  close(): Promise<void>;
}

export function memorySubject(): StoreSubject {
  const store = createMemoryUsageStore({ nowMs: Date.now, keysMax: 5 });
  return { open: () => store, close: () => Promise.resolve() };
}

export async function redisStoreSubject(
  url = redisUrl(),
): Promise<StoreSubject & { client: Redis; prefix: string }> {
  const prefix = freshPrefix();
  const client = createRedisClient(url, usageBounds);
  client.on('error', () => {});
  if (client.status !== 'ready') await once(client, 'ready');
  const stores: UsageStore[] = [];
  return {
    client,
    prefix,
    open() {
      const store = createRedisUsageStore({ client, prefix, keptMs: 60_000, bounds: usageBounds });
      stores.push(store);
      return store;
    },
    async close() {
      for (const store of stores) store.close();
      const keys = await client.keys(`${prefix}:*`);
      if (keys.length > 0) await client.del(keys);
      client.disconnect();
    },
  };
}
