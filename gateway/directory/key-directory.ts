import type { RecordsInRedis } from '../redis/redis-client.ts';
import type { Bounds } from '../timeouts-and-sizes.ts';
import type { DirectoryKey } from './directory-key.ts';
import type { DirectoryStore, Unrevised } from './store/directory-store.ts';
import { createMemoryDirectoryStore } from './store/memory-directory-store.ts';
import { createRedisDirectoryStore } from './store/redis-directory-store.ts';

/** The keys that are issued while gateways run. Nothing rejects. */
export interface KeyDirectory
  extends Pick<DirectoryStore, 'find' | 'read' | 'readMany' | 'remove' | 'page' | 'count' | 'remember'> {
  create(key: KeyDefinition): ReturnType<DirectoryStore['create']>;
  replace(key: KeyDefinition, expectedRevision: number): ReturnType<DirectoryStore['replace']>;
}

/** What somebody states of a key; the directory adds when it was made and changed. Of a key that is changed, also when it was made. */
export type KeyDefinition = Omit<Unrevised, 'createdMs' | 'changedMs'> &
  Partial<Pick<DirectoryKey, 'createdMs'>>;

export function createKeyDirectory({
  redis,
  nowMs,
  bounds,
}: {
  /** Absent: in memory. */
  readonly redis?: RecordsInRedis | undefined;
  /** The store's clock, epoch ms. */
  readonly nowMs: () => number;
  readonly bounds: Bounds;
}): KeyDirectory {
  const store =
    redis === undefined
      ? createMemoryDirectoryStore({ nowMs, keysMax: bounds.directoryKeysInMemoryMax })
      : createRedisDirectoryStore({ ...redis, bounds });

  return {
    find: store.find,
    read: store.read,
    readMany: store.readMany,
    page: store.page,
    count: store.count,
    remember: store.remember,
    create: (key) => store.create(dated(key)),
    replace: (key, expectedRevision) => store.replace(dated(key), expectedRevision),
    remove: store.remove,
  };

  function dated(key: KeyDefinition): Unrevised {
    const changedMs = nowMs();
    return { createdMs: changedMs, ...key, changedMs };
  }
}
