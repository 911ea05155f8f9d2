/**
 * Windows that have just begun and go on for ten and twenty minutes, so that no test stands on a boundary by chance.
 * A clock that is a minute and a half behind is still in the ones before.
 */
export function freshWindows(nowMs: number): { minuteMs: number; dayMs: number } {
  return { minuteMs: freshLengthMs(nowMs, 600_000), dayMs: freshLengthMs(nowMs, 1_200_000) };
}

/** The first length of at least `atLeastMs` whose present window is in its first half minute. */
function freshLengthMs(nowMs: number, atLeastMs: number): number {
  let lengthMs = atLeastMs;
  while (nowMs % lengthMs > 30_000) lengthMs += 1;
  return lengthMs;
}
