import type { KeyMinutes } from '../../../usage/read/key-minutes.ts';

/** The rules by which a guard adds up the requests of a plan. */
export interface GuardRules {
  /** Half the length of a period. */
  readonly stepMinutes: number;
  /** A period with fewer requests is not judged. */
  readonly requestsMin: number;
  /** With n active keys, each key counts for 1/n. From this number of keys on, the part does not become smaller. */
  readonly partsMax: number;
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
 * With n active keys, each key counts for at most 1/min(5, n) of the requests, which is the part `q`, and for as much of the refusals at which
 * the guard reverts the plan. The refusals of a key with more than `q` requests count in proportion. The guard therefore does not revert the
 * plan if its share is larger than the share of all counted refusals. Four keys count for at most four parts, so the counted refusals of all
 * other keys must reach a part too. The guard therefore does not revert the plan either if its share is larger than the counted refusals of
 * the other keys, divided by `q`. The result is the smaller of both numbers.
 *
 * Only the keys with the most requests can have more than `q` requests. For each period, the class remembers `partsMax` keys with the most
 * requests, and of the other keys the largest refusals.
 */
export class BusiestRefusals {
  private readonly rules: GuardRules;
  private readonly stepMinutes: number;
  private readonly firstStep: number;
  private readonly periods: number;
  /**
   * The figures of each plan. For each period: the requests, the refusals, the active keys, then the requests and refusals of the keys with the
   * most requests, then the largest refusals of other keys.
   */
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
    let largest = 0;
    for (let at = 0; at < figures.length; at += this.width) {
      largest = Math.max(largest, this.shareIn(figures.subarray(at, at + this.width)));
    }
    return largest;
  }

  /** The share that a guard must allow in one period. */
  private shareIn(figures: Uint32Array): number {
    const { requestsMin, partsMax } = this.rules;
    const [requests = 0, refused = 0, active = 0] = figures;
    if (requests < requestsMin) return 0;
    const parts = Math.min(active, partsMax);
    const busiest = Array.from({ length: parts }, (_, index) => ({
      requests: figures[3 + 2 * index] ?? 0,
      refused: figures[4 + 2 * index] ?? 0,
    }));
    let [left, leftParts] = [requests, parts];
    for (const one of busiest) {
      if (one.requests <= left / leftParts) break;
      left -= one.requests;
      leftParts -= 1;
    }
    const part = left / leftParts;
    let counted = refused;
    const largest = Array.from(figures.subarray(3 + 2 * partsMax));
    for (const one of busiest) {
      const ofKey = one.refused * Math.min(1, part / one.requests);
      counted -= one.refused - ofKey;
      largest.push(ofKey);
    }
    largest.sort((a, b) => b - a);
    const others = largest.slice(0, parts - 1).reduce((rest, one) => rest - one, counted);
    return Math.min(counted / parts, Math.max(0, others)) / part;
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
    return 3 + 2 * this.rules.partsMax + this.rules.partsMax - 1;
  }

  /** Adds a key to the period that begins with a step. */
  private addPeriod(figures: Uint32Array, step: number, offered: number, refused: number): void {
    const at = (step - this.firstStep) * this.width;
    if (offered <= 0 || !(at >= 0 && at < figures.length)) return;
    figures[at] = (figures[at] ?? 0) + offered;
    figures[at + 1] = (figures[at + 1] ?? 0) + refused;
    figures[at + 2] = (figures[at + 2] ?? 0) + 1;
    const { partsMax } = this.rules;
    let [requestsLeft, refusedLeft] = [offered, refused];
    for (let place = at + 3; place < at + 3 + 2 * partsMax; place += 2) {
      const [keptRequests = 0, keptRefused = 0] = figures.subarray(place, place + 2);
      if (requestsLeft <= keptRequests) continue;
      figures.set([requestsLeft, refusedLeft], place);
      [requestsLeft, refusedLeft] = [keptRequests, keptRefused];
    }
    for (let place = at + 3 + 2 * partsMax; refusedLeft > 0 && place < at + this.width; place++) {
      const kept = figures[place] ?? 0;
      if (refusedLeft <= kept) continue;
      figures[place] = refusedLeft;
      refusedLeft = kept;
    }
  }
}

/** Counts the requests that a window could refuse. A request without a cost is not counted. */
function offeredIn(
  { admitted, refused, bySecond, banned, costs }: KeyMinutes,
  place: number,
  end: number,
): number {
  let offered = 0;
  for (let at = place; at < end; at++) {
    const free = (costs?.admitted.free[at] ?? 0) + (costs?.banned.free[at] ?? 0);
    offered += (admitted[at] ?? 0) + (refused[at] ?? 0) + (bySecond[at] ?? 0) + (banned[at] ?? 0) - free;
  }
  return offered;
}
