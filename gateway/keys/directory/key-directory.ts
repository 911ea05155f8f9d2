import type { Logger } from 'pino';
import { type RedisConnection, untilConnected } from '../../redis/redis-connection.ts';
import { isIn, type ReadSecret, type Settings } from '../../shared/model.ts';
import { createWarnOfKey, type WarnOfKey } from '../../shared/structures/warn-of-key.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import { inForceForDirectory } from '../key-table.ts';
import { compileKey, type InForce, planNameAt } from '../plans/compile-key.ts';
import { type DirectoryKey, expiryOf, type KeyVersion } from './directory-key.ts';
import { type HeldKey, HeldKeys } from './held-keys.ts';
import { createLookUps, type LookUpOutcome, lookUpOutcomes } from './look-ups.ts';
import type { Unrevised } from './store/directory-store.ts';
import { createRedisDirectoryStore } from './store/redis-directory-store.ts';

export type KeyDirectory = ReturnType<typeof createKeyDirectory>;

/** The directory adds `changedMs`, and `createdMs` for a new key. */
export type KeyDefinition = Omit<Unrevised, 'createdMs' | 'changedMs'> &
  Partial<Pick<DirectoryKey, 'createdMs'>>;

/** Keys that are issued while gateways run. No promise rejects. */
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
  const held = new HeldKeys(bounds, { storeAheadMs: () => storeNowMs() - nowMs() });
  const warn = createWarnOfKey(log, { idsMax: bounds.warnedKeysMax });
  const counts = new Map<LookUpOutcome, number>(lookUpOutcomes.map((outcome) => [outcome, 0]));
  let changes = 0;
  /** The number of the last change of each key that this process knows, by itself or from a decision. The latest change comes last. */
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
    /** The cached keys, usable or not by the given configuration. `lookUp` reads further keys from the store. */
    keysRead(settings: Settings) {
      return {
        find(digest: string, atMs: number): ReadSecret | 'absent' | undefined {
          const key = held.find(digest, atMs);
          if (typeof key !== 'object') return key;
          const secret = secretOf(key, digest, settings, atMs);
          return secret === 'absent' || isIn(secret.period, atMs) ? secret : undefined;
        },
        isAllIssued: store.isAllIssued,
        secretsMax: bounds.directoryCachedSecretsMax,
      };
    },
    /**
     * Finds the key of a secret, and checks it under the given configuration.
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
      return typeof key === 'object' ? secretOf(key, digest, settings, nowMs()) : key;
    },
    readAgain: lookUps.readAgain,
    confirm: lookUps.confirm,
    /** Look-ups by outcome, and cached keys of this process. */
    counts: () => ({ lookUps: counts as ReadonlyMap<LookUpOutcome, number>, heldKeys: held.size }),
    /** For an outdated generation. The next request reads the key again. */
    drop(keyId: string, generation: number | undefined): void {
      if (held.drop(keyId, generation)) noteChange(keyId);
    },
    known: (keyId: string) => held.read(keyId),
    planOf: (keyId: string) => held.planOf(keyId, storeNowMs()),

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

  function secretOf(key: HeldKey, digest: string, settings: Settings, atMs: number) {
    const inForce = inForceForDirectory(settings, storeNowMs());
    return readSecret(key, digest, { keys: settings.keys, inForce }, atMs, warn);
  }

  function dated(key: KeyDefinition): Unrevised {
    const changedMs = storeNowMs();
    return { createdMs: changedMs, ...key, changedMs };
  }

  /** A change takes effect in this process immediately. Other processes detect it by the key's generation. */
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

/** A key of the configuration with the same id or secret takes precedence. */
function readSecret(
  { key: record, generation, period, freshPeriod, refusalPeriod }: HeldKey,
  digest: string,
  { keys, inForce }: Pick<Settings, 'keys'> & { readonly inForce: InForce },
  atMs: number,
  warn: WarnOfKey,
): ReadSecret | 'absent' {
  const { id } = record;
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
  const key = compileKey(record, inForce);
  if (key === undefined) {
    warn(
      id,
      `this key of the key directory gets 401: the configuration gives it no limits on its plan ${planNameAt(record, inForce.atMs)}`,
    );
    return { kind: 'refused', keyId: id, status: 'no_plan', expiresMs, period: refusalPeriod };
  }
  // An expired secret is refused without a decision by Redis.
  const usablePeriod = expiresMs <= atMs ? freshPeriod : period;
  return { kind: 'usable', key: { ...key, generation }, expiresMs, period: usablePeriod, refusalPeriod };
}
