import { minuteMs } from '../../../shared/words/figures.js';

/** Counts events per name and minute, with a limit. */
export interface MinuteCounts {
  /** Adds one event. @returns the seconds until another event of this name is allowed; undefined below the limit */
  count(name: string): number | undefined;
  /** The number of names that are counted at present. */
  readonly size: number;
}

interface Counted {
  readonly untilMs: number;
  times: number;
}

/**
 * Keeps the counts in the memory of this process. A count starts with the first event of a name, and is reset one
 * minute later. If there are more than `namesMax` names, the oldest count is dropped.
 */
export function createMinuteCounts({
  perMinuteMax,
  namesMax,
  nowMs,
}: {
  readonly perMinuteMax: number;
  readonly namesMax: number;
  readonly nowMs: () => number;
}): MinuteCounts {
  const byName = new Map<string, Counted>();

  function countedOf(name: string, atMs: number): Counted {
    const before = byName.get(name);
    if (before !== undefined && before.untilMs > atMs) return before;
    // The name is deleted and added again, which moves it to the end of the Map. The Map is therefore ordered by the
    // start of each count.
    byName.delete(name);
    for (const [oldest, { untilMs }] of byName) {
      if (untilMs > atMs && byName.size < namesMax) break;
      byName.delete(oldest);
    }
    const counted = { untilMs: atMs + minuteMs, times: 0 };
    byName.set(name, counted);
    return counted;
  }

  return {
    count(name) {
      const atMs = nowMs();
      const counted = countedOf(name, atMs);
      counted.times += 1;
      if (counted.times <= perMinuteMax) return undefined;
      return Math.max(1, Math.ceil((counted.untilMs - atMs) / 1_000));
    },
    get size() {
      return byName.size;
    },
  };
}
