import type { BanPolicy } from '../../../shared/model.ts';

/** The requests of a recorded minute that windows decided, and those that a ban refused. */
export interface RecordedDecisions {
  readonly minute: number;
  readonly decided: number;
  readonly banned: number;
}

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
  /** The end of a ban that began before the edit. */
  private carriedUntilMs = Number.NEGATIVE_INFINITY;
  /** The latest end of the bans so far. */
  private seriesEndMs = Number.NEGATIVE_INFINITY;

  constructor(bans: BanPolicy, minuteMs: number) {
    const counting = 1 + Math.ceil(bans.withinMs / minuteMs);
    this.bans = bans;
    this.minuteMs = minuteMs;
    this.ring = new Float64Array(counting > ringMax ? 0 : counting);
  }

  /** Whether a ban that began in an earlier minute can last into this minute. */
  covers(minute: number): boolean {
    return minute * this.minuteMs < Math.max(this.untilMs, this.carriedUntilMs);
  }

  /**
   * Returns the number of the requests of a covered minute that no ban of an earlier minute can hit. A ban from before the edit has ended when the
   * record has the first decision by windows: as in the record, it lasts no longer under the edited limits.
   */
  spared({ minute, decided, banned }: RecordedDecisions): number {
    const startMs = minute * this.minuteMs;
    if (startMs < this.untilMs) return 0;
    if (decided === 0) return 0;
    this.endCarried(minute);
    return banned === 0 ? Number.POSITIVE_INFINITY : decided;
  }

  /**
   * Adds a minute. The argument `refused` is the largest number of requests that windows can have refused in this
   * minute. Callers add minutes in ascending order.
   *
   * @returns whether a ban can begin in this minute
   */
  refuse(minute: number, refused: number): boolean {
    this.count(minute, refused);
    if (this.strikes < this.bans.after) return false;
    this.startSeries(minute);
    this.raise();
    this.untilMs = Math.max(this.untilMs, (minute + 1) * this.minuteMs + this.lengthOf(this.level));
    this.seriesEndMs = Math.max(this.seriesEndMs, this.untilMs);
    return true;
  }

  /**
   * Adds a minute from before the edit. The levels of bans are not recorded, so a ban that has not ended is assumed to be the longest. The
   * refusal with which a ban begins is recorded as banned.
   */
  past({ minute, decided, banned }: RecordedDecisions, refused: number): void {
    if (refused > 0) this.count(minute, refused);
    if (decided > 0) this.endCarried(minute);
    if (banned === 0) return;
    this.startSeries(minute);
    this.inRow += banned;
    if (decided > 0 || minute > this.bannedMinute + 1) this.raise();
    this.bannedMinute = minute;
    this.carriedUntilMs = (minute + 1) * this.minuteMs + this.bans.maxMs;
    this.seriesEndMs = this.carriedUntilMs;
  }

  private endCarried(minute: number): void {
    const startMs = minute * this.minuteMs;
    if (startMs >= this.carriedUntilMs) return;
    this.carriedUntilMs = startMs;
    this.seriesEndMs = Math.max(this.untilMs, startMs + this.minuteMs);
  }

  private count(minute: number, refused: number): void {
    if (this.ring.length > 0) this.forget(minute, refused);
    this.strikes += refused;
    this.inRow += refused;
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

  /** After `maxMs` without a ban, the next ban starts a new series. */
  private startSeries(minute: number): void {
    if (minute * this.minuteMs < this.seriesEndMs + this.bans.maxMs) return;
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
}

/**
 * The largest size of the ring buffer, a week of minutes. If `withinMs` is longer than a week, the class counts all
 * refusals, and its result is an upper bound.
 */
const ringMax = 10_081;
