import { type WindowsMs, windowStartMs } from '../../shared/calendar-windows.ts';
import type { Limits, RateLimitState, Window } from '../../shared/model.ts';
import { limitsAt, type QuotaState, unendedGrant, usedIn } from './store/decide-quota.ts';

interface Terms {
  /** The key's own: a grant is in the state. */
  readonly limits: Limits;
  readonly windowsMs: WindowsMs;
  readonly nowMs: number;
  /** Units in the counts of requests that come after the one that is told. */
  readonly usedLater?: number;
}

/** What a key is told of its windows at `nowMs`. */
export function rateLimitState(
  state: Readonly<QuotaState>,
  { limits, windowsMs, nowMs, usedLater = 0 }: Terms,
): RateLimitState {
  const windows: Window[] = [];
  let inForce: Window | undefined;
  for (const { window: name, max } of limitsAt(nowMs, limits, state.grant)) {
    const index = state[name];
    const lengthMs = windowsMs[name];
    const resetMs = windowStartMs(lengthMs, index + 1);
    const window = {
      name,
      limit: max,
      remaining: Math.max(0, max - state[usedIn[name]] + usedLater),
      resetMs,
      windowSeconds: (resetMs - windowStartMs(lengthMs, index)) / 1000,
    };
    windows.push(window);
    if (inForce === undefined || refusesFirst(window, inForce)) inForce = window;
  }
  if (inForce === undefined) throw new Error('a key without limits passed validation');
  return { nowMs, windows, inForce };
}

/** The window in force is the one that would refuse first: smallest remaining, on a tie the one that resets later. */
function refusesFirst(window: Window, other: Window): boolean {
  if (window.remaining !== other.remaining) return window.remaining < other.remaining;
  return window.resetMs >= other.resetMs;
}

/**
 * When a request of `units` units finds room again, from `fromMs` on: the latest reset among the windows that lack room for it.
 * A grant changes the limits when it begins and when it ends, so the windows are looked at again with the limits of each of
 * these instants that comes before there is room. 0: there is room now. Units above a limit never find room in that window.
 *
 * @param told what `rateLimitState` makes of the same state
 */
export function roomAtMs(
  told: RateLimitState,
  state: Readonly<QuotaState>,
  terms: Terms,
  { units, fromMs = 0 }: { readonly units: number; readonly fromMs?: number },
): number {
  let atMs = Math.max(fromMs, lastReset(told, units));
  const grant = unendedGrant(state.grant, terms.nowMs);
  if (grant === undefined) return atMs;
  for (const changeMs of [grant.fromMs ?? 0, grant.untilMs]) {
    if (changeMs <= terms.nowMs) continue;
    if (atMs < changeMs) break;
    const then = rateLimitState(state, { ...terms, nowMs: changeMs });
    atMs = Math.max(fromMs, changeMs, lastReset(then, units));
  }
  return atMs;
}

function lastReset({ windows }: RateLimitState, units: number): number {
  let atMs = 0;
  for (const { remaining, resetMs } of windows) if (remaining < units && resetMs > atMs) atMs = resetMs;
  return atMs;
}

/** During a ban nothing is admitted before `retryAtMs`, whatever the windows have left. */
export function bannedState(
  { nowMs, windows, inForce }: RateLimitState,
  { banUntilMs, retryAtMs }: { readonly banUntilMs: number; readonly retryAtMs: number },
): RateLimitState {
  return { nowMs, windows, inForce: { ...inForce, remaining: 0, resetMs: retryAtMs }, banUntilMs };
}
