/**
 * A hash table from the hash of a text to the place of a record, a whole number from 1, with open addressing. The caller reads the records,
 * because several texts may have the same hash. The table has no room for more places than slots, and searches are short only if many slots
 * are free. Its two arrays need no garbage collection and can be transferred to another thread.
 */
export class PlaceTable {
  readonly hashes: Uint32Array;
  /** 0: free. */
  readonly places: Uint32Array;
  private readonly mask: number;

  /** @param arrays the arrays of a table, or the number of slots of a new table; a power of two */
  constructor(arrays: Pick<PlaceTable, 'hashes' | 'places'> | number) {
    const slots = typeof arrays === 'number' ? arrays : arrays.places.length;
    this.hashes = typeof arrays === 'number' ? new Uint32Array(slots) : arrays.hashes;
    this.places = typeof arrays === 'number' ? new Uint32Array(slots) : arrays.places;
    this.mask = slots - 1;
  }

  *find(hash: number): Generator<number, void> {
    for (let slot = hash & this.mask; ; slot = this.next(slot)) {
      const place = this.places[slot];
      if (!place) return;
      if (this.hashes[slot] === hash) yield place;
    }
  }

  add(hash: number, place: number): void {
    let slot = hash & this.mask;
    while (this.places[slot]) slot = this.next(slot);
    this.hashes[slot] = hash;
    this.places[slot] = place;
  }

  /** Moves later entries of the same run so that `find` still reaches them. */
  delete(hash: number, place: number): void {
    let free = hash & this.mask;
    while (this.hashes[free] !== hash || this.places[free] !== place) {
      if (!this.places[free]) return;
      free = this.next(free);
    }
    for (let slot = this.next(free); this.places[slot]; slot = this.next(slot)) {
      const home = (this.hashes[slot] ?? 0) & this.mask;
      // The entry may move if its home is not between the free slot and its present slot.
      if (((slot - home) & this.mask) < ((slot - free) & this.mask)) continue;
      this.hashes[free] = this.hashes[slot] ?? 0;
      this.places[free] = this.places[slot] ?? 0;
      free = slot;
    }
    this.places[free] = 0;
  }

  private next(slot: number): number {
    return (slot + 1) & this.mask;
  }
}

/** FNV-1a over all characters, because hand-written digests and ids may share a prefix. */
export function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return hash >>> 0;
}
