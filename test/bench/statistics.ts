/** The median of several rounds, and their range. */
export interface Spread {
  readonly median: number;
  readonly min: number;
  readonly max: number;
}

/** @throws RangeError when there are no values */
export function spreadOf(values: readonly number[]): Spread {
  const sorted = values.toSorted((a, b) => a - b);
  const [min, max] = [sorted[0], sorted.at(-1)];
  const low = sorted[Math.floor((sorted.length - 1) / 2)];
  const high = sorted[Math.ceil((sorted.length - 1) / 2)];
  if (min === undefined || max === undefined || low === undefined || high === undefined) {
    throw new RangeError('no values');
  }
  return { median: (low + high) / 2, min, max };
}

/**
 * The ratio of `a` to `b` in each round. The two samples of a round are only seconds apart. Other work on the machine therefore affects
 * both samples equally.
 */
export function ratioOf(a: readonly number[], b: readonly number[]): Spread | undefined {
  const ratios = a.flatMap((value, round) => {
    const other = b[round];
    return other === undefined || other === 0 ? [] : [value / other];
  });
  return ratios.length === 0 ? undefined : spreadOf(ratios);
}

/**
 * The median of `a` divided by the median of `b`, with the range of the ratios of single rounds. Use this ratio for the p99 of a round,
 * which a single stall of the machine can raise. A stall affects only one of the two samples of a round. The ratios of rounds therefore
 * vary more than the figures themselves.
 */
export function ratioOfMedians(a: readonly number[], b: readonly number[]): Spread | undefined {
  const rounds = ratioOf(a, b);
  return rounds && { ...rounds, median: spreadOf(a).median / spreadOf(b).median };
}
