import { type PlanWindow, planWindows } from './model.ts';

export type WindowsMs = Readonly<Record<PlanWindow, number>>;

/** Stands for a month of the UTC calendar, which has no fixed length. */
export const calendarMonth = 0;

export const calendarWindowsMs: WindowsMs = {
  second: 1_000,
  minute: 60_000,
  hour: 3_600_000,
  day: 86_400_000,
  month: calendarMonth,
};

/** The window that begins at the epoch has number 0. */
export function windowIndex(lengthMs: number, nowMs: number): number {
  if (lengthMs !== calendarMonth) return Math.floor(nowMs / lengthMs);
  const date = new Date(nowMs);
  return (date.getUTCFullYear() - 1970) * 12 + date.getUTCMonth();
}

/** Epoch ms. The previous window ends at the same time. */
export function windowStartMs(lengthMs: number, index: number): number {
  return lengthMs === calendarMonth ? Date.UTC(1970, index) : index * lengthMs;
}

/** The beginning of the window that contains the time, epoch ms. */
export function calendarStartMs(window: PlanWindow, atMs: number): number {
  const lengthMs = calendarWindowsMs[window];
  return windowStartMs(lengthMs, windowIndex(lengthMs, atMs));
}

/**
 * `minute` is the number of the current minute (`windowIndex`), and `minuteUsed` the units that were charged in it. The windows of a group
 * have its name before a colon: `reports:minute`, `reports:minuteUsed`.
 */
export type WindowCounts = Record<PlanWindow, number> &
  Record<`${PlanWindow}Used`, number> & { [ofGroup: `${string}:${string}`]: number };

export const usedIn = Object.fromEntries(planWindows.map((window) => [window, `${window}Used`])) as {
  readonly [Window in PlanWindow]: `${Window}Used`;
};

export const noCounts = Object.freeze(
  Object.fromEntries(planWindows.flatMap((window) => [window, usedIn[window]]).map((name) => [name, 0])),
) as Readonly<WindowCounts>;
