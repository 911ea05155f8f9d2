import type { KeyMinutes } from '../read/key-minutes.ts';

/** The rules by which a guard adds up the requests of a plan. */
export interface GuardRules {
  /** Half the length of a period. */
  readonly stepMinutes: number;
  /** A period with fewer requests is not judged. */
  readonly requestsMin: number;
  /** The minimum number of keys with refusals for a revert. If the plan has fewer active keys, all active keys are enough. */
  readonly keysMin: number;
}

/** A new period begins in the middle of each period. */
export const stepsPerPeriod = 2;

/**
 * Finds the share of refused requests that a guard must allow so that the simulated limits do not make it revert the plan.
 *
 * A guard judges ten minutes, so the average share of the simulated days is too small for a guard. For example, a limit per day refuses
 * most of its requests at the end of the day. The class therefore adds up the requests and refusals of periods of ten minutes, a new period
 * every five minutes, and finds the largest share.
 *
 * A guard counts `min(refused, x)` for each key. Here, x is a fifth of the number of refusals at which the guard reverts the plan (1/n with
 * n < 5 active keys). The guard reverts the plan when the sum reaches 5x. The four keys with the most refusals count for at most 4x, so the
 * refusals of all other keys must reach x. The guard therefore does not revert the plan if its share is larger than 5 times the refusals of
 * the other keys, divided by the requests. The guard does not revert it either if its share is larger than the share of all refusals. The
 * result is the smaller of both numbers.
 */
export class BusiestRefusals {
  private readonly rules: GuardRules;
  private readonly stepMinutes: number;
  private readonly firstStep: number;
  private readonly periods: number;
  /** The figures of each plan: for each period the requests, the refusals, the active keys, and the largest refusals of single keys. */
  private readonly plans = new Map<string, Uint32Array>();
  /** The minutes with refusals of the present key, and their refusals. */
  private minutes: number[] = [];
  private refusals: number[] = [];
  private nextRefusal = 0;

  /**
   * Minutes are numbered since 1970.
   *
   * @param lastMinute the last simulated minute; less than `fromMinute` if no part of the period is on record
   */
  constructor(fromMinute: number, lastMinute: number, rules: GuardRules) {
    this.rules = rules;
    this.stepMinutes = rules.stepMinutes;
    this.firstStep = Math.floor(fromMinute / this.stepMinutes);
    this.periods = Math.max(0, Math.floor(lastMinute / this.stepMinutes) - this.firstStep + 1);
  }

  /** Receives the simulated refusals of the key that the next call of `add` names. */
  readonly onRefused = (minute: number, refused: number): void => {
    this.minutes.push(minute);
    this.refusals.push(refused);
  };

  /** Adds a key with its record. Requests without a decision are left out, because no limit refused them. */
  add(plan: string, record: KeyMinutes): void {
    const figures = this.figuresOf(plan);
    const { minute } = record;
    const firstMinute = this.firstStep * this.stepMinutes;
    let place = minute.findIndex((one) => one >= firstMinute);
    let before = { step: Number.NEGATIVE_INFINITY, offered: 0, refused: 0 };
    while (place >= 0 && place < minute.length) {
      const step = Math.floor((minute[place] ?? 0) / this.stepMinutes);
      const endMinute = (step + 1) * this.stepMinutes;
      let end = place;
      while (end < minute.length && (minute[end] ?? 0) < endMinute) end += 1;
      const here = {
        step,
        offered: offeredIn(record, place, end),
        refused: this.refusedIn(record, place, end),
      };
      if (before.step === step - 1) {
        this.addPeriod(figures, before.step, before.offered + here.offered, before.refused + here.refused);
      } else {
        this.addPeriod(figures, before.step, before.offered, before.refused);
        this.addPeriod(figures, step - 1, here.offered, here.refused);
      }
      before = here;
      place = end;
    }
    this.addPeriod(figures, before.step, before.offered, before.refused);
    this.minutes = [];
    this.refusals = [];
    this.nextRefusal = 0;
  }

  /** The largest share that a guard must allow, 0 to 1. The share is 0 if no period has enough requests. */
  shareOf(plan: string): number {
    const figures = this.plans.get(plan);
    if (figures === undefined) return 0;
    const { requestsMin, keysMin } = this.rules;
    let largest = 0;
    for (let at = 0; at < figures.length; at += this.width) {
      const [offered = 0, refused = 0, active = 0, ...heaviest] = figures.subarray(at, at + this.width);
      if (offered < requestsMin) continue;
      const keys = Math.min(active, keysMin);
      const others = heaviest.slice(0, keys - 1).reduce((left, one) => left - one, refused);
      largest = Math.max(largest, Math.min(refused, keys * others) / offered);
    }
    return largest;
  }

  /** Adds up the refusals of the present key in a step, which has the given positions of the record. */
  private refusedIn({ minute, undecided }: KeyMinutes, place: number, end: number): number {
    let refused = 0;
    for (let at = place; at < end && this.nextRefusal < this.minutes.length; at++) {
      if (this.minutes[this.nextRefusal] !== minute[at]) continue;
      refused += Math.max(0, (this.refusals[this.nextRefusal] ?? 0) - (undecided[at] ?? 0));
      this.nextRefusal += 1;
    }
    return refused;
  }

  private figuresOf(plan: string): Uint32Array {
    const known = this.plans.get(plan);
    if (known !== undefined) return known;
    const figures = new Uint32Array(this.periods * this.width);
    this.plans.set(plan, figures);
    return figures;
  }

  /** The number of figures of a period. */
  private get width(): number {
    return 3 + this.rules.keysMin - 1;
  }

  /** Adds a key to the period that begins with a step. */
  private addPeriod(figures: Uint32Array, step: number, offered: number, refused: number): void {
    const at = (step - this.firstStep) * this.width;
    if (offered === 0 || !(at >= 0 && at < figures.length)) return;
    figures[at] = (figures[at] ?? 0) + offered;
    figures[at + 1] = (figures[at + 1] ?? 0) + refused;
    figures[at + 2] = (figures[at + 2] ?? 0) + 1;
    let left = refused;
    for (let place = at + 3; left > 0 && place < at + this.width; place++) {
      const kept = figures[place] ?? 0;
      if (left <= kept) continue;
      figures[place] = left;
      left = kept;
    }
  }
}

function offeredIn({ admitted, refused, bySecond, banned }: KeyMinutes, place: number, end: number): number {
  let offered = 0;
  for (let at = place; at < end; at++) {
    offered += (admitted[at] ?? 0) + (refused[at] ?? 0) + (bySecond[at] ?? 0) + (banned[at] ?? 0);
  }
  return offered;
}
