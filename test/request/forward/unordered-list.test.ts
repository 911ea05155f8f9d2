import { expect, it } from 'vitest';
import { UnorderedList } from '../../../gateway/request/forward/unordered-list.ts';

it('an unordered list has exactly the items that were added and not removed', () => {
  const list = new UnorderedList<{ name: number; index: number }>();
  const items = Array.from({ length: 50 }, (_, name) => ({ name, index: 0 }));
  for (const item of items) list.add(item);
  for (const item of items) if (item.name % 3 !== 0) list.remove(item);
  // Removing an item that is no longer in the list has no effect.
  for (const item of items) if (item.name % 3 !== 0) list.remove(item);
  const left = list.items().map(({ name }) => name);
  expect(left.toSorted((a, b) => a - b)).toEqual(
    items.map(({ name }) => name).filter((name) => name % 3 === 0),
  );
});
