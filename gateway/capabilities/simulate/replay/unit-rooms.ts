import type { Limits } from '../../../shared/model.ts';
import { type Calendar, type LimitStep, type UsedEarlier, WindowsOverTime } from './window-rooms.ts';

/** The requests of one minute. Free requests are not included, because they take no room. */
export interface MixedMinute {
  readonly requests: number;
  /** The units beyond 1 unit per request. */
  readonly extra: number;
  /** The limit per second admits at most this many requests, and at most this many units. */
  readonly mostBySecond: number;
  /** The limit per second certainly has room for this many units. */
  readonly leastBySecond: number;
  /** Whether a ban may refuse every request of the minute. */
  readonly isBanned: boolean;
  /** Whether a ban may begin in this minute. */
  readonly mayBeBanned: boolean;
}

/**
 * The smallest and the largest possible number of admitted requests, over every order of the requests and every division of the units among
 * them.
 */
export interface Admitted {
  readonly least: number;
  readonly most: number;
}

/**
 * Computes bounds for the number of requests that calendar windows admit. The requests may have different costs. The record has the
 * requests (n) and the units (n + extra) of a minute. Neither the order nor the cost of each request is known. A request is refused when
 * its cost exceeds the remaining room, so a later and cheaper request may still be admitted. An expensive request can take the room of
 * several cheap requests, so the order changes the number of admitted requests. A replay of only one order of the requests would therefore
 * give no bounds. Instead, the class tracks four numbers for each window. The list contains a proof for each number:
 *
 * - `low` and `high` bound the used units of the window. While `high` plus all units of the minute is at most the limit, no request is
 *   refused. A refused request costs at most `1 + extra`, so some window has at most `extra` units left after a refusal.
 *
 * - If r units of room remain and a request is refused, the minute admits at least `r - extra` requests. Let e be the number of extra units
 *   that the admitted requests cost. A refused request then costs at most `1 + extra - e`, so the admitted requests use at least `r - extra
 *   + e` units, of which e are extra.
 *
 * - `mostUsed` counts at least 1 unit for each admitted request, and all units of a minute without refusals. `mostUsed` cannot exceed the
 *   limit, so it bounds the number of admitted requests at every moment.
 *
 * - `leastUsed` gives a lower bound after a refusal. A window that refuses a request has already admitted at least `limit - x` requests.
 *   Here, x is the sum of all extra units since the window began.
 *
 * If every request costs 1 unit and there is no ban and no limit per second, all bounds are equal.
 */
export class UnitRooms {
  private readonly windows: WindowsOverTime<UnitCounts>;

  constructor(steps: readonly LimitStep[], calendar: Calendar, earlier: UsedEarlier | undefined) {
    this.windows = new WindowsOverTime(steps, calendar, earlier, {
      start(used, counts) {
        const all = { low: used, high: used, mostUsed: used, leastUsed: used };
        return counts === undefined ? all : Object.assign(counts, all);
      },
      regain(counts) {
        counts.mostUsed = Math.min(counts.low, counts.mostUsed);
        counts.leastUsed = Math.max(counts.high, counts.leastUsed);
      },
    });
  }

  get limits(): Limits {
    return this.windows.limits;
  }

  get nextEnd(): number {
    return this.windows.nextEnd;
  }

  /** Starts a new window in place of each window that has ended. Callers pass minutes in ascending order. */
  open(minute: number): void {
    this.windows.openMinute(minute);
  }

  /** Adds the units of a minute before the edit to the windows. */
  charge(units: number): void {
    for (const { counts } of this.windows.limited) {
      counts.low += units;
      counts.high += units;
      counts.mostUsed += units;
      counts.leastUsed += units;
    }
  }

  /** Returns the number of units for which the windows certainly have room. */
  certainRoom(): number {
    let room = this.windows.minuteMax;
    for (const { max, counts } of this.windows.limited) room = Math.min(room, max - counts.high);
    return Math.max(0, room);
  }

  /** Computes how many requests of a minute are admitted, and adds their units to the windows. */
  admit(minute: MixedMinute): Admitted {
    const { requests, extra, isBanned, leastBySecond } = minute;
    const units = requests + extra;
    const room = Math.min(this.certainRoom(), leastBySecond);
    const isWhole = units <= room && !isBanned;
    const possible = Math.min(this.possibleRoom(), minute.mostBySecond);
    const admitted = isWhole
      ? { least: requests, most: requests }
      : { least: isBanned ? 0 : this.leastOf(minute, room), most: this.mostOf(minute, possible) };
    for (const [index, { max, counts }] of this.windows.limited.entries()) {
      const low = isBanned ? 0 : isWhole ? units : this.leastUnits(index, minute, units);
      counts.high = Math.max(counts.high, Math.min(max, counts.high + Math.min(units, possible)));
      counts.low += low;
      counts.mostUsed += isWhole ? units : admitted.most;
      counts.leastUsed += admitted.least + extra;
    }
    return admitted;
  }

  private possibleRoom(): number {
    let room = this.windows.minuteMax;
    for (const { max, counts } of this.windows.limited) room = Math.min(room, max - counts.low);
    return Math.max(0, room);
  }

  private mostOf({ requests, extra, mostBySecond }: MixedMinute, possible: number): number {
    const fits = requests + extra <= possible ? requests : requests - 1;
    let most = Math.min(fits, possible, mostBySecond);
    for (const { max, counts } of this.windows.limited) most = Math.min(most, max - counts.mostUsed);
    return Math.max(0, most);
  }

  private leastOf({ requests, extra, leastBySecond, mayBeBanned }: MixedMinute, room: number): number {
    let roomOfSums = Math.min(this.windows.minuteMax, leastBySecond);
    for (const { max, counts } of this.windows.limited)
      roomOfSums = Math.min(roomOfSums, max - counts.leastUsed);
    const least = Math.max(leastIn(requests, extra, room, mayBeBanned), roomOfSums - extra);
    return Math.max(0, Math.min(requests, least));
  }

  /**
   * Returns the smallest number of units that a minute can add to a window. If a request of the minute is refused, a window or the limit
   * per second has at most `extra` units left.
   */
  private leastUnits(of: number, { extra, leastBySecond }: MixedMinute, units: number): number {
    let room = Math.min(this.windows.minuteMax, leastBySecond);
    for (const [index, { max, counts }] of this.windows.limited.entries())
      room = Math.min(room, max - (index === of ? counts.low : counts.high));
    return Math.max(0, Math.min(units, room - extra));
  }
}

/** Returns the smallest possible number of admitted requests in a minute, if `room` units remain. */
export function leastIn(requests: number, extra: number, room: number, mayBeBanned: boolean): number {
  const units = requests + extra;
  if (units <= room) return requests;
  // If the average cost is below `room + 1`, some request costs at most `room` units and can be admitted. A ban that begins earlier in the
  // minute may still refuse this request.
  const one = !mayBeBanned && requests * (room + 1) > units ? 1 : 0;
  return Math.min(requests, Math.max(one, room - extra, 0));
}

interface UnitCounts {
  /** Bounds of the used units. */
  low: number;
  high: number;
  /** Used units that bound the number of admitted requests (see `UnitRooms`). */
  mostUsed: number;
  leastUsed: number;
}
