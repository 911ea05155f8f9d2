import { once } from 'node:events';
import type { Redis } from 'ioredis';
import type { DirectoryStore, Unrevised } from '../../gateway/directory/store/directory-store.ts';
import { createMemoryDirectoryStore } from '../../gateway/directory/store/memory-directory-store.ts';
import { createRedisDirectoryStore } from '../../gateway/directory/store/redis-directory-store.ts';
import { createRedisClient } from '../../gateway/redis/redis-client.ts';
import { digestSecret } from '../../gateway/secrets.ts';
import { freshPrefix, redisUrl } from '../support/redis.ts';
import { tunedBounds } from '../support/tuned-bounds.ts';
import { patientStore } from '../support/tuning.ts';

export interface DirectorySubject {
  /** One more adapter on the same data, as another process has. */
  open(): DirectoryStore;
  close(): Promise<void>;
}

export function memorySubject(): DirectorySubject {
  const store = createMemoryDirectoryStore({ nowMs: Date.now, keysMax: 1_000 });
  return { open: () => store, close: () => Promise.resolve() };
}

/** Patient: these tests are about what is stored, not about the speed of this machine. */
const patient = {
  ...patientStore,
  directoryLookUpDeadlineMs: 20_000,
  storePatientDeadlineMs: 20_000,
};

export async function redisDirectorySubject({
  url = redisUrl(),
  bounds = {},
}: {
  readonly url?: string;
  readonly bounds?: Parameters<typeof tunedBounds>[0];
} = {}): Promise<DirectorySubject & { readonly client: Redis; readonly prefix: string }> {
  const prefix = freshPrefix();
  const tuned = tunedBounds({ ...patient, ...bounds });
  const client = createRedisClient(url, tuned);
  client.on('error', () => {});
  if (client.status !== 'ready') await once(client, 'ready');
  return {
    client,
    prefix,
    open: () => createRedisDirectoryStore({ client, prefix, bounds: tuned }),
    async close() {
      const keys = client.status === 'ready' ? await client.keys(`${prefix}:*`) : [];
      if (keys.length > 0) await client.del(keys);
      client.disconnect();
    },
  };
}

/** A key with these secrets. */
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
