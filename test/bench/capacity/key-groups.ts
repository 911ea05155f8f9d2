/** A group of keys that send requests at the same rate. */
export interface KeyGroup {
  readonly keys: number;
  /** The share of all requests that each key of the group sends. */
  readonly share: number;
}

/** Each of the 100 most active keys is a separate group. */
const exactRanks = 100;
/** The size of a larger group, divided by the rank of the group's first key. */
const groupWidth = 0.05;

/**
 * Divides the requests among the keys: the request rate of the key with rank i is proportional to i^-skew (Zipf's law). With skew 0 all
 * keys have the same rate. Sums over a million keys are cheap, because the keys form only about 300 groups. The shares of all keys add up
 * to 1.
 */
export function keyGroups(keys: number, skew: number): readonly KeyGroup[] {
  if (skew === 0) return [{ keys, share: 1 / keys }];
  const groups: KeyGroup[] = [];
  for (let rank = 1; rank <= keys; ) {
    const width = rank <= exactRanks ? 1 : Math.min(keys - rank + 1, Math.ceil(rank * groupWidth));
    groups.push({ keys: width, share: meanWeight(rank, width, skew) });
    rank += width;
  }
  const total = sumOver(groups, ({ share }) => share);
  return groups.map((group) => ({ keys: group.keys, share: group.share / total }));
}

/** The mean of rank^-skew over `width` ranks. An integral approximates the mean of several ranks. */
function meanWeight(rank: number, width: number, skew: number): number {
  if (width === 1) return rank ** -skew;
  const [from, to] = [rank - 0.5, rank + width - 0.5];
  const integral = skew === 1 ? Math.log(to / from) : (to ** (1 - skew) - from ** (1 - skew)) / (1 - skew);
  return integral / width;
}

/** The sum of a figure over all keys. */
export function sumOver(groups: readonly KeyGroup[], figureOfOne: (group: KeyGroup) => number): number {
  return groups.reduce((sum, group) => sum + group.keys * figureOfOne(group), 0);
}
