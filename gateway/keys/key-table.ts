import type { FoundKey, Key, Keys, Plans, Secret, Settings } from '../shared/model.ts';
import type { RawKey } from './key-schema.ts';
import {
  createPacker,
  idAt,
  lastEndMs,
  type PackedKeys,
  rankOf,
  ranksBefore,
  recordAt,
  recordOfDigest,
} from './packed-keys.ts';
import { compileKey, type InForce, keyChanges, planNameAt } from './plans/compile-key.ts';
import { inForceAt, planChangeTimes } from './plans/plans.ts';

/** Keys that replace the packed keys with the same ids. Undefined: the key was removed. */
export type KeyChanges = ReadonlyMap<string, RawKey | undefined>;

/**
 * The keys of a configuration: packed keys, and those that changed after the packing. Many tables share the same packed keys, so the cost
 * of a new table grows with the number of its changes, not with the number of keys. A table is immutable.
 *
 * A key is combined with its plan when it is looked up, so a new limit of a plan does not change the stored keys.
 */
export class KeyTable implements Keys {
  readonly packed: PackedKeys;
  readonly changes: KeyChanges;
  readonly size: number;
  readonly secrets: number;
  /** The plans and the time for which the table was made. */
  readonly inForce: InForce;
  readonly #changedIds: readonly string[];
  /** Ids of changed keys by the digests of their secrets. */
  readonly #changedDigests: ReadonlyMap<string, string>;

  constructor(packed: PackedKeys, changes: KeyChanges, inForce: InForce) {
    this.packed = packed;
    this.changes = changes;
    this.inForce = inForce;
    this.#changedIds = [...changes.keys()].sort();
    const digests = new Map<string, string>();
    let [size, secrets] = [packed.starts.length, packed.secrets];
    for (const [id, key] of changes) {
      const rank = rankOf(packed, id);
      if (rank !== undefined) [size, secrets] = [size - 1, secrets - recordAt(packed, rank).secrets.length];
      if (key !== undefined) [size, secrets] = [size + 1, secrets + key.secrets.length];
      for (const { sha256 } of key?.secrets ?? []) digests.set(sha256, id);
    }
    this.#changedDigests = digests;
    this.size = size;
    this.secrets = secrets;
  }

  with(changes: KeyChanges, inForce: InForce): KeyTable {
    if (changes.size === 0) return new KeyTable(this.packed, this.changes, inForce);
    return new KeyTable(this.packed, new Map([...this.changes, ...changes]), inForce);
  }

  has(id: string): boolean {
    return this.changes.has(id) ? this.changes.get(id) !== undefined : rankOf(this.packed, id) !== undefined;
  }

  get(id: string): Key | undefined {
    const stated = this.statedOf(id);
    return stated && this.#compiled(stated);
  }

  secretsOf(id: string): readonly Secret[] {
    return this.statedOf(id)?.secrets.map(secretOf) ?? [];
  }

  find(digest: string): FoundKey | undefined {
    const stated = this.#statedByDigest(digest);
    const raw = stated?.secrets.find(({ sha256 }) => sha256 === digest);
    return stated && raw && { key: this.#compiled(stated), secret: secretOf(raw) };
  }

  *ids(after = ''): Generator<string> {
    const { packed, changes } = this;
    const changed = this.#changedIds.filter((id) => id > after && changes.get(id) !== undefined);
    let next = 0;
    const first = after === '' ? 0 : ranksBefore(packed, after);
    for (let rank = first; rank < packed.starts.length; rank++) {
      const id = idAt(packed, rank);
      for (let before = changed[next]; before !== undefined && before < id; before = changed[next]) {
        yield before;
        next += 1;
      }
      if (id !== after && !changes.has(id)) yield id;
    }
    yield* changed.slice(next);
  }

  rankOf(id: string): number | undefined {
    if (!this.has(id)) return undefined;
    let rank = ranksBefore(this.packed, id);
    for (const changed of this.#changedIds) {
      if (changed >= id) break;
      if (rankOf(this.packed, changed) !== undefined) rank -= 1;
      if (this.changes.get(changed) !== undefined) rank += 1;
    }
    return rank;
  }

  tally(visit: (plan: string, isDisabled: boolean, lastEndMs: number) => void): void {
    const { planNames, plans, disabled, endsMs, dated } = this.packed;
    const { atMs } = this.inForce;
    const replaced = new Set(this.#changedIds.map((id) => rankOf(this.packed, id)));
    const visitKey = (key: RawKey) => visit(planNameAt(key, atMs), key.disabled, lastEndMs(key));
    let nextDated = 0;
    for (let rank = 0; rank < plans.length; rank++) {
      if (dated[nextDated] === rank) {
        nextDated += 1;
        if (!replaced.has(rank)) visitKey(recordAt(this.packed, rank));
      } else if (!replaced.has(rank))
        visit(planNames[plans[rank] ?? 0] ?? '', disabled[rank] === 1, endsMs[rank] ?? 0);
    }
    for (const key of this.changes.values()) if (key !== undefined) visitKey(key);
  }

  /** The times at which a key gets another plan, epoch ms, in any order. Changes of replaced keys may be included. */
  *changeTimes(): Generator<number> {
    yield* this.packed.changeTimes;
    for (const key of this.changes.values())
      for (const { fromMs } of (key && keyChanges(key)) ?? []) yield fromMs;
  }

  /** As the configuration states them, sorted by id. */
  *stated(): Generator<RawKey> {
    for (const id of this.ids()) {
      const key = this.statedOf(id);
      if (key !== undefined) yield key;
    }
  }

  /** Without the limits and operations of its plan. */
  statedOf(id: string): RawKey | undefined {
    if (this.changes.has(id)) return this.changes.get(id);
    const rank = rankOf(this.packed, id);
    return rank === undefined ? undefined : recordAt(this.packed, rank);
  }

  #statedByDigest(digest: string): RawKey | undefined {
    const changedId = this.#changedDigests.get(digest);
    if (changedId !== undefined) return this.changes.get(changedId);
    const stated = recordOfDigest(this.packed, digest);
    return stated !== undefined && this.changes.has(stated.id) ? undefined : stated;
  }

  #compiled(stated: RawKey): Key {
    const key = compileKey(stated, this.inForce);
    // `checkKeys` refuses a key that does not fit its plan.
    if (key === undefined) throw new Error('a key without limits passed validation');
    return key;
  }
}

