import type { Logger } from 'pino';
import { type RedisConnection, untilConnected } from '../../redis/redis-connection.ts';
import type { ReadSecret, Settings } from '../../shared/model.ts';
import { createWarnOfKey } from '../../shared/structures/warn-of-key.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import { plansAt } from '../plans.ts';
import type { DirectoryKey, KeyVersion } from './directory-key.ts';
import { HeldKeys } from './held-keys.ts';
import { createLookUps, type LookUpOutcome, type LookUps, lookUpOutcomes } from './look-ups.ts';
import { readSecret } from './read-secret.ts';
import type { DirectoryStore, Unrevised } from './store/directory-store.ts';
import { createMemoryDirectoryStore } from './store/memory-directory-store.ts';
import { createRedisDirectoryStore } from './store/redis-directory-store.ts';

/** The keys that are issued while gateways run. Nothing rejects. */
export interface KeyDirectory
  extends Pick<LookUps, 'readAgain'>,
    Pick<DirectoryStore, 'find' | 'read' | 'readMany' | 'remove' | 'page' | 'count' | 'remember'> {
  /** What this process has read, under a configuration. `lookUp` reads more. */
  keysRead(settings: Settings): KeysUnderSettings;
  /**
   * Reads a secret, under a configuration. `away`: the store gives no answer, and nothing was read before; `busy`: too many
   * look-ups wait.
   *
   * @param holder the group of the client's address (`address-group.ts`)
   */
  lookUp(
    digest: string,
    holder: string,
    settings: Settings,
  ): Promise<ReadSecret | 'absent' | 'away' | 'busy'>;
  counts(): DirectoryCounts;
  /** The key was changed since it was read in this generation: it must be read again. */
  drop(keyId: string, generation: number | undefined): void;
  /** The plan of a key that was read lately. */
  planOf(keyId: string): string | undefined;
  create(key: KeyDefinition, often?: 'once'): ReturnType<DirectoryStore['create']>;
  replace(key: KeyDefinition, expected: KeyVersion): ReturnType<DirectoryStore['replace']>;
}

/** Of this process. */
export interface DirectoryCounts {
  readonly lookUps: ReadonlyMap<LookUpOutcome, number>;
  /** Keys that it has read and remembers. */
  readonly heldKeys: number;
}

interface KeysUnderSettings {
  find(digest: string, nowMs: number): ReadSecret | 'absent' | undefined;
  readonly secretsMax: number;
}

/** What somebody states of a key; the directory adds when it was made and changed. Of a key that is changed, also when it was made. */
export type KeyDefinition = Omit<Unrevised, 'createdMs' | 'changedMs'> &
  Partial<Pick<DirectoryKey, 'createdMs'>>;

export function createKeyDirectory({
  redis,
  nowMs,
  storeNowMs,
  log,
  bounds,
}: {
  /** Absent: in memory. */
  readonly redis?: RedisConnection | undefined;
  /** The gateway's clock, epoch ms. */
  readonly nowMs: () => number;
  /** The clock that decides, epoch ms. */
  readonly storeNowMs: () => number;
  readonly log: Logger;
  readonly bounds: Bounds;
}): KeyDirectory {
  const store =
    redis === undefined
      ? createMemoryDirectoryStore({
          nowMs,
          keysMax: bounds.directoryKeysInMemoryMax,
          removedKeptMs: bounds.idempotencyKeptMs,
        })
      : createRedisDirectoryStore({ redis, bounds });
  const held = new HeldKeys(bounds);
  const warn = createWarnOfKey(log, { idsMax: bounds.warnedKeysMax });
  const counts = new Map<LookUpOutcome, number>(lookUpOutcomes.map((outcome) => [outcome, 0]));
  let changes = 0;
  /** By key id the number of its last change by this process, latest last. */
  const changed = new Map<string, number>();
  const lookUps = createLookUps({
    store,
    held,
    // The first look-ups of a process wait for the connection, for a moment.
    started: redis === undefined ? Promise.resolve() : untilConnected(redis, bounds.storeStartTimeoutMs),
    changes: { count: () => changes, lastOf: (id) => changed.get(id) ?? 0 },
    count: (outcome) => counts.set(outcome, (counts.get(outcome) ?? 0) + 1),
    nowMs,
    bounds,
  });

  return {
    keysRead(settings) {
      const inForce = { keys: settings.keys, plans: plansAt(settings, nowMs()) };
      return {
        find(digest, atMs) {
          const key = held.find(digest, atMs);
          return typeof key === 'object' ? readSecret(key, digest, inForce, warn) : key;
        },
        secretsMax: bounds.directoryCachedSecretsMax,
      };
    },
    async lookUp(digest, holder, settings) {
      const key = await lookUps.lookUp(digest, holder);
      const inForce = { keys: settings.keys, plans: plansAt(settings, nowMs()) };
      return typeof key === 'object' ? readSecret(key, digest, inForce, warn) : key;
    },
    readAgain: lookUps.readAgain,
    counts: () => ({ lookUps: counts, heldKeys: held.size }),
    drop: (keyId, generation) => held.drop(keyId, generation),
    planOf: (keyId) => held.planOf(keyId),

    find: store.find,
    read: store.read,
    readMany: store.readMany,
    page: store.page,
    count: store.count,
    remember: store.remember,
    create: (key, often) => changing(key, store.create(dated(key), often)),
    replace: (key, expected) => changing(key, store.replace(dated(key), expected)),
    remove: (id, expected) => changing({ id, secrets: [] }, store.remove(id, expected)),
  };

  function dated(key: KeyDefinition): Unrevised {
    const changedMs = storeNowMs();
    return { createdMs: changedMs, ...key, changedMs };
  }

  /** On this process a change is in force when it has been made; others see it by the key's generation. */
  async function changing<T>(
    { id, secrets }: Pick<KeyDefinition, 'id' | 'secrets'>,
    change: Promise<T>,
  ): Promise<T> {
    const reply = await change;
    changes++;
    changed.delete(id);
    changed.set(id, changes);
    const [oldest] = changed.keys();
    if (oldest !== undefined && changed.size > bounds.directoryOwnChangesMax) changed.delete(oldest);
    held.drop(id);
    held.dropAbsent(secrets.map(({ digest }) => digest));
    return reply;
  }
}
