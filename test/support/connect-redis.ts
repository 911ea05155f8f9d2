import { openRedis } from '../../gateway/redis/open-redis.ts';
import type { RedisConnection } from '../../gateway/redis/redis-connection.ts';
import { tunedBounds } from './tuned-bounds.ts';
import { patientStore } from './tuning.ts';
import { until } from './until.ts';

/** The address of Redis, in the form of the configuration. */
export type RedisPlace = Omit<Parameters<typeof openRedis>[0], 'prefix'>;

/** Connects in the same way as the gateway, and waits until every server is connected. */
export async function connectRedis({
  prefix,
  place,
  bounds = tunedBounds(patientStore),
}: {
  readonly prefix: string;
  readonly place: RedisPlace;
  readonly bounds?: Parameters<typeof openRedis>[1];
}): Promise<RedisConnection> {
  const redis = openRedis({ ...place, prefix }, bounds);
  await until('every server of Redis is connected', () =>
    redis.nodes().every(({ client }) => client?.status === 'ready'),
  );
  return redis;
}

/** The names of all keys under the prefix, on every server. */
export async function keysOf(redis: RedisConnection): Promise<string[]> {
  const lists = await Promise.all(redis.nodes().map(({ client }) => client?.keys(`${redis.prefix}:*`) ?? []));
  return lists.flat();
}

/** Deletes all keys under the prefix, and disconnects. */
export async function removeAll(redis: RedisConnection): Promise<void> {
  if (redis.nodes().every(({ client }) => client?.status === 'ready')) {
    for (const key of await keysOf(redis)) await redis.commands.del(key);
  }
  redis.close();
}
