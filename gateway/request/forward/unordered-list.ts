/** An item has its index, so that it can be removed without a search. */
export interface Indexed {
  index: number;
}

export interface UnorderedList<T extends Indexed> {
  add(item: T): void;
  /** Does nothing when the item is not in the list. */
  remove(item: T): void;
  /** A copy, so that items may be removed while the caller iterates. */
  items(): readonly T[];
}

/**
 * An unordered list for requests in flight. A Set that changes with every request keeps its outgrown hash tables linked to their
 * successors. Garbage collection then moves finished requests to the old generation: 16 % of the CPU instead of 4 %.
 */
export function createUnorderedList<T extends Indexed>(): UnorderedList<T> {
  const items: T[] = [];
  return {
    add(item) {
      item.index = items.length;
      items.push(item);
    },
    remove(item) {
      if (items[item.index] !== item) return;
      const last = items.pop();
      if (last === undefined || last === item) return;
      items[item.index] = last;
      last.index = item.index;
    },
    items: () => [...items],
  };
}
