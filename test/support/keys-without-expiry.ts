import type { RedisCommands } from '../../gateway/redis/redis-connection.ts';
import { redisKeys } from '../../gateway/redis/redis-keys.ts';

/** The names of the Redis keys that never expire, without the mark of the data, which every gateway keeps. @param among by default all keys of this server */
export async function keysWithoutExpiry(
  redis: Pick<RedisCommands, 'keys' | 'pttl'>,
  among?: readonly string[],
): Promise<string[]> {
  const markEnd = redisKeys.dataMark.name('');
  const names = (among ?? (await redis.keys('*'))).filter((name) => !name.endsWith(markEnd));
  const expiries = await Promise.all(names.map((name) => redis.pttl(name)));
  // PTTL returns -1 for a key without an expiry, and -2 for a key that has expired since it was listed, such as the short-lived key of a
  // probe.
  return names.filter((_, index) => expiries[index] === -1);
}
