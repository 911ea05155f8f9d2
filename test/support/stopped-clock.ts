import { setTimeout as sleep } from 'node:timers/promises';
import { onTestFinished, vi } from 'vitest';

type Timers = NonNullable<NonNullable<Parameters<typeof vi.useFakeTimers>[0]>['toFake']>;

export interface StoppedClock {
  pass(ms: number): void;
  /** Advances the time in steps, a few turns of the event loop apart, until the promise resolves. */
  passUntil<T>(awaited: Promise<T>, stepMs: number): Promise<T>;
}

/**
 * Stops timers until the end of the test. The timers then expire only when the test advances them (`vi.advanceTimersByTime`), and never
 * because the machine is busy.
 *
 * @param toFake the functions to replace; all other functions go on
 */
export function stopTimers(toFake: Timers = ['setTimeout', 'clearTimeout']): void {
  vi.useFakeTimers({ toFake });
  onTestFinished(() => void vi.useRealTimers());
}

/**
 * Stops the clock of `performance.now` until the end of the test. Deadlines of exchanges and of connections to targets use this clock. A
 * deadline therefore expires only when the test moves the clock, and never because the machine is busy. Timers go on.
 */
export function stopClock(): StoppedClock {
  // The time is a whole number, because fractions would make the elapsed time inexact.
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
