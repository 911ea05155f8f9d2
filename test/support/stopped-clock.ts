import { setTimeout as sleep } from 'node:timers/promises';
import { onTestFinished, vi } from 'vitest';

type Timers = NonNullable<NonNullable<Parameters<typeof vi.useFakeTimers>[0]>['toFake']>;

export interface StoppedClock {
  pass(ms: number): void;
  /** Lets time pass, a step in each few turns of the event loop, until this has happened. */
  passUntil<T>(awaited: Promise<T>, stepMs: number): Promise<T>;
}

/**
 * From now until the end of the test timers expire when the test says so (`vi.advanceTimersByTime`), and none because the
 * machine was busy.
 *
 * @param toFake the functions of which that holds; all others go on
 */
export function stopTimers(toFake: Timers = ['setTimeout', 'clearTimeout']): void {
  vi.useFakeTimers({ toFake });
  onTestFinished(() => void vi.useRealTimers());
}

/**
 * Stops the clock of `performance.now` until the end of the test. What is timed by it, as the deadlines of exchanges and
 * connections to targets are, then expires when the test says so, and never because the machine was busy. Timers go on.
 */
export function stopClock(): StoppedClock {
  // A whole number, so that exactly as much passes as a test says.
  let nowMs = Math.ceil(performance.now());
  const now = vi.spyOn(performance, 'now').mockImplementation(() => nowMs);
  onTestFinished(() => now.mockRestore());

  return {
    pass(ms) {
      nowMs += ms;
    },
    async passUntil(awaited, stepMs) {
      let isPending = true;
      const over = () => {
        isPending = false;
      };
      awaited.then(over, over);
      while (isPending) {
        await sleep(20);
        nowMs += stepMs;
      }
      return awaited;
    },
  };
}
