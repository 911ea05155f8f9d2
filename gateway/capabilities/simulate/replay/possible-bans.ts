import type { BanPolicy } from '../../../shared/model.ts';

/**
 * Computes the longest possible ban of each minute, over all orders of the requests within the minute. A ban begins
 * when windows have refused a number of requests (`after`) within a time (`withinMs`). When a ban begins, the minutes
 * of the last `withinMs` must therefore contain at least `after` refusals. Each further ban of a series lasts twice as
 * long as the ban before it, and needs `after` further refusals after the end of the ban before it.
 */
export class PossibleBans {
  private readonly bans: BanPolicy;
  private readonly minuteMs: number;
  /** A ring buffer with the refusals of each minute of the last `withinMs`. `place` is the position of the last minute. */
  private readonly ring: Float64Array;
  private place = 0;
  private lastMinute = Number.NEGATIVE_INFINITY;
  private strikes = 0;
  /** The largest possible number of refusals that belong to the present series of bans, and of these bans. */
  private inRow = 0;
  private level = 0;
  /** The last minute with a recorded ban. */
  private bannedMinute = Number.NEGATIVE_INFINITY;
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

  /**
   * Adds a minute with recorded bans. Their levels are not recorded, so the longest ban is assumed. The refusal with which a ban begins is
   * recorded as banned.
   */
  recorded(minute: number, banned: number): void {
    this.startSeries(minute);
    this.inRow += banned;
    if (minute > this.bannedMinute + 1) this.raise();
    this.bannedMinute = minute;
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
    this.startSeries(minute);
    this.raise();
    this.extend(minute, this.lengthOf(this.level));
  }

  /** After `maxMs` without a ban, the next ban starts a new series. */
  private startSeries(minute: number): void {
    if (minute * this.minuteMs < this.untilMs + this.bans.maxMs) return;
    this.inRow = this.strikes;
    this.level = 0;
  }

  /** Adds the bans that can begin in a minute. They follow each other, so a long ban is the last one of its minute. */
  private raise(): void {
    const most = Math.max(1, Math.floor(this.inRow / this.bans.after));
    let passedMs = 0;
    do {
      this.level += 1;
      passedMs += this.lengthOf(this.level);
    } while (passedMs < this.minuteMs && this.level < most);
    this.level = Math.min(this.level, most);
  }

  private lengthOf(level: number): number {
    const { forMs, maxMs } = this.bans;
    return Math.min(forMs * 2 ** (level - 1), maxMs);
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
