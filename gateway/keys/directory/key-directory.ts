import type { Logger } from 'pino';
import { type RedisConnection, untilConnected } from '../../redis/redis-connection.ts';
import type { ReadSecret, Settings } from '../../shared/model.ts';
import { createWarnOfKey, type WarnOfKey } from '../../shared/structures/warn-of-key.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import { compileKey } from '../compile-key.ts';
import { plansInForce } from '../key-table.ts';
import { type DirectoryKey, expiryOf, type KeyVersion } from './directory-key.ts';
import { type HeldKey, HeldKeys, isIn } from './held-keys.ts';
import { createLookUps, type LookUpOutcome, lookUpOutcomes } from './look-ups.ts';
import type { Unrevised } from './store/directory-store.ts';
import { createRedisDirectoryStore } from './store/redis-directory-store.ts';

export type KeyDirectory = ReturnType<typeof createKeyDirectory>;

/** A key to write. The directory adds `changedMs`, and for a new key also `createdMs`. A changed key keeps its `createdMs`. */
export type KeyDefinition = Omit<Unrevised, 'createdMs' | 'changedMs'> &
  Partial<Pick<DirectoryKey, 'createdMs'>>;

/** Makes the directory of keys that are issued while gateways run. The promises of the directory's methods never reject. */
export function createKeyDirectory({
  redis,
  nowMs,
  storeNowMs,
  log,
  bounds,
}: {
  readonly redis: RedisConnection;
  /** The gateway's clock, epoch ms. */
  readonly nowMs: () => number;
  /** The clock of quota decisions, epoch ms. */
  readonly storeNowMs: () => number;
  readonly log: Logger;
  readonly bounds: Bounds;
}) {
  const store = createRedisDirectoryStore({ redis, bounds });
  const held = new HeldKeys(bounds);
  const warn = createWarnOfKey(log, { idsMax: bounds.warnedKeysMax });
  const counts = new Map<LookUpOutcome, number>(lookUpOutcomes.map((outcome) => [outcome, 0]));
  let changes = 0;
  /**
   * For each key id, the number of the last change of the key that this process has recorded. The process records its own changes, and the
   * changes that a decision has shown. The latest change comes last.
   */
  const changed = new Map<string, number>();
  const lookUps = createLookUps({
    store,
    held,
    // The first look-ups wait briefly for the connection.
    started: untilConnected(redis, bounds.storeStartTimeoutMs),
    changes: { count: () => changes, lastOf: (id) => changed.get(id) ?? 0 },
    count: (outcome) => counts.set(outcome, (counts.get(outcome) ?? 0) + 1),
    nowMs,
    bounds,
  });

  return {
    /**
     * Returns a view of this process's cached keys. The view uses the given configuration to decide whether a key is usable. The method
     * `lookUp` reads further keys from the store.
     */
    keysRead(settings: Settings) {
      const inForce = { keys: settings.keys, plans: plansInForce(settings) };
      return {
        find(digest: string, atMs: number): ReadSecret | 'absent' | undefined {
          const key = held.find(digest, atMs);
          if (typeof key !== 'object') return key;
          const secret = readSecret(key, digest, inForce, atMs, warn);
          return secret === 'absent' || isIn(secret.period, atMs) ? secret : undefined;
        },
        isAllIssued: store.isAllIssued,
        secretsMax: bounds.directoryCachedSecretsMax,
      };
    },
    /**
     * Looks up the key of a secret, and checks whether the key is usable under the given configuration.
     *
     * @param holder the group of the client's address (`address-group.ts`)
     * @returns `away` when the store does not answer and the key is not cached; `busy` when too many look-ups wait
     */
    async lookUp(
      digest: string,
      holder: string,
      settings: Settings,
    ): Promise<ReadSecret | 'absent' | 'away' | 'busy'> {
      const key = await lookUps.lookUp(digest, holder);
      const inForce = { keys: settings.keys, plans: plansInForce(settings) };
      return typeof key === 'object' ? readSecret(key, digest, inForce, nowMs(), warn) : key;
    },
    readAgain: lookUps.readAgain,
    confirm: lookUps.confirm,
    /** The figures of this process: look-ups by outcome, and the number of cached keys. */
    counts: () => ({ lookUps: counts as ReadonlyMap<LookUpOutcome, number>, heldKeys: held.size }),
    /** Removes a cached key of an outdated generation, so the next request reads the key again. */
    drop(keyId: string, generation: number | undefined): void {
      if (held.drop(keyId, generation)) noteChange(keyId);
    },
    /** Returns the plan of a cached key. */
    planOf: (keyId: string) => held.planOf(keyId),

    confirmAllIssued: store.confirmAllIssued,
    find: store.find,
    read: store.read,
    readMany: store.readMany,
    page: store.page,
    count: store.count,
    remember: store.remember,
    create: (key: KeyDefinition, often?: 'once') => changing(key, store.create(dated(key), often)),
    createImported: (key: KeyDefinition) => changing(key, store.createImported(dated(key))),
    replace: (key: KeyDefinition, expected: KeyVersion) => changing(key, store.replace(dated(key), expected)),
    remove: (id: string, expected: KeyVersion) => changing({ id, secrets: [] }, store.remove(id, expected)),
  };

  function dated(key: KeyDefinition): Unrevised {
    const changedMs = storeNowMs();
    return { createdMs: changedMs, ...key, changedMs };
  }

  /** A change takes effect in this process immediately. Other processes detect the change by the key's generation. */
  async function changing<T>(
    { id, secrets }: Pick<KeyDefinition, 'id' | 'secrets'>,
    change: Promise<T>,
  ): Promise<T> {
    const reply = await change;
    noteChange(id);
    held.drop(id);
    held.dropAbsent(secrets.map(({ digest }) => digest));
    return reply;
  }

  function noteChange(id: string): void {
    changes++;
    changed.delete(id);
    changed.set(id, changes);
    const [oldest] = changed.keys();
    if (oldest !== undefined && changed.size > bounds.directoryKnownChangesMax) changed.delete(oldest);
  }
}

