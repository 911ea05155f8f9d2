import { readFileSync } from 'node:fs';
import { scriptWithChapters } from '../../../quota/calls/library.ts';
import { type RedisConnection, untilConnected } from '../../../redis/redis-connection.ts';
import { redisKeys } from '../../../redis/redis-keys.ts';
import { type Away, replyOrAway } from '../../../redis/redis-reply.ts';
import type { Leak } from '../../../shared/model.ts';
import type { Bounds } from '../../../shared/timeouts-and-sizes.ts';

const addScript = readScript('add-leak.lua');
const noteScript = scriptWithChapters('return noteLeak(KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2]))', {
  allowOom: true,
});
const renewScript = readScript('renew-leaks.lua');

export type BlockStore = ReturnType<typeof createBlockStore>;

/** A leaked secret of a key in the configuration. */
export interface LeakedSecret {
  readonly digest: string;
  readonly keyId: string;
  readonly leak: Leak;
}

export interface Added {
  readonly kind: 'added' | 'known';
  readonly leak: Leak;
}

export interface LeaksRead {
  readonly kind: 'read';
  /** Increases with each change of the leaks; 0 when there has been no leak. */
  readonly version: number;
  /** The store's clock, epoch ms, which is less than every later version; 0 if it was not requested. */
  readonly nowMs: number;
  /** Undefined if the version has not changed. */
  readonly leaks: readonly LeakedSecret[] | undefined;
}

/**
 * The leaked secrets of keys in the configuration, in Redis. A secret stays in the store until no gateway's configuration has it any more.
 * The promises never reject.
 *
 * There is one hash for all leaks (`add-leak.lua`), and a mark with the counts of each affected key (`quota/marks.lua`). The mark is written
 * after the leak. A process that sees the mark therefore finds the leak. If the process that adds a leak dies in between, the reporter gets
 * no reply and reports again. A repeated report writes the mark again.
 */
export function createBlockStore({
  redis,
  bounds,
}: {
  readonly redis: RedisConnection;
  readonly bounds: Bounds;
}) {
  const { commands: client, prefix } = redis;
  const name = redisKeys.leakedSecrets.name(prefix);

  return {
    /** Resolves when Redis is connected or the start timeout has passed. */
    started: untilConnected(redis, bounds.leaksStartTimeoutMs),
    /** Stores a leak. A leak that is stored already changes only if the secret ends now and did not end before. */
    add({ digest, keyId, leak }: LeakedSecret) {
      const quotaName = redisKeys.quota.name(prefix, keyId);
      return attempt<Added | Away>([name, quotaName], async () => {
        const value = `${leak.ended ? 1 : 0} ${JSON.stringify({ keyId, leak })}`;
        const reply = await client.eval(addScript, 1, name, digest, value);
        const [kind, stored, version] = reply as [Added['kind'], string, number];
        const found = leakedSecret(digest, stored);
        if (found?.leak.ended !== false) {
          const noted = client.eval(noteScript, 1, quotaName, version, bounds.leakNotedMs);
          // The leak is stored although the mark is missing.
          const failed = await noted.then(
            () => undefined,
            (error: Error) => error,
          );
          if (failed !== undefined) return { kind: 'away', mayHaveRun: true, reason: failed.message };
        }
        return { kind, leak: found?.leak ?? leak };
      });
    },
    /**
     * Reads all leaks.
     *
     * @param known the version that the caller has read before; if the store still has this version, the reply has no leaks; undefined to
     *   read the leaks in any case
     * @param withClock whether the reply has the clock of Redis
     */
    read(known: number | undefined, withClock: boolean) {
      return attempt<LeaksRead>([name], async () => {
        // The clock is read first. A leak that is added after the leaks were read then has a later version.
        const nowMs = withClock ? await redis.clockOf(name) : 0;
        const version = Number((await client.hget(name, 'version')) ?? 0);
        if (version === known) return { kind: 'read', version, nowMs, leaks: undefined };
        const { version: last = 0, ...others } = await client.hgetall(name);
        const leaks = Object.entries(others).flatMap(([digest, value]) => leakedSecret(digest, value) ?? []);
        return { kind: 'read', version: Number(last), nowMs, leaks };
      });
    },
    /**
     * Renews the leaks that a configuration still has, so that they stay. If `removes` is true, the call removes the leaks that no gateway
     * has renewed within `bounds.leakBlockKeptMs`.
     */
    async renew(digests: readonly string[], removes: boolean): Promise<void> {
      const keptMs = removes ? bounds.leakBlockKeptMs : 0;
      await attempt([name], async () => {
        await client.eval(renewScript, 1, name, keptMs, ...digests);
        return { kind: 'renewed' };
      });
    },
    /** Calls the listener when Redis is available again, and its leaks may have changed meanwhile. */
    onReturn(listener: () => void) {
      redis.on('ready', listener);
      redis.on('nodes', listener);
    },
  };

  function attempt<T extends { readonly kind: string }>(
    names: readonly string[],
    call: () => Promise<T>,
  ): Promise<T | Away> {
    return replyOrAway(redis, names, call, bounds.storePatientDeadlineMs);
  }
}

function readScript(name: string): string {
  return readFileSync(new URL(name, import.meta.url), 'utf8');
}

/** @returns undefined for a field that has no leak */
function leakedSecret(digest: string, stored: string): LeakedSecret | undefined {
  if (!/^[0-9a-f]{64}$/.test(digest)) return undefined;
  try {
    const { keyId, leak } = JSON.parse(stored.slice(2));
    return typeof keyId === 'string' && typeof leak?.atMs === 'number' ? { digest, keyId, leak } : undefined;
  } catch {
    return undefined;
  }
}
