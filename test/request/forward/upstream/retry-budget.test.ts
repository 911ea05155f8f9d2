import { expect, it } from 'vitest';
import { RetryBudget } from '../../../../gateway/request/forward/upstream/retry-budget.ts';

const bounds = { retryBudgetRatio: 0.2, retryBudgetFloor: 10, retryBudgetWindowMs: 10_000 };

function granted(budget: RetryBudget, nowMs: number): number {
  let count = 0;
  while (count < 1_000 && budget.takeRetry(nowMs)) count++;
  return count;
}

it('a few retries are allowed for any number of requests', () => {
  expect(granted(new RetryBudget(bounds), 0)).toBe(10);
});

it('retries are limited to a share of the requests in each window', () => {
  const budget = new RetryBudget(bounds);
  for (let i = 0; i < 100; i++) budget.countRequest(5_000);
  expect(granted(budget, 9_999)).toBe(30);
  expect(granted(budget, 10_000)).toBe(10);
});
