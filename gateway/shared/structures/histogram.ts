/** Upper bounds. The first is about as long as the time that the gateway itself adds to a request. */
export const bucketsSeconds = [
  0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30,
] as const;

const bucketsMs = bucketsSeconds.map((seconds) => seconds * 1_000);

/** The last bucket is for durations above the last bound. */
export function bucketOf(durationMs: number): number {
  let bucket = 0;
  while (bucket < bucketsMs.length && durationMs > (bucketsMs[bucket] ?? 0)) bucket++;
  return bucket;
}

/**
 * In ms. Assumes an even distribution of the logarithms inside a bucket, because a bucket usually has more durations at its beginning than at
 * its end. The first bucket begins at 0, so its durations themselves count as even. A quantile above all bounds is reported as the last bound.
 */
export function quantileMs(counts: readonly number[], share: number): number {
  const rank = share * counts.reduce((sum, count) => sum + count, 0);
  let below = 0;
  for (const [bucket, count] of counts.entries()) {
    const endMs = bucketsMs[bucket];
    if (endMs === undefined) break;
    if (count > 0 && below + count >= rank) {
      const startMs = bucketsMs[bucket - 1];
      const part = (rank - below) / count;
      const ms = startMs === undefined ? part * endMs : startMs * (endMs / startMs) ** part;
      return Math.round(ms * 1_000) / 1_000;
    }
    below += count;
  }
  return bucketsMs.at(-1) ?? 0;
}

export class Histogram {
  /** Not cumulative. The last bucket counts durations above the last bound. */
  readonly counts: number[] = Array(bucketsMs.length + 1).fill(0);
  sumMs = 0;

  add(durationMs: number): void {
    const bucket = bucketOf(durationMs);
    this.counts[bucket] = (this.counts[bucket] ?? 0) + 1;
    this.sumMs += durationMs;
  }
}
