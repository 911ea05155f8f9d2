export type StoreClock = ReturnType<typeof createStoreClock>;

/**
 * An estimate of the store's clock, epoch ms, for instants in replies. The offset is measured from the instant at which a call was
 * sent. So the estimate is ahead of the store's clock by the latency of that call, and never behind it. Therefore a refusal from
 * memory ends no later than the announced reset.
 */
export function createStoreClock(nowMs: () => number) {
  let offsetMs = 0;
  return {
    nowMs: () => nowMs() + offsetMs,
    /** Updates the estimate by a call that was sent at `sentMs` (our clock) and decided at `storeNowMs` (the store's clock). */
    observe(sentMs: number, storeNowMs: number) {
      offsetMs = storeNowMs - sentMs;
    },
  };
}
