import type { PlanWindow } from './model.ts';

/** How long each window is, ms; `calendarMonth` stands for the month, which has no fixed length. Tests use seconds. */
export type WindowsMs = Readonly<Record<PlanWindow, number>>;

/** In place of a length: the months of the UTC calendar. */
export const calendarMonth = 0;

/** The windows of UTC. */
export const calendarWindowsMs: WindowsMs = {
  second: 1_000,
  minute: 60_000,
  hour: 3_600_000,
  day: 86_400_000,
  month: calendarMonth,
};

/** The number of the window that `nowMs` lies in; the window that begins at the epoch has 0. */
export function windowIndex(lengthMs: number, nowMs: number): number {
  if (lengthMs !== calendarMonth) return Math.floor(nowMs / lengthMs);
  const date = new Date(nowMs);
  return (date.getUTCFullYear() - 1970) * 12 + date.getUTCMonth();
}

/** When the window of this number begins, epoch ms; the one before ends there. */
export function windowStartMs(lengthMs: number, index: number): number {
  return lengthMs === calendarMonth ? Date.UTC(1970, index) : index * lengthMs;
}
