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

/**
 * The duration that this share of the counted ones did not exceed, in ms. Durations are taken to be spread evenly inside a
 * bucket, as Prometheus does. Of durations beyond all buckets only the last bound is known.
 */
export function quantileMs(counts: readonly number[], share: number): number {
  const rank = share * counts.reduce((sum, count) => sum + count, 0);
  let below = 0;
  for (const [bucket, count] of counts.entries()) {
    const endMs = bucketsMs[bucket];
    if (endMs === undefined) break;
    if (count > 0 && below + count >= rank) {
      const startMs = bucketsMs[bucket - 1] ?? 0;
      const ms = startMs + ((rank - below) / count) * (endMs - startMs);
      return Math.round(ms * 1_000) / 1_000;
    }
    below += count;
  }
  return bucketsMs.at(-1) ?? 0;
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
