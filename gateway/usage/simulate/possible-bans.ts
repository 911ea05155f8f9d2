import type { BanPolicy } from '../../shared/model.ts';

/**
 * Until when a ban can last at most, minute by minute, whatever the order of the requests within a minute was. A ban
 * begins with a refusal by a window, as soon as `after` of them are counted within `withinMs`; so it can begin in a minute
 * only where the refusals of that minute and of those that `withinMs` reaches back to are as many. Its length doubles with
 * each ban in a row, and each takes `after` refusals of its own.
 */
export class PossibleBans {
  private readonly bans: BanPolicy;
  private readonly minuteMs: number;
  /** The refusals of each minute that may still count, in a ring, and where those of the last minute are. */
  private readonly ring: Float64Array;
  private place = 0;
  private lastMinute = Number.NEGATIVE_INFINITY;
  private strikes = 0;
  /** Refusals that the bans in a row can have been made of. */
  private inRow = 0;
  private untilMs = Number.NEGATIVE_INFINITY;

  constructor(bans: BanPolicy, minuteMs: number) {
    const counting = 1 + Math.ceil(bans.withinMs / minuteMs);
    this.bans = bans;
    this.minuteMs = minuteMs;
    this.ring = new Float64Array(counting > ringMax ? 0 : counting);
  }

  /** Whether a ban that began in an earlier minute can reach into this one. */
  covers(minute: number): boolean {
    return minute * this.minuteMs < this.untilMs;
  }

  /**
   * Counts what windows refuse in a minute, at most; minutes ascend.
   *
   * @returns whether a ban can begin in it
   */
  refuse(minute: number, refused: number): boolean {
    if (this.ring.length > 0) this.forget(minute, refused);
    this.strikes += refused;
    this.inRow += refused;
    if (this.strikes < this.bans.after) return false;
    this.begin(minute);
    return true;
  }

  /** A ban was recorded in this minute: it lasts so long at most, and its level is not known. */
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
    // After so long without a ban the next one is the first in a row again.
    if (minute * this.minuteMs >= this.untilMs + maxMs) this.inRow = this.strikes;
    const level = Math.max(1, Math.floor(this.inRow / after));
    this.extend(minute, Math.min(forMs * 2 ** (level - 1), maxMs));
  }

  private extend(minute: number, lengthMs: number): void {
    this.untilMs = Math.max(this.untilMs, (minute + 1) * this.minuteMs + lengthMs);
  }
}

/** Where refusals count for longer than these minutes (a week), all of them do: more than can have counted. */
const ringMax = 10_081;
