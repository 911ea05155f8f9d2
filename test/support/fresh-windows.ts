import type { WindowsMs } from '../../gateway/limit/calendar-windows.ts';

/**
 * Windows that have just begun and go on for five minutes or more, so that no test stands on a boundary by chance.
 * A clock that is a minute and a half behind is still in the ones before.
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

/** The first length of at least `atLeastMs` whose present window is in its first half minute. */
function freshLengthMs(nowMs: number, atLeastMs: number): number {
  let lengthMs = atLeastMs;
  while (nowMs % lengthMs > 30_000) lengthMs += 1;
  return lengthMs;
}
