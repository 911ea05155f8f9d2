import { expect, it } from 'vitest';
import { createRetryBudget } from '../../../gateway/forward/upstream/retry-budget.ts';

function granted(budget: ReturnType<typeof createRetryBudget>, nowMs: number): number {
  let count = 0;
  while (count < 1_000 && budget.takeRetry(nowMs)) count++;
  return count;
}

it('a quiet gateway can retry a handful of times', () => {
  expect(granted(createRetryBudget({ ratio: 0.2, floor: 10, windowMs: 10_000 }), 0)).toBe(10);
});

it('retries add no more than their share of the requests, and each window begins anew', () => {
  const budget = createRetryBudget({ ratio: 0.2, floor: 10, windowMs: 10_000 });
  for (let i = 0; i < 100; i++) budget.countRequest(5_000);
  expect(granted(budget, 9_999)).toBe(30);
  expect(granted(budget, 10_000)).toBe(10);
});