/** @throws when the keys were not read from a configuration */
export function tableIn(keys: Keys): KeyTable {
  if (keys instanceof KeyTable) return keys;
  throw new Error('these keys were not loaded');
}

/** The keys get the plan limits that apply at `nowMs`, epoch ms on the store's clock. */
export function settingsAt(settings: Settings, nowMs: number): Settings {
  const before = tableIn(settings.keys);
  const [inForce, now] = [before.inForce, inForceAt(settings, nowMs)];
  const areAsBefore =
    now.plans === inForce.plans &&
    lastOf(before.changeTimes(), nowMs) === lastOf(before.changeTimes(), inForce.atMs);
  return areAsBefore ? settings : { ...settings, keys: before.with(new Map(), now) };
}

/** The last change of a plan, or of the plan of a key, up to `nowMs`. */
export function lastChangeMs(settings: Pick<Settings, 'plans' | 'keys'>, nowMs: number): number | undefined {
  return lastOf(changeTimes(settings), nowMs);
}

/** The first change after `nowMs`. */
export function nextChangeMs(settings: Pick<Settings, 'plans' | 'keys'>, nowMs: number): number | undefined {
  let next: number | undefined;
  for (const fromMs of changeTimes(settings))
    if (fromMs > nowMs && fromMs < (next ?? Number.POSITIVE_INFINITY)) next = fromMs;
  return next;
}

function* changeTimes({ plans, keys }: Pick<Settings, 'plans' | 'keys'>): Generator<number> {
  yield* planChangeTimes(plans);
  yield* tableIn(keys).changeTimes();
}

function lastOf(times: Iterable<number>, nowMs: number): number | undefined {
  let last: number | undefined;
  for (const fromMs of times)
    if (fromMs <= nowMs && fromMs > (last ?? Number.NEGATIVE_INFINITY)) last = fromMs;
  return last;
}

/** Keys of the directory use the same plans, so a new limit applies to all keys of a plan at the same time. */
export function plansInForce({ keys }: Pick<Settings, 'keys'>): Plans {
  return tableIn(keys).inForce.plans;
}

/** For keys of the directory. They are not in the table, and change without a new table. */
export function inForceForDirectory(settings: Pick<Settings, 'keys'>, atMs: number): InForce {
  return { plans: plansInForce(settings), atMs };
}

/**
 * @returns the table, and for each rank of an id the position of its key in `keys`
 * @throws when two keys have the same id, or two secrets the same digest; `checkKeys` refuses such keys earlier
 */
export function tableOf(keys: Iterable<RawKey>, inForce: InForce): { keys: KeyTable; order: Uint32Array } {
  const packer = createPacker();
  for (const key of keys) packer.add(key);
  const packed = packer.finish();
  if (packed === undefined) throw new Error('two keys with the same id or digest passed validation');
  return { keys: new KeyTable(packed.keys, new Map(), inForce), order: packed.order };
}

function secretOf({ sha256, expires, created }: RawKey['secrets'][number]): Secret {
  return { digest: sha256, expiresMs: expires ?? Number.POSITIVE_INFINITY, createdMs: created };
}
