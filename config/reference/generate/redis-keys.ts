import { capabilityRedisKeys } from '../../../gateway/capabilities/lists/parts.ts';
import { type RedisKeyKind, redisKeys } from '../../../gateway/redis/redis-keys.ts';
import { bullet, code, page, pageHead, sentences } from './markdown.ts';

/** The keys in Redis: what writes them, when they expire, and how large they may become. */
export function redisKeysPage(): string {
  const all: readonly RedisKeyKind[] = [redisKeys, capabilityRedisKeys].flatMap((kinds) =>
    Object.values<RedisKeyKind>(kinds),
  );
  return page([
    pageHead('Keys in Redis', '`gateway/redis/redis-keys.ts` and the capabilities'),
    '`<prefix>` is `redis.prefix`. In a Cluster, the text in braces decides the slot of a key, and without braces its whole name does. Sizes are by `MEMORY USAGE`, with ids and names of 20 characters and texts in ASCII. Files are below `gateway/`.',
    ...all.flatMap((kind) => [
      `## ${code(kind.pattern)}`,
      [
        sentences(sizeOf(kind), kind.size),
        `Number: ${kind.howMany}`,
        `Expires: ${kind.expires}`,
        `Written by: ${kind.writtenBy}`,
      ]
        .map((line) => bullet(line))
        .join('\n'),
    ]),
  ]);
}

function sizeOf({ type, bytesMax, bytesFor }: RedisKeyKind): string {
  const most = `${type.charAt(0).toUpperCase()}${type.slice(1)}, at most ${bytesMax.toLocaleString('en')} octets`;
  return bytesFor === undefined ? most : `${most} ${bytesFor}`;
}
