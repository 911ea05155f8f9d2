import { describe, expect, it } from 'vitest';
import { CheckTurns } from '../../../../gateway/request/forward/upstream/check-turns.ts';
import { defaultBounds } from '../../../../gateway/shared/timeouts-and-sizes.ts';

/** A generator of the same pseudo-random numbers in each run (mulberry32). */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

interface Simulation {
  readonly processes: number;
  readonly untilMs: number;
  /** The time from which the target is suspect for every process. */
  readonly suspectFromMs?: number;
  /** The number of checkers that the processes know at a time; by default, all processes. */
  readonly checkersAt?: (nowMs: number) => number;
}

/** The times at which the processes of a fleet begin a check of one target. A check takes no time. */
function startsOf({
  processes,
  untilMs,
  suspectFromMs = Number.POSITIVE_INFINITY,
  checkersAt = () => processes,
}: Simulation): readonly number[] {
  const random = seeded(processes);
  const starts = Array.from({ length: processes }, () => {
    const turns = new CheckTurns(defaultBounds, random);
    const own: number[] = [];
    for (let nowMs = 1_000 * random(); nowMs < untilMs; nowMs += turns.pauseMs(checkersAt(nowMs))) {
      const isSuspect = nowMs >= suspectFromMs;
      if (turns.isDue({ nowMs, checkers: checkersAt(nowMs), isSuspect })) own.push(nowMs);
    }
    return own;
  });
  return starts.flat().toSorted((a, b) => a - b);
}

const within = (starts: readonly number[], fromMs: number, toMs: number) =>
  starts.filter((startMs) => startMs >= fromMs && startMs < toMs).length;

describe('a fleet', () => {
  it.each([
    [1, 4.5, 5.5],
    [2, 9, 11],
    [3, 6, 10],
    [8, 8, 10],
    [50, 8, 10],
    [500, 25, 35],
    [2_000, 40, 50],
  ])('of %i processes checks a healthy target %d to %d times a second', (processes, least, most) => {
    const starts = startsOf({ processes, untilMs: 140_000 });
    const perSecond = within(starts, 60_000, 140_000) / 80;
    expect(perSecond).toBeGreaterThanOrEqual(least);
    expect(perSecond).toBeLessThanOrEqual(most);
  });

  it.each([8, 11, 50, 500, 2_000])(
    'of %i processes checks a target that becomes suspect at most 50 times a second on average, and at most 90 times in any second',
    (processes) => {
      const starts = startsOf({ processes, untilMs: 160_000, suspectFromMs: 100_000 });
      const inSecond = starts.map((startMs) => within(starts, startMs, startMs + 1_000));
      expect(Math.max(...inSecond.filter((_, index) => (starts[index] ?? 0) > 60_000))).toBeLessThanOrEqual(
        90,
      );
      expect(within(starts, 100_000, 160_000) / 60).toBeLessThanOrEqual(50);
    },
  );

  it.each([3, 8, 10, 50, 500])(
    'of %i processes begins three checks within 400 ms after a target becomes suspect',
    (processes) => {
      const starts = startsOf({ processes, untilMs: 102_000, suspectFromMs: 100_000 });
      expect(within(starts, 100_000, 100_400)).toBeGreaterThanOrEqual(3);
    },
  );

  it('of up to ten processes lets each process check a suspect target within 300 ms of its last check', () => {
    for (const processes of [3, 10]) {
      const starts = startsOf({ processes, untilMs: 110_000, suspectFromMs: 100_000 });
      expect(within(starts, 100_300, 110_000) / processes).toBeGreaterThanOrEqual(9.7 / 0.3);
    }
  });

  it('checks a target as a single process does after Redis is lost', () => {
    const checkersAt = (nowMs: number) => (nowMs < 100_000 ? 500 : 1);
    const starts = startsOf({ processes: 500, untilMs: 102_000, checkersAt });
    expect(within(starts, 101_000, 102_000)).toBeGreaterThanOrEqual(2_400);
  });
});
