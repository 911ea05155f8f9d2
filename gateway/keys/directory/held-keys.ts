import type { Period } from '../../shared/model.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import type { FoundKey } from './store/directory-store.ts';

/** A directory key in this process's cache. */
export interface HeldKey extends Omit<FoundKey, 'kind'> {
  /**
   * The period in which the cached key may be used. Other caches of this key share this object. When the key changes, the period therefore
   * ends in all these caches.
   */
  readonly period: Period;
  /**
   * The period in which this key may be refused without a new look-up. A quota decision would reveal a change of the key, but a refused key
   * gets no quota decision. This period is therefore shorter than `period`.
   */
  readonly refusalPeriod: Period;
}

/**
 * This process's cache of the directory. The cache contains the keys that the process read most recently, and the unknown
 * digests that the process looked up most recently.
 */
export class HeldKeys {
  private readonly bounds: Bounds;
  private readonly byId = new Map<string, HeldKey>();
  private readonly byDigest = new Map<string, HeldKey>();
  /** Estimated memory of all cached keys. */
  private bytes = 0;
  /**
   * Digests that belong to no key. The whole set expires when its oldest digest is `directoryAbsentMs` old. During a flood, an
   * expiry per digest would cost more than a few repeated look-ups.
   */
  private absent = new Set<string>();
  private absentPeriod: Period = { fromMs: 0, untilMs: 0 };

  constructor(bounds: Bounds) {
    this.bounds = bounds;
  }

  get size(): number {
    return this.byId.size;
  }

  /** @returns `absent` when no key has this digest; undefined when the cache has no valid answer */
  find(digest: string, nowMs: number): HeldKey | 'absent' | undefined {
    const held = this.byDigest.get(digest);
    if (held !== undefined) return isIn(held.period, nowMs) ? held : undefined;
    return isIn(this.absentPeriod, nowMs) && this.absent.has(digest) ? 'absent' : undefined;
  }

  planOf(id: string): string | undefined {
    return this.byId.get(id)?.key.plan;
  }

  keep({ key, generation }: Omit<FoundKey, 'kind'>, nowMs: number): HeldKey {
    this.drop(key.id);
    const { directoryCachedMs: cachedMs, directoryAbsentMs: absentMs } = this.bounds;
    const held: HeldKey = {
      key,
      generation,
      period: { fromMs: nowMs, untilMs: nowMs + (key.disabled ? absentMs : cachedMs) },
      refusalPeriod: { fromMs: nowMs, untilMs: nowMs + absentMs },
    };
    this.byId.set(key.id, held);
    for (const { digest } of key.secrets) this.byDigest.set(digest, held);
    this.dropAbsent(key.secrets.map(({ digest }) => digest));
    this.bytes += bytesOf(key);
    const { directoryCachedKeysMax: keysMax, directoryCachedBytesMax: bytesMax } = this.bounds;
    for (const oldest of this.byId.keys()) {
      if (this.byId.size <= keysMax && this.bytes <= bytesMax) break;
      this.drop(oldest);
    }
    return held;
  }

  keepAbsent(digest: string, nowMs: number): void {
    const held = this.byDigest.get(digest);
    if (held !== undefined) this.drop(held.key.id);
    const { directoryAbsentMs: absentMs, directoryAbsentMax: max } = this.bounds;
    if (!isIn(this.absentPeriod, nowMs) || this.absent.size >= max) {
      // A new Set replaces the old Set, because `clear` keeps the memory of the old table (renewed-map.ts).
      this.absent = new Set();
      this.absentPeriod = { fromMs: nowMs, untilMs: nowMs + absentMs };
    }
    this.absent.add(digest);
  }

  /**
   * Extends the period of an expired cached key while the store is unavailable.
   *
   * @returns undefined when the key is not cached
   */
  extend(digest: string, nowMs: number): HeldKey | undefined {
    const held = this.byDigest.get(digest);
    if (held === undefined) return undefined;
    for (const period of [held.period, held.refusalPeriod]) {
      period.fromMs = nowMs;
      period.untilMs = nowMs + this.bounds.directoryAbsentMs;
    }
    return held;
  }

  /** Removes a key that has changed. @param generation when given, only a cached key of this generation is removed */
  drop(id: string, generation?: number): void {
    const held = this.byId.get(id);
    if (held === undefined || (generation !== undefined && held.generation !== generation)) return;
    held.period.untilMs = 0;
    held.refusalPeriod.untilMs = 0;
    this.byId.delete(id);
    this.bytes -= bytesOf(held.key);
    for (const { digest } of held.key.secrets) {
      if (this.byDigest.get(digest) === held) this.byDigest.delete(digest);
    }
  }

  /** Drops unknown digests that may belong to a key now. */
  dropAbsent(digests: Iterable<string>): void {
    for (const digest of digests) this.absent.delete(digest);
  }
}

/** Estimates the memory of a key: the object, its entries in two Maps, and an amount for each secret and operation. */
function bytesOf({ secrets, operations = [], ...members }: FoundKey['key']): number {
  let bytes = 100 + 2 * JSON.stringify(members).length + 250 * secrets.length;
  for (const operation of operations) bytes += 32 + operation.length;
  return bytes;
}

/** Whether a time is in a period. The start of the period is checked too, because the clock may have been set back. */
function isIn({ fromMs, untilMs }: Period, nowMs: number): boolean {
  return nowMs >= fromMs && nowMs < untilMs;
}
