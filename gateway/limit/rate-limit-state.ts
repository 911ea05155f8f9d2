import type { Limits, RateLimitState, Window } from '../model.ts';
import type { WindowLengths } from './store/decide-quota.ts';

/** The counts that a rateLimit is made of. */
export interface WindowUse {
  readonly minute: number;
  readonly minuteUsed: number;
  readonly day: number;
  readonly dayUsed: number;
}

/** Where a key stands in its two windows at `nowMs`. */
export function rateLimit(
  use: WindowUse,
  limits: Limits,
  lengths: WindowLengths,
  nowMs: number,
): RateLimitState {
  const minute: Window = {
    name: 'minute',
    limit: limits.perMinute,
    remaining: Math.max(0, limits.perMinute - use.minuteUsed),
    resetMs: (use.minute + 1) * lengths.minuteMs,
    windowSeconds: lengths.minuteMs / 1000,
  };
  const day: Window = {
    name: 'day',
    limit: limits.perDay,
    remaining: Math.max(0, limits.perDay - use.dayUsed),
    resetMs: (use.day + 1) * lengths.dayMs,
    windowSeconds: lengths.dayMs / 1000,
  };
  return { nowMs, windows: [minute, day], inForce: inForce(minute, day) };
}

/** The window that would refuse first: smallest remaining, on a tie the one that resets later. */
function inForce(minute: Window, day: Window): Window {
  if (minute.remaining !== day.remaining) return minute.remaining < day.remaining ? minute : day;
  return minute.resetMs > day.resetMs ? minute : day;
}

/** When a request finds room again: the latest reset among the spent windows, 0 when none is spent. */
export function roomAtMs({ windows }: RateLimitState): number {
  let atMs = 0;
  for (const { remaining, resetMs } of windows) if (remaining === 0 && resetMs > atMs) atMs = resetMs;
  return atMs;
}

/** During a ban nothing is admitted before `retryAtMs`, whatever the windows have left. */
export function bannedState(
  { nowMs, windows, inForce }: RateLimitState,
  { banUntilMs, retryAtMs }: { readonly banUntilMs: number; readonly retryAtMs: number },
): RateLimitState {
  return { nowMs, windows, inForce: { ...inForce, remaining: 0, resetMs: retryAtMs }, banUntilMs };
}
