/** Upper bounds of the buckets, seconds: the first ends where a gateway's own share of a request does. */
export const bucketsSeconds = [
  0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30,
] as const;

const bucketsMs = bucketsSeconds.map((seconds) => seconds * 1_000);

/** The bucket that a duration falls into, from 0; the last, behind all bounds, is for what is longer. */
export function bucketOf(durationMs: number): number {
  let bucket = 0;
  while (bucket < bucketsMs.length && durationMs > (bucketsMs[bucket] ?? 0)) bucket++;
  return bucket;
}

/** Durations counted by bucket, in plain numbers: what a request pays is one search among sixteen. */
export class Histogram {
  /** How many fell into each bucket and no earlier one; the last counts what is beyond all. */
  readonly counts: number[] = Array(bucketsMs.length + 1).fill(0);
  sumMs = 0;

  add(durationMs: number): void {
    const bucket = bucketOf(durationMs);
    this.counts[bucket] = (this.counts[bucket] ?? 0) + 1;
    this.sumMs += durationMs;
  }
}
