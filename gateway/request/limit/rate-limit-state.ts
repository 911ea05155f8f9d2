import { type WindowsMs, windowStartMs } from '../../shared/calendar-windows.ts';
import type { Limits, RateLimitState, Window } from '../../shared/model.ts';
import { limitsAt, type QuotaState, unendedGrant, usedIn } from './store/decide-quota.ts';

interface Terms {
  /** The key's own limits. A grant is in the state. */
  readonly limits: Limits;
  readonly windowsMs: WindowsMs;
  readonly nowMs: number;
  /** Units of later requests in the counts. */
  readonly usedLater?: number;
}

/** The windows of a key at `nowMs`, as its client sees them. */
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

/** Whether a window would refuse before another window: it has less remaining, or as much and a later reset. */
function refusesFirst(window: Window, other: Window): boolean {
  if (window.remaining !== other.remaining) return window.remaining < other.remaining;
  return window.resetMs >= other.resetMs;
}

/**
 * The instant from which a request of `units` units has room, not before `fromMs`: the latest reset of the windows without room. A grant
 * changes the limits at its begin and end, so the windows are checked again with the limits of these instants. 0 means that there is
 * room now. Units above a limit never have room in that window.
 *
 * @param told the result of `rateLimitState` for the same state
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
