/**
 * A Map for what comes and goes with requests. V8 links the table of a Map to the one that replaces it when the Map grows,
 * shrinks or is cleared. Once such a dead table is in the old generation, all that is in the tables after it gets there
 * too, with each request that they held, and only a full collection frees them: of a flood of unknown secrets that was
 * every tenth request. So the entries move to a new Map, which nothing links to, before a table can become old.
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
    // As many as there are, so that moving them costs each deletion the same, however many there are.
    if (this.deleted < Math.max(deletionsMin, this.entries.size)) return;
    this.entries = new Map(this.entries);
    this.deleted = 0;
  }

  clear(): void {
    this.entries = new Map();
    this.deleted = 0;
  }

  /** In the order in which they were set. Whoever deletes on the way has to stop there: the entries may have moved. */
  [Symbol.iterator](): Iterator<[Key, Value]> {
    return this.entries[Symbol.iterator]();
  }
}

const deletionsMin = 128;
