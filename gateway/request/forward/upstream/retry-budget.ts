import type { Bounds } from '../../../shared/timeouts-and-sizes.ts';

type BudgetBounds = Pick<Bounds, 'retryBudgetRatio' | 'retryBudgetFloor' | 'retryBudgetWindowMs'>;

/** Limits retries to a share of the requests, so that retries add little load to an overloaded upstream. */
export class RetryBudget {
  private readonly bounds: BudgetBounds;
  private window = 0;
  private requests = 0;
  private retries = 0;

  constructor(bounds: BudgetBounds) {
    this.bounds = bounds;
  }

  countRequest(nowMs: number): void {
    this.enterWindow(nowMs);
    this.requests++;
  }

  /** Takes one retry out of the budget. @returns false when no retry is left */
  takeRetry(nowMs: number): boolean {
    const { retryBudgetFloor, retryBudgetRatio } = this.bounds;
    this.enterWindow(nowMs);
    if (this.retries >= retryBudgetFloor + this.requests * retryBudgetRatio) return false;
    this.retries++;
    return true;
  }

  private enterWindow(nowMs: number): void {
    const current = Math.floor(nowMs / this.bounds.retryBudgetWindowMs);
    if (current === this.window) return;
    this.window = current;
    this.requests = 0;
    this.retries = 0;
  }
}
