/** Counts per name and minute, with a limit. */
export interface MinuteCounts {
  /** Counts once. @returns the seconds that the name must wait; undefined below the limit */
  count(name: string): number | undefined;
  /** Number of remembered names. */
  readonly size: number;
}

interface Counted {
  readonly untilMs: number;
  times: number;
}

const minuteMs = 60_000;

/**
 * Counts in this process's memory. The minute of a name begins with its first count. When there are more than `namesMax` names,
 * the name whose minute began first is forgotten.
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
    // Deleting first moves the name to the end, so the Map lists the oldest names first.
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
