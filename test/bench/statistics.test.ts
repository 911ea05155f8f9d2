import { expect, test } from 'vitest';
import { ratioOf, ratioOfMedians, spreadOf } from './statistics.ts';

test('the median of an odd and of an even number of rounds', () => {
  expect(spreadOf([3, 1, 2])).toEqual({ median: 2, min: 1, max: 3 });
  expect(spreadOf([4, 1, 2, 3])).toEqual({ median: 2.5, min: 1, max: 4 });
});

test('ratios are computed from the samples of each round, not from medians', () => {
  expect(ratioOf([1, 10, 100], [1, 5, 25])).toEqual({ median: 2, min: 1, max: 4 });
});

test('a stall in one round does not change a ratio of medians', () => {
  expect(ratioOfMedians([20, 22, 900], [10, 11, 12])).toEqual({ median: 2, min: 2, max: 75 });
  expect(ratioOfMedians([], [])).toBeUndefined();
});

test('a round in which only one subject was measured does not count', () => {
  expect(ratioOf([1], [])).toBeUndefined();
});
