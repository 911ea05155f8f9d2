import type { RedisCommands } from '../../../gateway/redis/redis-connection.ts';
import { createMemoryUsageStore } from '../../../gateway/usage/store/memory-usage-store.ts';
import { createRedisUsageStore } from '../../../gateway/usage/store/redis-usage-store.ts';
import type { UsageStore } from '../../../gateway/usage/store/usage-store.ts';
import { connectRedis, keysOf, type RedisPlace, removeAll } from '../../support/connect-redis.ts';
import { freshPrefix, redisUrl } from '../../support/redis.ts';
import { tunedBounds } from '../../support/tuned-bounds.ts';
import { patientStore } from '../../support/tuning.ts';

/** Long deadlines, because these tests check the stored data and not the speed of this machine. */
const usageBounds = tunedBounds({
  ...patientStore,
  usageActiveKeysMax: 5,
  usageMemoryCheckIntervalMs: 50,
});

export interface StoreSubject {
  /** Opens another adapter for the same data, like another process. */
  open(): UsageStore;
  close(): Promise<void>;
}

export function memorySubject(): StoreSubject {
  const store = createMemoryUsageStore({ nowMs: Date.now, keysMax: 5 });
  return { open: () => store, close: () => Promise.resolve() };
}

/** @param place by default the Redis of this test run */
export async function redisStoreSubject(
  place: RedisPlace = { url: redisUrl() },
): Promise<StoreSubject & { client: RedisCommands; prefix: string; keys(): Promise<string[]> }> {
  const prefix = freshPrefix();
  const redis = await connectRedis({ prefix, place, bounds: usageBounds });
  const stores: UsageStore[] = [];
  return {
    client: redis.commands,
    prefix,
    keys: () => keysOf(redis),
    open() {
      const store = createRedisUsageStore({ redis, keptMs: 60_000, bounds: usageBounds });
      stores.push(store);
      return store;
    },
    async close() {
      for (const store of stores) store.close();
      await removeAll(redis);
    },
  };
}
