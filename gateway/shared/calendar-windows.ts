import { type PlanWindow, planWindows } from './model.ts';

/** The length of each window, ms. `calendarMonth` stands for the month, which has no fixed length. */
export type WindowsMs = Readonly<Record<PlanWindow, number>>;

/** A window length that stands for a month of the UTC calendar. */
export const calendarMonth = 0;

export const calendarWindowsMs: WindowsMs = {
  second: 1_000,
  minute: 60_000,
  hour: 3_600_000,
  day: 86_400_000,
  month: calendarMonth,
};

/** The number of the window at `nowMs`. The window that begins at the epoch has number 0. */
export function windowIndex(lengthMs: number, nowMs: number): number {
  if (lengthMs !== calendarMonth) return Math.floor(nowMs / lengthMs);
  const date = new Date(nowMs);
  return (date.getUTCFullYear() - 1970) * 12 + date.getUTCMonth();
}

/** Returns the time at which the window number `index` begins, epoch ms. The previous window ends at the same time. */
export function windowStartMs(lengthMs: number, index: number): number {
  return lengthMs === calendarMonth ? Date.UTC(1970, index) : index * lengthMs;
}

/** Returns the beginning of the calendar window that contains a time, both in epoch ms. */
export function calendarStartMs(window: PlanWindow, atMs: number): number {
  const lengthMs = calendarWindowsMs[window];
  return windowStartMs(lengthMs, windowIndex(lengthMs, atMs));
}

/**
 * The counts of each window. `minute` is the number of the current minute (`windowIndex`). `minuteUsed` is the number of units that were
 * charged in this minute. Windows of a group have its name before the colon, for example `reports:minute` and `reports:minuteUsed`.
 */
export type WindowCounts = Record<PlanWindow, number> &
  Record<`${PlanWindow}Used`, number> & { [ofGroup: `${string}:${string}`]: number };

/** For each window, the name of the member that contains its charged units. */
export const usedIn = Object.fromEntries(planWindows.map((window) => [window, `${window}Used`])) as {
  readonly [Window in PlanWindow]: `${Window}Used`;
};

export const noCounts = Object.freeze(
  Object.fromEntries(planWindows.flatMap((window) => [window, usedIn[window]]).map((name) => [name, 0])),
) as Readonly<WindowCounts>;
