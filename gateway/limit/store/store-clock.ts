/** What this process knows of the store's clock, so that it can judge announced instants without asking. */
export interface StoreClock {
  /** The store's clock, estimated, epoch ms. */
  nowMs(): number;
  /** Learns from a call that was sent at `sentMs` (our clock) and decided at `storeNowMs` (the store's). */
  observe(sentMs: number, storeNowMs: number): void;
}

/**
 * The offset is taken against the moment of sending, so the estimate runs ahead of the store by that call's latency and
 * never behind: a remembered refusal cannot outlast the instant that was announced.
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
