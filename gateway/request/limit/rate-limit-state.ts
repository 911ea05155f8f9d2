import { applyGrant, unendedGrant } from '../../quota/grants.ts';
import type { QuotaState } from '../../quota/hash.ts';
import { numberOf, usedOf } from '../../quota/windows.ts';
import { type WindowsMs, windowStartMs } from '../../shared/calendar-windows.ts';
import { hasGroups, limitsOn } from '../../shared/limits.ts';
import type { Limits, RateLimitState, Window } from '../../shared/model.ts';

interface Terms {
  /** The key's own limits, or those that a request is charged in (`limitsOn`). The `QuotaState` contains the limits of a grant. */
  readonly limits: Limits;
  readonly windowsMs: WindowsMs;
  readonly nowMs: number;
  /** Charged units that belong to later requests of the same call. */
  readonly usedLater?: UsedLater;
}

/**
 * Charged units of later requests. `all`: in the windows that count all operations. `groups`: in the windows of each group; a missing group
 * has none.
 */
export interface UsedLater {
  readonly all: number;
  readonly groups: ReadonlyMap<string, number>;
}

export const noneLater: UsedLater = { all: 0, groups: new Map() };

/** Returns the windows of a key at `nowMs`, as the response to the client shows them. */
export function rateLimitState(
  state: Readonly<QuotaState>,
  { limits, windowsMs, nowMs, usedLater = noneLater }: Terms,
): RateLimitState {
  const windows: Window[] = [];
  let inForce: Window | undefined;
  for (const limit of applyGrant(limits, state.grant, nowMs)) {
    const { window: name, group, max } = limit;
    const index = numberOf(state, limit);
    const lengthMs = windowsMs[name];
    const resetMs = windowStartMs(lengthMs, index + 1);
    const later = group === undefined ? usedLater.all : (usedLater.groups.get(group) ?? 0);
    const window = {
      name,
      group,
      limit: max,
      remaining: Math.max(0, max - usedOf(state, limit) + later),
      resetMs,
      windowSeconds: (resetMs - windowStartMs(lengthMs, index)) / 1000,
    };
    windows.push(window);
    if (inForce === undefined || refusesFirst(window, inForce)) inForce = window;
  }
  if (inForce === undefined) throw new Error('a key without limits passed validation');
  return { nowMs, windows, inForce };
}

/**
 * Returns the part of a state that a request of the operation is charged in.
 *
 * @param limits the limits of the state, in the order of its windows
 */
export function rateLimitOn(
  state: RateLimitState,
  limits: Limits,
  operation: string | undefined,
): RateLimitState {
  if (!hasGroups(limits)) return state;
  const charged = new Set(limitsOn(limits, operation));
  const windows = limits.flatMap((limit, index) => (charged.has(limit) ? (state.windows[index] ?? []) : []));
  const inForce = windows.reduce((one, other) => (refusesFirst(other, one) ? other : one));
  return { ...state, windows, inForce };
}

/** Whether a window is tighter than another window: it has fewer remaining units, or the same number and a later reset. */
function refusesFirst(window: Window, other: Window): boolean {
  if (window.remaining !== other.remaining) return window.remaining < other.remaining;
  return window.resetMs >= other.resetMs;
}

/**
 * Returns the earliest time, not before `fromMs`, at which all windows have room for a request that costs `units`. A window is full if it
 * has no room for the request. The result is the time by which all full windows have reset. A grant changes the limits at its start and
 * end, so the windows are checked again at these times. The result 0 means that there is room now. A window never has room for more units
 * than its limit. If `units` exceeds a limit, the result is the time at which the last of the currently full windows resets.
 *
 * @param rateLimit the result of `rateLimitState` for this state
 */
export function roomAtMs(
  rateLimit: RateLimitState,
  state: Readonly<QuotaState>,
  terms: Terms,
  { units, fromMs = 0 }: { readonly units: number; readonly fromMs?: number },
): number {
  let atMs = Math.max(fromMs, lastReset(rateLimit, units));
  const grant = unendedGrant(state.grant, terms.nowMs);
  for (const changeMs of grant === undefined ? [] : [grant.fromMs ?? 0, grant.untilMs]) {
    if (changeMs <= terms.nowMs) continue;
    if (atMs < changeMs) break;
    const then = rateLimitState(state, { ...terms, nowMs: changeMs });
    atMs = Math.max(fromMs, changeMs, lastReset(then, units));
  }
  return Number.isFinite(atMs) ? atMs : Math.max(fromMs, resetOfFull(rateLimit, units));
}

/** The time from which all windows have room. Infinity if the units exceed a limit. */
function lastReset(rateLimit: RateLimitState, units: number): number {
  for (const { limit } of rateLimit.windows) if (limit < units) return Number.POSITIVE_INFINITY;
  return resetOfFull(rateLimit, units);
}

function resetOfFull({ windows }: RateLimitState, units: number): number {
  let atMs = 0;
  for (const { remaining, resetMs } of windows) if (remaining < units && resetMs > atMs) atMs = resetMs;
  return atMs;
}
