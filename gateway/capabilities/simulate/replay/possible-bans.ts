import type { BanPolicy } from '../../../shared/model.ts';

/**
 * Computes the longest possible ban of each minute, over all orders of the requests within the minute. A ban begins
 * when windows have refused a number of requests (`after`) within a time (`withinMs`). When a ban begins, the minutes
 * of the last `withinMs` must therefore contain at least `after` refusals. Each further ban of a series lasts twice as
 * long as the ban before it, and needs `after` further refusals.
 */
export class PossibleBans {
  private readonly bans: BanPolicy;
  private readonly minuteMs: number;
  /** A ring buffer with the refusals of each minute of the last `withinMs`. `place` is the position of the last minute. */
  private readonly ring: Float64Array;
  private place = 0;
  private lastMinute = Number.NEGATIVE_INFINITY;
  private strikes = 0;
  /** The largest possible number of refusals that belong to the present series of bans. */
  private inRow = 0;
  private untilMs = Number.NEGATIVE_INFINITY;

  constructor(bans: BanPolicy, minuteMs: number) {
    const counting = 1 + Math.ceil(bans.withinMs / minuteMs);
    this.bans = bans;
    this.minuteMs = minuteMs;
    this.ring = new Float64Array(counting > ringMax ? 0 : counting);
  }

  /** Whether a ban that began in an earlier minute can last into this minute. */
  covers(minute: number): boolean {
    return minute * this.minuteMs < this.untilMs;
  }

  /**
   * Adds a minute. The argument `refused` is the largest number of requests that windows can have refused in this
   * minute. Callers add minutes in ascending order.
   *
   * @returns whether a ban can begin in this minute
   */
  refuse(minute: number, refused: number): boolean {
    if (this.ring.length > 0) this.forget(minute, refused);
    this.strikes += refused;
    this.inRow += refused;
    if (this.strikes < this.bans.after) return false;
    this.begin(minute);
    return true;
  }

  /** Adds a recorded ban. The ban's level is not recorded, so the longest ban is assumed. */
  recorded(minute: number): void {
    this.extend(minute, this.bans.maxMs);
  }

  private forget(minute: number, refused: number): void {
    const { ring } = this;
    const { length } = ring;
    if (minute - this.lastMinute >= length) {
      ring.fill(0);
      this.strikes = 0;
    } else {
      for (let passed = this.lastMinute; passed < minute; passed++) {
        this.place = this.place + 1 < length ? this.place + 1 : 0;
        this.strikes -= ring[this.place] ?? 0;
        ring[this.place] = 0;
      }
    }
    ring[this.place] = refused;
    this.lastMinute = minute;
  }

  private begin(minute: number): void {
    const { after, forMs, maxMs } = this.bans;
    // After `maxMs` without a ban, the next ban starts a new series.
    if (minute * this.minuteMs >= this.untilMs + maxMs) this.inRow = this.strikes;
    const level = Math.max(1, Math.floor(this.inRow / after));
    this.extend(minute, Math.min(forMs * 2 ** (level - 1), maxMs));
  }

  private extend(minute: number, lengthMs: number): void {
    this.untilMs = Math.max(this.untilMs, (minute + 1) * this.minuteMs + lengthMs);
  }
}

/**
 * The largest size of the ring buffer, a week of minutes. If `withinMs` is longer than a week, the class counts all
 * refusals, and its result is an upper bound.
 */
const ringMax = 10_081;
