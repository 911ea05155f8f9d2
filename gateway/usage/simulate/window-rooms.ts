import { type WindowsMs, windowIndex, windowStartMs } from '../../shared/calendar-windows.ts';
import type { Limit, Limits } from '../../shared/model.ts';

/** The calendar that a record was made with. */
export interface Calendar {
  /** How long a minute of the record is; tests have shorter ones. */
  readonly minuteMs: number;
  /** The windows, each of whole minutes. */
  readonly windowsMs: WindowsMs;
}

/** The limits and the month's usage before an edit. */
export interface BeforeEdit {
  /** The minute in which the edit takes effect. */
  readonly editMinute: number;
  /** The limits before the edit. A window without a limit was not counted, so it begins empty with the edit. */
  readonly limits: Limits;
  /** The usage of a month before the first minute of the replay, with the month's number (`windowIndex`). */
  readonly month?: { readonly index: number; readonly used: number } | undefined;
}

/**
 * Tracks the remaining room of calendar windows. Every window begins with a minute, so a replay from counts by minute is exact.
 * Each minute admits its first requests until the fullest window has no room left, and refuses the rest. A refused
 * request takes no room in any window.
 *
 * Until the next window ends, all windows longer than a minute lose the same room, so one number is enough for all of them.
 * This class ignores the limit of the second, since a second is shorter than a minute.
 */
export class WindowRooms {
  /** The limit of the minute; Infinity without one. */
  readonly minuteMax: number;
  /** The minute in which the next of the longer windows ends. */
  nextEnd = Number.NEGATIVE_INFINITY;
  private readonly calendar: Calendar;
  private readonly before: BeforeEdit;
  private readonly windows: readonly LongWindow[];
  private lastMinute = Number.NEGATIVE_INFINITY;

  constructor(limits: Limits, calendar: Calendar, before: BeforeEdit) {
    this.calendar = calendar;
    this.before = before;
    this.minuteMax = limits.find(({ window }) => window === 'minute')?.max ?? Number.POSITIVE_INFINITY;
    this.windows = limits
      .filter(({ window }) => window !== 'second' && window !== 'minute')
      .map((limit) => ({
        limit,
        isNew: before.limits.every(({ window }) => window !== limit.window),
        room: 0,
        endMinute: Number.NEGATIVE_INFINITY,
      }));
  }

  /**
   * Opens the windows that a minute lies in.
   *
   * @param minute not before that of an earlier call
   * @param used since the last call, until `nextEnd` at most
   * @returns what the longer windows have room for; negative where more was used
   */
  open(minute: number, used: number): number {
    const { minuteMs, windowsMs } = this.calendar;
    const { month, editMinute } = this.before;
    const isBefore = this.lastMinute < editMinute;
    this.lastMinute = minute;
    let least = Number.POSITIVE_INFINITY;
    this.nextEnd = Number.POSITIVE_INFINITY;
    for (const window of this.windows) {
      const { limit, isNew } = window;
      if (!(isNew && isBefore)) window.room -= used;
      if (minute >= window.endMinute) {
        const lengthMs = windowsMs[limit.window];
        const index = windowIndex(lengthMs, minute * minuteMs);
        const usedBefore = limit.window === 'month' && !isNew && month?.index === index ? month.used : 0;
        window.endMinute = windowStartMs(lengthMs, index + 1) / minuteMs;
        window.room = limit.max - usedBefore;
      }
      least = Math.min(least, window.room);
      this.nextEnd = Math.min(this.nextEnd, window.endMinute);
    }
    return least;
  }
}

interface LongWindow {
  readonly limit: Limit;
  readonly isNew: boolean;
  room: number;
  endMinute: number;
}

/** How many of these requests find room. */
export function fitting(requests: number, minuteMax: number, room: number): number {
  const fits = requests < minuteMax ? requests : minuteMax;
  return fits < room ? fits : room > 0 ? room : 0;
}