/**
 * Decides whether a directory key's secret is usable. If the configuration has a key with the same id or secret, the key of the
 * configuration takes precedence.
 */
function readSecret(
  { key: record, generation, period, freshPeriod, refusalPeriod }: HeldKey,
  digest: string,
  { keys, plans }: Pick<Settings, 'keys' | 'plans'>,
  atMs: number,
  warn: WarnOfKey,
): ReadSecret | 'absent' {
  const { id, plan } = record;
  if (keys.has(id)) {
    warn(
      id,
      'the configuration and the key directory both have this key; the key of the configuration is used',
    );
    return 'absent';
  }
  if (record.secrets.some((secret) => keys.find(secret.digest) !== undefined)) {
    warn(
      id,
      'a secret of this key of the key directory also belongs to a key of the configuration, which takes precedence',
    );
  }
  const secret = record.secrets.find((one) => one.digest === digest);
  if (secret === undefined) return 'absent';
  const expiresMs = expiryOf(secret);
  if (secret.leak?.ended)
    return { kind: 'refused', keyId: id, status: 'leaked', expiresMs, period: freshPeriod };
  if (record.disabled)
    return { kind: 'refused', keyId: id, status: 'disabled', expiresMs, period: refusalPeriod };
  const key = compileKey(record, plans);
  if (key === undefined) {
    warn(
      id,
      `this key of the key directory gets 401: the configuration gives it no limits on its plan ${plan}`,
    );
    return { kind: 'refused', keyId: id, status: 'no_plan', expiresMs, period: refusalPeriod };
  }
  // An expired secret is refused without a decision by Redis.
  const usablePeriod = expiresMs <= atMs ? freshPeriod : period;
  return { kind: 'usable', key: { ...key, generation }, expiresMs, period: usablePeriod, refusalPeriod };
}
