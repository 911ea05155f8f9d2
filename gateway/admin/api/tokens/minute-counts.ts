/** Counts events per name and minute, with a limit. */
export interface MinuteCounts {
  /** Adds one event. @returns the seconds until the name may have another event; undefined below the limit */
  count(name: string): number | undefined;
  /** The number of names with a count. */
  readonly size: number;
}

interface Counted {
  readonly untilMs: number;
  times: number;
}

const minuteMs = 60_000;

/**
 * Counts in the memory of this process. The minute of a name begins with its first event. Above `namesMax` names, the
 * count whose minute began first is dropped.
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
    // Deleting the name first moves it to the end of the Map, so the Map is ordered by the beginning of the minute.
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
