import type { Redis } from 'ioredis';

/** The names of the keys in Redis that never expire. */
export async function keysWithoutExpiry(redis: Redis, pattern = '*'): Promise<string[]> {
  const names = await redis.keys(pattern);
  const expiries = await Promise.all(names.map((name) => redis.pttl(name)));
  // -1: no expiry. -2: the key is gone since it was listed, as a probe's key may be.
  return names.filter((_, index) => expiries[index] === -1);
}
