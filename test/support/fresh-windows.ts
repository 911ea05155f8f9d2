import type { WindowsMs } from '../../gateway/shared/calendar-windows.ts';

/**
 * Returns windows of at least five minutes that began in the last 30 seconds, so that no test crosses a boundary by chance. A test may use
 * a clock that is 90 seconds slow. On this clock, the windows have not begun yet.
 *
 * A later call may return other lengths, so processes that count together need the lengths of a single call.
 */
export function freshWindows(nowMs: number): WindowsMs {
  return {
    second: freshLengthMs(nowMs, 300_000),
    minute: freshLengthMs(nowMs, 600_000),
    hour: freshLengthMs(nowMs, 900_000),
    day: freshLengthMs(nowMs, 1_200_000),
    month: freshLengthMs(nowMs, 1_500_000),
  };
}

/** Returns the shortest length of at least `atLeastMs` whose window began in the last 30 seconds. */
function freshLengthMs(nowMs: number, atLeastMs: number): number {
  let lengthMs = atLeastMs;
  while (nowMs % lengthMs > 30_000) lengthMs += 1;
  return lengthMs;
}
