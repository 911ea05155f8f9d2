import {
  noCounts,
  usedIn,
  type WindowCounts,
  type WindowsMs,
  windowIndex,
  windowStartMs,
} from '../shared/calendar-windows.ts';
import { type Limit, type Limits, type PlanWindow, planWindows } from '../shared/model.ts';

export type BucketWindow = Pick<Limit, 'window' | 'group'>;

/** The field with the number of the window: `minute`, or `reports:minute` for a group. */
export function fieldOf({ window, group }: BucketWindow): PlanWindow | `${string}:${PlanWindow}` {
  return group === undefined ? window : `${group}:${window}`;
}

/** The field with the charged units. */
export function usedFieldOf({
  window,
  group,
}: BucketWindow): `${PlanWindow}Used` | `${string}:${PlanWindow}Used` {
  return group === undefined ? usedIn[window] : `${group}:${usedIn[window]}`;
}

export function numberOf(counts: Readonly<WindowCounts>, window: BucketWindow): number {
  return counts[fieldOf(window)] ?? 0;
}

export function usedOf(counts: Readonly<WindowCounts>, window: BucketWindow): number {
  return counts[usedFieldOf(window)] ?? 0;
}

/** Undefined for other fields than the number of a window. */
export function windowOf(field: string): BucketWindow | undefined {
  const [name, group] = field.split(':').reverse();
  const window = planWindows.find((one) => one === name);
  return window && (group === undefined ? { window } : { window, group });
}

/** The fields of all windows in the counts, with the value 0. */
export function noneIn(counts: Readonly<WindowCounts>): WindowCounts {
  const ofGroups = Object.keys(counts).filter((field) => field.includes(':'));
  return { ...noCounts, ...Object.fromEntries(ofGroups.map((field) => [field, 0])) };
}

/** The number of a window never decreases, even if the clock of a new master is behind. */
export function openWindows(counts: WindowCounts, limits: Limits, windowsMs: WindowsMs, nowMs: number): void {
  for (const limit of limits) {
    const index = windowIndex(windowsMs[limit.window], nowMs);
    if (index <= numberOf(counts, limit)) continue;
    counts[fieldOf(limit)] = index;
    counts[usedFieldOf(limit)] = 0;
  }
}

/**
 * The units for which every window has room; negative if a limit was lowered below the used units.
 *
 * @param inForce the limits that apply now (`applyGrant`), and that the request is charged in (`limitsOn`)
 */
export function roomIn(counts: Readonly<WindowCounts>, inForce: Limits): number {
  return inForce.reduce((room, limit) => Math.min(room, limit.max - usedOf(counts, limit)), Infinity);
}

export function fitting(requests: number, units: number, room: number): number {
  if (units === 0) return requests;
  return Math.max(0, Math.min(requests, Math.floor(room / units)));
}

export function charge(counts: WindowCounts, limits: Limits, units: number): void {
  for (const limit of limits) counts[usedFieldOf(limit)] = usedOf(counts, limit) + units;
}

/** When the last window of a side ends, epoch ms. */
export function windowsEndMs(counts: Readonly<WindowCounts>, windowsMs: WindowsMs): number {
  const ends = Object.entries(counts).map(([field, number]) => {
    const window = windowOf(field)?.window;
    return window === undefined || number === 0 ? 0 : windowStartMs(windowsMs[window], number + 1);
  });
  return Math.max(0, ...ends);
}
