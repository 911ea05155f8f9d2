import type { Redis } from 'ioredis';

/** Names of the keys in Redis that would stay for ever. */
export async function keysWithoutExpiry(redis: Redis, pattern = '*'): Promise<string[]> {
  const names = await redis.keys(pattern);
  const expiries = await Promise.all(names.map((name) => redis.pttl(name)));
  // -2: gone since it was listed, as a probe's key may be.
  return names.filter((_, index) => expiries[index] === -1);
}
