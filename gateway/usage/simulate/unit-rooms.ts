import type { Limits } from '../../shared/model.ts';
import {
  type BeforeEdit,
  type Calendar,
  type LongWindow,
  longWindows,
  minuteMaxOf,
  openWindow,
} from './window-rooms.ts';

/** The requests of one minute. Free requests take no room and are not among them. */
export interface MixedMinute {
  readonly requests: number;
  /** Units in excess of 1 unit per request. */
  readonly extra: number;
  /** The most of these requests that the second can admit, in requests and in units. */
  readonly mostBySecond: number;
  /** The second refuses nothing before it has admitted this many units. */
  readonly leastBySecond: number;
  /** A ban may refuse everything. */
  readonly isBanned: boolean;
  /** A ban may begin in this minute. */
  readonly mayBeBanned: boolean;
}

/** The fewest and the most requests that are admitted, for every order of the requests and every division of the units among them. */
export interface Admitted {
  readonly least: number;
  readonly most: number;
}

/**
 * Bounds of what calendar windows admit where requests cost different numbers of units. The record has the requests (n) and the units
 * (n + extra) of a minute. Neither the order nor the cost of each request is known. A request is refused when its cost exceeds the room
 * that is left, so a later, cheaper request may still be admitted, and leaving a request out can admit fewer requests later. So this
 * class does not replay one order. It keeps four numbers per window, each with its own proof:
 *
 * - `low` and `high` bound the used units of the window. Nothing is refused for certain while `high` plus all units fits. A refused
 *   request costs at most `1 + extra`, so some window has at most `extra` units left after a refusal.
 * - With r units of room, a minute that refuses anything admits at least `r - extra` requests: if the admitted requests have e of the extra
 *   units, each refused one costs at most `1 + extra - e`, so the admitted ones use at least `r - extra + e` units, of which e are extra.
 * - `mostUsed`: each admitted request takes at least 1 unit, and the requests of a minute that refuses nothing take all their units. The
 *   sum of both cannot exceed the limit. So the most requests up to every instant follow from the most requests up to earlier ones.
 * - `leastUsed`: a window that refuses something has admitted at least its limit minus all extra units since it began.
 *
 * If every request costs 1 unit and no ban or second intervenes, all bounds are equal.
 */
export class UnitRooms {
  private readonly calendar: Calendar;
  private readonly before: BeforeEdit;
  private readonly minuteMax: number;
  private readonly windows: readonly UnitWindow[];
  private isBefore = true;

  constructor(limits: Limits, calendar: Calendar, before: BeforeEdit) {
    this.calendar = calendar;
    this.before = before;
    this.minuteMax = minuteMaxOf(limits);
    this.windows = longWindows(limits, before).map((window) => ({
      ...window,
      low: 0,
      high: 0,
      mostUsed: 0,
      leastUsed: 0,
    }));
  }

  /** Opens the windows that a minute lies in. Minutes ascend. */
  open(minute: number): void {
    this.isBefore = minute < this.before.editMinute;
    for (const window of this.windows) {
      if (minute < window.endMinute) continue;
      const used = openWindow(window, minute, this.calendar, this.before);
      window.low = used;
      window.high = used;
      window.mostUsed = used;
      window.leastUsed = used;
    }
  }

  /** Charges units that were charged before the edit. */
  charge(units: number): void {
    for (const window of this.windows) {
      if (window.isNew && this.isBefore) continue;
      window.low += units;
      window.high += units;
      window.mostUsed += units;
      window.leastUsed += units;
    }
  }

  /** The units that have room for certain. */
  certainRoom(): number {
    let room = this.minuteMax;
    for (const { limit, high } of this.windows) room = Math.min(room, limit.max - high);
    return Math.max(0, room);
  }

  /** Admits the requests of a minute and charges the windows. */
  admit(minute: MixedMinute): Admitted {
    const { requests, extra, isBanned, leastBySecond } = minute;
    const units = requests + extra;
    const room = Math.min(this.certainRoom(), leastBySecond);
    const isWhole = units <= room && !isBanned;
    const possible = Math.min(this.possibleRoom(), minute.mostBySecond);
    const admitted = isWhole
      ? { least: requests, most: requests }
      : { least: isBanned ? 0 : this.leastOf(minute, room), most: this.mostOf(minute, possible) };
    for (const window of this.windows) {
      const { max } = window.limit;
      const low = isBanned ? 0 : isWhole ? units : this.leastUnits(window, minute, units);
      window.high = Math.max(window.high, Math.min(max, window.high + Math.min(units, possible)));
      window.low += low;
      window.mostUsed += isWhole ? units : admitted.most;
      window.leastUsed += admitted.least + extra;
    }
    return admitted;
  }

  private possibleRoom(): number {
    let room = this.minuteMax;
    for (const { limit, low } of this.windows) room = Math.min(room, limit.max - low);
    return Math.max(0, room);
  }

  private mostOf({ requests, extra, mostBySecond }: MixedMinute, possible: number): number {
    const fits = requests + extra <= possible ? requests : requests - 1;
    let most = Math.min(fits, possible, mostBySecond);
    for (const { limit, mostUsed } of this.windows) most = Math.min(most, limit.max - mostUsed);
    return Math.max(0, most);
  }

  private leastOf({ requests, extra, leastBySecond, mayBeBanned }: MixedMinute, room: number): number {
    let roomOfSums = Math.min(this.minuteMax, leastBySecond);
    for (const { limit, leastUsed } of this.windows) roomOfSums = Math.min(roomOfSums, limit.max - leastUsed);
    const least = Math.max(leastIn(requests, extra, room, mayBeBanned), roomOfSums - extra);
    return Math.max(0, Math.min(requests, least));
  }

  /** The fewest units that a minute charges to a window: all of them, or a window or the second has at most `extra` left. */
  private leastUnits(of: UnitWindow, { extra, leastBySecond }: MixedMinute, units: number): number {
    let room = Math.min(this.minuteMax, leastBySecond, of.limit.max - of.low);
    for (const window of this.windows)
      if (window !== of) room = Math.min(room, window.limit.max - window.high);
    return Math.max(0, Math.min(units, room - extra));
  }
}

/** The fewest requests that a minute admits into this room. */
export function leastIn(requests: number, extra: number, room: number, mayBeBanned: boolean): number {
  const units = requests + extra;
  if (units <= room) return requests;
  // Not all requests can cost more than the room. But after a refusal, a ban may refuse the cheaper ones.
  const one = !mayBeBanned && requests * (room + 1) > units ? 1 : 0;
  return Math.min(requests, Math.max(one, room - extra, 0));
}

interface UnitWindow extends LongWindow {
  /** Bounds of the used units. */
  low: number;
  high: number;
  /** Used units in the replays that admit the most and the fewest requests. */
  mostUsed: number;
  leastUsed: number;
}
