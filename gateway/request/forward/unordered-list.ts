/** An item of `UnorderedList`, which stores its own index so that it can be removed without a search. */
export interface Indexed {
  index: number;
}

/**
 * An unordered list for requests in flight. V8's `Set` is slower here: when it grows, each old hash table stays linked to the new
 * table. Garbage collection then moves finished requests to the old generation. Garbage collection took 16 % of the CPU with a Set,
 * and 4 % with this list.
 */
export class UnorderedList<T extends Indexed> {
  private readonly list: T[] = [];

  add(item: T): void {
    item.index = this.list.length;
    this.list.push(item);
  }

  /** Removes an item. Does nothing when the item is not in the list. */
  remove(item: T): void {
    if (this.list[item.index] !== item) return;
    const last = this.list.pop();
    if (last === undefined || last === item) return;
    this.list[item.index] = last;
    last.index = item.index;
  }

  /** Returns a copy of the list. The caller may remove items while it iterates over the copy. */
  items(): readonly T[] {
    return [...this.list];
  }
}
