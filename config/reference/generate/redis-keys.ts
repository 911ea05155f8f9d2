import { capabilityRedisKeys } from '../../../gateway/capabilities/lists/parts.ts';
import { type RedisKeyKind, redisKeys } from '../../../gateway/redis/redis-keys.ts';
import { bullet, code, page, pageHead } from './markdown.ts';

/** The keys in Redis: what writes them, when they expire, and how large they may become. */
export function redisKeysPage(): string {
  const all: readonly RedisKeyKind[] = [redisKeys, capabilityRedisKeys].flatMap((kinds) =>
    Object.values<RedisKeyKind>(kinds),
  );
  return page([
    pageHead('Keys in Redis', '`gateway/redis/redis-keys.ts` and the capabilities'),
    '`<prefix>` is `redis.prefix`. In a Cluster, the text in braces decides the slot of a key, and without braces its whole name does. Sizes are by `MEMORY USAGE`, with ids and names of 20 characters. Files are below `gateway/`.',
    ...all.flatMap(({ pattern, type, bytesMax, expires, writtenBy, howMany, size }) => [
      `## ${code(pattern)}`,
      [
        `${type.charAt(0).toUpperCase()}${type.slice(1)}, at most ${bytesMax.toLocaleString('en')} octets. ${size ?? ''}`.trimEnd(),
        `Number: ${howMany}`,
        `Expires: ${expires}`,
        `Written by: ${writtenBy}`,
      ]
        .map((line) => bullet(line))
        .join('\n'),
    ]),
  ]);
}
