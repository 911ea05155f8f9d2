import { expect, it } from 'vitest';
import { createRetryBudget } from '../../../../gateway/request/forward/upstream/retry-budget.ts';

function granted(budget: ReturnType<typeof createRetryBudget>, nowMs: number): number {
  let count = 0;
  while (count < 1_000 && budget.takeRetry(nowMs)) count++;
  return count;
}

it('a few retries are allowed however few requests there are', () => {
  expect(granted(createRetryBudget({ ratio: 0.2, floor: 10, windowMs: 10_000 }), 0)).toBe(10);
});

it('retries are limited to a share of the requests in each window', () => {
  const budget = createRetryBudget({ ratio: 0.2, floor: 10, windowMs: 10_000 });
  for (let i = 0; i < 100; i++) budget.countRequest(5_000);
  expect(granted(budget, 9_999)).toBe(30);
  expect(granted(budget, 10_000)).toBe(10);
});
