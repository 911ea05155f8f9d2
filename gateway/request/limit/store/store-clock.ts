/** What this process knows of the store's clock, so that it can judge announced instants without asking. */
export interface StoreClock {
  /** The store's clock, estimated, epoch ms. */
  nowMs(): number;
  /** Learns from a call that was sent at `sentMs` (our clock) and decided at `storeNowMs` (the store's). */
  observe(sentMs: number, storeNowMs: number): void;
}

/**
 * The offset is measured from the moment a call was sent, so the estimate is ahead of the store's clock by the latency of
 * that call, and never behind it. Therefore a refusal from memory ends no later than the reset that was announced.
 */
export function createStoreClock(nowMs: () => number): StoreClock {
  let offsetMs = 0;
  return {
    nowMs: () => nowMs() + offsetMs,
    observe(sentMs, storeNowMs) {
      offsetMs = storeNowMs - sentMs;
    },
  };
}
