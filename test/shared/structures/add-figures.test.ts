import { expect, it } from 'vitest';
import { addFigures } from '../../../gateway/shared/structures/add-figures.ts';

it('addFigures adds numbers in maps, lists and objects, copies members of only one side, and changes neither side', () => {
  const one = {
    total: 1,
    byStatus: new Map([[200, new Map([['admitted', 3]])]]),
    buckets: [1, 0, 2],
    onlyHere: { sumMs: 0.5 },
  };
  const other: typeof one = {
    total: 2,
    byStatus: new Map([
      [200, new Map([['admitted', 4]])],
      [429, new Map([['refused', 5]])],
    ]),
    buckets: [10],
    onlyHere: { sumMs: 0 },
  };
  const copies = structuredClone([one, other]);
  const sum = {
    total: 3,
    byStatus: new Map([
      [200, new Map([['admitted', 7]])],
      [429, new Map([['refused', 5]])],
    ]),
    buckets: [11, 0, 2],
    onlyHere: { sumMs: 0.5 },
  };
  expect(addFigures(one, other)).toEqual(sum);
  expect(addFigures(other, one)).toEqual(sum);
  expect([one, other]).toEqual(copies);
});
