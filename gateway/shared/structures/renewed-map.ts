/**
 * A Map for entries that come and go with requests. When a Map grows, shrinks or is cleared, V8 links its old table to the new one. If the
 * old table is in the old generation of the heap, V8 also moves the entries of newer tables there, and only a full garbage collection frees
 * them. With a plain Map, a flood of unknown secrets left the entry of every tenth request in memory. This class therefore moves the
 * entries to a new Map before V8 can move a table to the old generation.
 */
export class RenewedMap<Key, Value> {
  private entries = new Map<Key, Value>();
  private deleted = 0;

  get size(): number {
    return this.entries.size;
  }

  get(key: Key): Value | undefined {
    return this.entries.get(key);
  }

  has(key: Key): boolean {
    return this.entries.has(key);
  }

  set(key: Key, value: Value): void {
    this.entries.set(key, value);
  }

  delete(key: Key): void {
    if (!this.entries.delete(key)) return;
    this.deleted++;
    // Entries move only after at least as many deletions as there are entries, so the average cost of a deletion is constant.
    if (this.deleted < Math.max(deletionsMin, this.entries.size)) return;
    this.entries = new Map(this.entries);
    this.deleted = 0;
  }

  clear(): void {
    this.entries = new Map();
    this.deleted = 0;
  }

  /** Iterates in insertion order. Stop after a deletion, because the entries may have moved to a new Map. */
  [Symbol.iterator](): Iterator<[Key, Value]> {
    return this.entries[Symbol.iterator]();
  }
}

const deletionsMin = 128;
