export type StoreClock = ReturnType<typeof createStoreClock>;

/**
 * Estimates the store's clock in epoch ms. The offset is the time of the store's decision minus the local time at which the call was sent.
 * The estimate is therefore never behind the store's clock. It is ahead by at most the latency of the call. The process therefore never
 * refuses a request from memory after the announced reset.
 */
export function createStoreClock(nowMs: () => number) {
  let offsetMs = 0;
  return {
    nowMs: () => nowMs() + offsetMs,
    /**
     * Updates the estimate. @param sentMs when a call was sent, on the local clock. @param storeNowMs the time of the decision, on the
     * store's clock
     */
    observe(sentMs: number, storeNowMs: number) {
      offsetMs = storeNowMs - sentMs;
    },
  };
}
