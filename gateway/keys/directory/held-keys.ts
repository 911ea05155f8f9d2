import type { Period } from '../../shared/model.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import type { FoundKey } from './store/directory-store.ts';

/** A key as this process has read it. */
export interface HeldKey extends Omit<FoundKey, 'kind'> {
  /** In which it is used. Whoever keeps something that follows from it keeps this too: it ends early when the key changes. */
  readonly period: Period;
  /**
   * The same where it is refused: nothing is decided for it then, so that no decision would show that it has changed. It is
   * read again sooner.
   */
  readonly refusalPeriod: Period;
}

/** What this process has read of the directory: keys, and digests that no key has. Of both those that were read last. */
export class HeldKeys {
  private readonly bounds: HeldBounds;
  private readonly byId = new Map<string, HeldKey>();
  private readonly byDigest = new Map<string, HeldKey>();
  /** About what all of them take in memory. */
  private bytes = 0;
  /**
   * Digests that no key has. All are forgotten together, once the first of them has been here for `directoryAbsentMs`: under a
   * flood an instant for each digest costs more than looking a few of them up again.
   */
  private absent = new Set<string>();
  private absentPeriod: Period = { fromMs: 0, untilMs: 0 };

  constructor(bounds: HeldBounds) {
    this.bounds = bounds;
  }

  get size(): number {
    return this.byId.size;
  }

  /** @returns `absent`: no key has it; undefined: that is not known, or not any more */
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
      // Not `clear`: `renewed-map.ts` says why.
      this.absent = new Set();
      this.absentPeriod = { fromMs: nowMs, untilMs: nowMs + absentMs };
    }
    this.absent.add(digest);
  }

  /** The store gave no answer: what was read before is used for a little longer. @returns undefined when nothing was */
  extend(digest: string, nowMs: number): HeldKey | undefined {
    const held = this.byDigest.get(digest);
    if (held === undefined) return undefined;
    for (const period of [held.period, held.refusalPeriod]) {
      period.fromMs = nowMs;
      period.untilMs = nowMs + this.bounds.directoryAbsentMs;
    }
    return held;
  }

  /** The key has changed. @param generation only if it was read in this one */
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

  /** These digests may belong to a key by now. */
  dropAbsent(digests: Iterable<string>): void {
    for (const digest of digests) this.absent.delete(digest);
  }
}

export type HeldBounds = Pick<
  Bounds,
  | 'directoryCachedMs'
  | 'directoryCachedKeysMax'
  | 'directoryCachedBytesMax'
  | 'directoryAbsentMs'
  | 'directoryAbsentMax'
>;

/** About: an object with its members, a place in two Maps, and what each secret and each operation adds. */
function bytesOf({ secrets, operations = [], ...members }: FoundKey['key']): number {
  let bytes = 100 + 2 * JSON.stringify(members).length + 250 * secrets.length;
  for (const operation of operations) bytes += 32 + operation.length;
  return bytes;
}

/** Not before it began either: the clock may have been set back. */
function isIn({ fromMs, untilMs }: Period, nowMs: number): boolean {
  return nowMs >= fromMs && nowMs < untilMs;
}
