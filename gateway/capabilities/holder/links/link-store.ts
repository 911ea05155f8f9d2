import { readFileSync } from 'node:fs';
import type { Result } from 'ioredis';
import type { RedisConnection } from '../../../redis/redis-connection.ts';
import { type Away, replyOrAway } from '../../../redis/redis-reply.ts';
import type { Bounds } from '../../../shared/timeouts-and-sizes.ts';
import { holderKeys } from '../redis-keys.ts';

const script = readFileSync(new URL('add-link.lua', import.meta.url), 'utf8');

export interface Link {
  /** The hex SHA-256 of the token. */
  readonly digest: string;
  /** The name of the admin token that made the link. */
  readonly by: string;
  /** Times are epoch ms on the clock of Redis. */
  readonly createdMs: number;
  readonly endMs: number;
  /** The marks of the key at the time when the link was made (`LinkedKey`). */
  readonly marks: readonly string[];
}

export type LinkStore = ReturnType<typeof createLinkStore>;

/**
 * The links of keys in Redis. The links of a key are one hash in the slot of the key, so each call has one Redis key and is atomic. The hash
 * expires with its last link. A process remembers no link, so a link that is removed ends at once on all processes. No promise rejects.
 */
export function createLinkStore(
  redis: RedisConnection,
  bounds: Pick<Bounds, 'storePatientDeadlineMs' | 'linksPerKeyMax'>,
) {
  const { commands: client, prefix } = redis;
  client.defineCommand('addLink', { numberOfKeys: 1, lua: script });

  return {
    /** @param ended digests of links that the call removes */
    add: (keyId: string, link: Link, ended: readonly string[]) =>
      ask(keyId, async (name) => {
        const { digest, endMs } = link;
        const added = await client.addLink(name, digest, pack(link), endMs, bounds.linksPerKeyMax, ...ended);
        return { kind: added === 1 ? ('added' as const) : ('full' as const) };
      }),
    /** The link may have ended. `nowMs` is the clock of Redis, by which it ends. */
    read: (keyId: string, digest: string) =>
      ask(keyId, async (name) => {
        const [value, nowMs] = await Promise.all([client.hget(name, digest), redis.clockOf(name)]);
        return { kind: 'read', link: value === null ? undefined : unpack(digest, value), nowMs } as const;
      }),
    /** As `read`, for all links of a key. */
    readAll: (keyId: string) =>
      ask(keyId, async (name) => {
        const [values, nowMs] = await Promise.all([client.hgetall(name), redis.clockOf(name)]);
        const links = Object.entries(values).flatMap(([digest, value]) => unpack(digest, value) ?? []);
        return { kind: 'read', links, nowMs } as const;
      }),
    remove: (keyId: string, digests: readonly string[]) =>
      ask(keyId, async (name) => {
        if (digests.length > 0) await client.hdel(name, ...digests);
        return { kind: 'removed' } as const;
      }),
  };

  function ask<Reply extends { readonly kind: string }>(
    keyId: string,
    call: (name: string) => Promise<Reply>,
  ): Promise<Reply | Away> {
    const name = holderKeys.links.name(prefix, keyId);
    return replyOrAway(redis, [name], () => redis.gather(() => call(name)), bounds.storePatientDeadlineMs);
  }
}

/** The script reads the end of a link at the beginning of its value. */
function pack({ by, createdMs, endMs, marks }: Link): string {
  return `${endMs} ${JSON.stringify({ by, createdMs, marks })}`;
}

/** @returns undefined for a value of another form, which a later version may have written */
function unpack(digest: string, value: string): Link | undefined {
  const [, end = '', json = ''] = /^(\d+) (.*)$/s.exec(value) ?? [];
  try {
    const { by, createdMs, marks } = JSON.parse(json);
    return { digest, endMs: Number(end), by: String(by), createdMs: Number(createdMs), marks: [...marks] };
  } catch {
    return undefined;
  }
}

declare module 'ioredis' {
  interface RedisCommander<Context> {
    addLink(links: string, ...args: (string | number)[]): Result<number, Context>;
  }
}
