interface RetryBudgetOptions {
  /** Retries allowed for each request of the window. */
  readonly ratio: number;
  /** Retries allowed in any window, so that a quiet gateway can retry. */
  readonly floor: number;
  readonly windowMs: number;
}

export interface RetryBudget {
  countRequest(nowMs: number): void;
  /** Takes one retry out of the budget. @returns false when none is left */
  takeRetry(nowMs: number): boolean;
}

/** Limits retries to a share of the requests, so that retries add little load to an upstream that fails under load. */
export function createRetryBudget({ ratio, floor, windowMs }: RetryBudgetOptions): RetryBudget {
  let window = 0;
  let requests = 0;
  let retries = 0;

  function enterWindow(nowMs: number): void {
    const current = Math.floor(nowMs / windowMs);
    if (current === window) return;
    window = current;
    requests = 0;
    retries = 0;
  }

  return {
    countRequest(nowMs) {
      enterWindow(nowMs);
      requests++;
    },
    takeRetry(nowMs) {
      enterWindow(nowMs);
      if (retries >= floor + requests * ratio) return false;
      retries++;
      return true;
    },
  };
}
