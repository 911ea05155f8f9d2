import { type WindowsMs, windowIndex, windowStartMs } from '../../../shared/calendar-windows.ts';
import type { Limit, Limits, PlanWindow } from '../../../shared/model.ts';

/** The lengths of the minutes and windows of a record. */
export interface Calendar {
  /** The length of a minute of the record: 60,000 ms, or less in tests. */
  readonly minuteMs: number;
  /** The lengths of the windows, each a whole number of minutes. */
  readonly windowsMs: WindowsMs;
}

/** The units that were charged to windows before the first minute of the replay, with the number of each window (`windowIndex`). */
export type UsedEarlier = ReadonlyMap<PlanWindow, { readonly index: number; readonly used: number }>;

/** The limits and the usage before an edit. */
export interface BeforeEdit {
  /** The minute in which the edit takes effect. */
  readonly editMinute: number;
  /** The limits before the edit. A window without a limit was not counted, so its count begins at zero when the edit takes effect. */
  readonly limits: Limits;
  /** The units of windows that began before the first minute of the replay. */
  readonly earlier?: UsedEarlier | undefined;
}

/**
 * Tracks the remaining room of calendar windows. Every window begins on a minute boundary, so a replay from counts per
 * minute is exact. In each minute, requests are admitted until the fullest window has no room, and all later requests
 * are refused. A refused request adds no units to any window.
 *
 * A charge reduces the room of every window longer than a minute by the same number of units. Until one of the windows
 * ends, a caller therefore needs only the room of the fullest window. This class ignores the limit per second, because a
 * second is shorter than a minute.
 */
export class WindowRooms {
  /** The minute limit; Infinity without such a limit. */
  readonly minuteMax: number;
  /** The next minute in which a window longer than a minute ends. */
  nextEnd = Number.NEGATIVE_INFINITY;
  private readonly calendar: Calendar;
  private readonly before: BeforeEdit;
  private readonly windows: readonly RoomyWindow[];
  private lastMinute = Number.NEGATIVE_INFINITY;

  constructor(limits: Limits, calendar: Calendar, before: BeforeEdit) {
    this.calendar = calendar;
    this.before = before;
    this.minuteMax = minuteMaxOf(limits);
    this.windows = longWindows(limits, before).map((window) => ({ ...window, room: 0 }));
  }

  /**
   * Subtracts used units from the room of the windows. Starts a new window in place of each window that has ended.
   *
   * @param minute not before that of an earlier call
   * @param used the units used since the last call, at most until `nextEnd`
   * @returns the room of the longer windows; negative if more units were used
   */
  open(minute: number, used: number): number {
    const isBefore = this.lastMinute < this.before.editMinute;
    this.lastMinute = minute;
    let least = Number.POSITIVE_INFINITY;
    this.nextEnd = Number.POSITIVE_INFINITY;
    for (const window of this.windows) {
      if (!(window.isNew && isBefore)) window.room -= used;
      if (minute >= window.endMinute)
        window.room = window.limit.max - openWindow(window, minute, this.calendar, this.before);
      least = Math.min(least, window.room);
      this.nextEnd = Math.min(this.nextEnd, window.endMinute);
    }
    return least;
  }
}

interface RoomyWindow extends LongWindow {
  room: number;
}

/** A window that is longer than a minute. */
export interface LongWindow {
  readonly limit: Limit;
  /** Whether the window had no limit before the edit. */
  readonly isNew: boolean;
  endMinute: number;
}

export function longWindows(limits: Limits, before: BeforeEdit): readonly LongWindow[] {
  return limits
    .filter(({ window }) => window !== 'second' && window !== 'minute')
    .map((limit) => ({
      limit,
      isNew: before.limits.every(({ window }) => window !== limit.window),
      endMinute: Number.NEGATIVE_INFINITY,
    }));
}

/** Starts the window that contains a minute. @returns the units that were charged to the window before the first minute of the replay */
export function openWindow(
  window: LongWindow,
  minute: number,
  { minuteMs, windowsMs }: Calendar,
  { earlier }: BeforeEdit,
): number {
  const { limit, isNew } = window;
  const lengthMs = windowsMs[limit.window];
  const index = windowIndex(lengthMs, minute * minuteMs);
  window.endMinute = windowStartMs(lengthMs, index + 1) / minuteMs;
  const known = isNew ? undefined : earlier?.get(limit.window);
  return known?.index === index ? known.used : 0;
}

/** Returns the minute limit; Infinity without such a limit. */
export function minuteMaxOf(limits: Limits): number {
  return limits.find(({ window }) => window === 'minute')?.max ?? Number.POSITIVE_INFINITY;
}

/** Returns how many of the given requests fit into the windows. */
export function fitting(requests: number, minuteMax: number, room: number): number {
  const fits = requests < minuteMax ? requests : minuteMax;
  return fits < room ? fits : room > 0 ? room : 0;
}
