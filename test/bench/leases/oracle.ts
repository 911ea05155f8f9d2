/** A request of a process, and its decision. All processes use the clock `monotonicUs`. */
export interface LoggedRequest {
  /** When the request arrived, and when its decision was known, in µs. */
  readonly beganUs: number;
  readonly endedUs: number;
  /** `unknown`: the process died before the decision was known. `endedUs` is then Infinity, and Redis may have charged the request. */
  readonly kind: 'admitted' | 'refused' | 'banned' | 'unknown';
  readonly remaining: number;
  /** The charged window. For a refusal: the full window. */
  readonly window: number;
  /** The window of Redis's clock when the request arrived. */
  readonly beganIn: number;
}

/** How decisions differ from decisions of a sequential limiter. */
export interface Verdict {
  readonly admitted: number;
  readonly refused: number;
  readonly unknown: number;
  /** The admitted units beyond the limit of a window. */
  readonly over: number;
  /** The requests that were charged to a window that had ended before they arrived. */
  readonly afterWindow: number;
  /** The refusals at a time when fewer requests than the limit had arrived and were admitted. */
  readonly refusedThoughFits: number;
  /** The units of a window that refused requests and yet admitted fewer than the limit. */
  readonly neverUsed: number;
  /** The difference between the shown and the nearest possible `remaining`, over all admitted requests. */
  readonly deviationMean: number;
  readonly deviationMax: number;
  /** The admitted requests that show the same `remaining` as an earlier request of the window. */
  readonly shownTwice: number;
}

/**
 * Compares decisions with a sequential limiter of one window. Concurrent requests may be put into any order, and an unknown request
 * counts as admitted if that helps. An order without a wrong refusal exists exactly if, for each refusal, as many requests as the limit were
 * admitted and had arrived before the refusal was known.
 */
export function judge(requests: readonly LoggedRequest[], limit: number): Verdict {
  const windows = Map.groupBy(requests, ({ window }) => window);
  const sum = {
    admitted: 0,
    refused: 0,
    unknown: 0,
    over: 0,
    refusedThoughFits: 0,
    neverUsed: 0,
    shownTwice: 0,
  };
  let [deviations, deviationMax] = [0, 0];
  for (const ofWindow of windows.values()) {
    const admitted = ofWindow.filter(({ kind }) => kind === 'admitted');
    const refused = ofWindow.filter(({ kind }) => kind === 'refused');
    const unknown = ofWindow.filter(({ kind }) => kind === 'unknown');
    const charged = [...admitted, ...unknown];
    const began = Float64Array.from(charged, ({ beganUs }) => beganUs).sort();
    const ended = Float64Array.from(charged, ({ endedUs }) => endedUs).sort();
    sum.admitted += admitted.length;
    sum.refused += refused.length;
    sum.unknown += unknown.length;
    sum.over += Math.max(0, admitted.length - limit);
    sum.refusedThoughFits += refused.filter(({ endedUs }) => countBelow(began, endedUs) < limit).length;
    if (refused.length > 0) sum.neverUsed += Math.max(0, limit - charged.length);
    sum.shownTwice += admitted.length - new Set(admitted.map(({ remaining }) => remaining)).size;
    for (const { beganUs, endedUs, remaining } of admitted) {
      const least = limit - countBelow(began, endedUs);
      const most = limit - 1 - countBelow(ended, beganUs);
      const deviation = Math.max(0, least - remaining, remaining - most);
      deviations += deviation;
      deviationMax = Math.max(deviationMax, deviation);
    }
  }
  const afterWindow = requests.filter((one) => one.kind === 'admitted' && one.beganIn > one.window).length;
  return { ...sum, afterWindow, deviationMean: deviations / Math.max(1, sum.admitted), deviationMax };
}

/** The number of elements of a sorted array that are less than `value`. */
function countBelow(sorted: Float64Array, value: number): number {
  let [from, to] = [0, sorted.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if ((sorted[middle] as number) < value) from = middle + 1;
    else to = middle;
  }
  return from;
}
