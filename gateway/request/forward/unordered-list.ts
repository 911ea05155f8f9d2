/** An item has its index, so that it can be removed without a search. */
export interface Indexed {
  index: number;
}

/**
 * An unordered list for requests in flight. A Set that changes with every request keeps its outgrown hash tables linked to their
 * successors. Garbage collection then moves finished requests to the old generation: 16 % of the CPU instead of 4 %.
 */
export class UnorderedList<T extends Indexed> {
  private readonly list: T[] = [];

  add(item: T): void {
    item.index = this.list.length;
    this.list.push(item);
  }

  /** Does nothing when the item is not in the list. */
  remove(item: T): void {
    if (this.list[item.index] !== item) return;
    const last = this.list.pop();
    if (last === undefined || last === item) return;
    this.list[item.index] = last;
    last.index = item.index;
  }

  /** A copy, so that items may be removed while the caller iterates. */
  items(): readonly T[] {
    return [...this.list];
  }
}
