/** How often each of many names does something, limited per minute. */
export interface MinuteCounts {
  /** Counts once. @returns how long the name is to wait, seconds; undefined while it is under its limit */
  count(name: string): number | undefined;
  /** How many names are remembered. */
  readonly size: number;
}

interface Counted {
  readonly untilMs: number;
  times: number;
}

const minuteMs = 60_000;

/**
 * Counts in this process's memory, each name in minutes of its own that begin when it is first counted. Of more than
 * `namesMax` names the one that began first is forgotten.
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
    // Deleted first: the oldest are those that a Map lists first.
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
