import type { DirectoryStore, Unrevised } from '../../../gateway/keys/directory/store/directory-store.ts';
import { createRedisDirectoryStore } from '../../../gateway/keys/directory/store/redis-directory-store.ts';
import type { RedisCommands, RedisConnection } from '../../../gateway/redis/redis-connection.ts';
import { digestSecret } from '../../../gateway/shared/secrets.ts';
import { connectRedis, type RedisPlace, removeAll } from '../../support/connect-redis.ts';
import { freshPrefix, redisUrl } from '../../support/redis.ts';
import { tunedBounds } from '../../support/tuned-bounds.ts';
import { patientStore } from '../../support/tuning.ts';

export interface DirectorySubject {
  /** Opens another adapter for the same data, as another process would. */
  open(): DirectoryStore;
  close(): Promise<void>;
}

/** @param options.place by default the Redis of this test run */
export async function redisDirectorySubject({
  place = { url: redisUrl() },
  bounds = {},
}: {
  readonly place?: RedisPlace;
  readonly bounds?: Parameters<typeof tunedBounds>[0];
} = {}): Promise<
  DirectorySubject & {
    readonly redis: RedisConnection;
    readonly client: RedisCommands;
    readonly prefix: string;
    /**
     * Opens an adapter that calls the function `before` ahead of each script that it sends. `call` is the number of
     * scripts that the adapter has already sent.
     */
    openWatched(before: (call: number) => Promise<void>): DirectoryStore;
  }
> {
  const prefix = freshPrefix();
  const tuned = tunedBounds({ ...patientStore, ...bounds });
  const redis = await connectRedis({ prefix, place, bounds: tuned });
  return {
    redis,
    client: redis.commands,
    prefix,
    open: () => createRedisDirectoryStore({ redis, bounds: tuned }),
    openWatched(before) {
      let calls = 0;
      const commands = Object.create(redis.commands, {
        eval: {
          async value(...args: Parameters<RedisCommands['eval']>) {
            await before(calls++);
            return redis.commands.eval(...args);
          },
        },
      });
      return createRedisDirectoryStore({ redis: { ...redis, commands }, bounds: tuned });
    },
    close: () => removeAll(redis),
  };
}

/** Creates a key with the given secrets. */
export function keyWith(id: string, secrets: readonly string[], more: Partial<Unrevised> = {}): Unrevised {
  return {
    id,
    plan: 'free',
    disabled: false,
    createdMs: 1_000,
    changedMs: 1_000,
    secrets: secrets.map((secret) => ({ digest: digestSecret(secret), createdMs: 1_000 })),
    ...more,
  };
}
