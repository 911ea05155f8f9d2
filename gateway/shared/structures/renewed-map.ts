/**
 * A Map for entries that come and go with requests. V8 links the table of a Map to its successor when the Map grows, shrinks or is cleared.
 * Once a dead table is in the old generation, V8 also moves the entries of its successors there, and only a full garbage collection frees
 * them. With a plain Map, a flood of unknown secrets left the entry of every tenth request in memory. The entries therefore move to a new
 * Map before a table can become old.
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
    // The entries move after as many deletions as there are entries, so that each deletion has a constant amortised cost.
    if (this.deleted < Math.max(deletionsMin, this.entries.size)) return;
    this.entries = new Map(this.entries);
    this.deleted = 0;
  }

  clear(): void {
    this.entries = new Map();
    this.deleted = 0;
  }

  /** Iterates in insertion order. The caller must stop the iteration after a deletion, because the entries may have moved to a new Map. */
  [Symbol.iterator](): Iterator<[Key, Value]> {
    return this.entries[Symbol.iterator]();
  }
}

const deletionsMin = 128;
