import type { RedisCommands } from '../../gateway/redis/redis-connection.ts';

/** The names of the Redis keys that never expire. @param among by default all keys of this server */
export async function keysWithoutExpiry(
  redis: Pick<RedisCommands, 'keys' | 'pttl'>,
  among?: readonly string[],
): Promise<string[]> {
  const names = among ?? (await redis.keys('*'));
  const expiries = await Promise.all(names.map((name) => redis.pttl(name)));
  // -1: the key has no expiry. -2: the key has expired since it was listed, like the key of a probe.
  return names.filter((_, index) => expiries[index] === -1);
}
