import {
  usedIn,
  type WindowCounts,
  type WindowsMs,
  windowIndex,
  windowStartMs,
} from '../shared/calendar-windows.ts';
import type { Limits } from '../shared/model.ts';

/** Starts the windows that contain `nowMs`. The number of a window never decreases, even if the clock of a new master is behind. */
export function openWindows(counts: WindowCounts, limits: Limits, windowsMs: WindowsMs, nowMs: number): void {
  for (const { window } of limits) {
    const index = windowIndex(windowsMs[window], nowMs);
    if (index <= counts[window]) continue;
    counts[window] = index;
    counts[usedIn[window]] = 0;
  }
}

/**
 * Returns the number of units that every window still has room for; negative if a limit was lowered below the used units.
 *
 * @param inForce the limits that apply now (`applyGrant`)
 */
export function roomIn(counts: Readonly<WindowCounts>, inForce: Limits): number {
  return inForce.reduce((room, { window, max }) => Math.min(room, max - counts[usedIn[window]]), Infinity);
}

/** Returns the number of requests for which there is room. */
export function fitting(requests: number, units: number, room: number): number {
  if (units === 0) return requests;
  return Math.max(0, Math.min(requests, Math.floor(room / units)));
}

export function charge(counts: WindowCounts, limits: Limits, units: number): void {
  for (const { window } of limits) counts[usedIn[window]] += units;
}

/** Returns the time at which the last of these windows ends, epoch ms. */
export function windowsEndMs(
  counts: Readonly<WindowCounts>,
  windows: readonly Limits[number]['window'][],
  windowsMs: WindowsMs,
): number {
  const counted = windows.filter((window) => counts[window] > 0);
  return Math.max(0, ...counted.map((window) => windowStartMs(windowsMs[window], counts[window] + 1)));
}
