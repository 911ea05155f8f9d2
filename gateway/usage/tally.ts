import type { Decision, PlanWindow } from '../shared/model.ts';
import type { Counts } from './store/counts.ts';

/**
 * The outcome of a request with a valid key. A window's name means that the window refused the request and is named in the
 * response. `undecided` means that Redis was away. The store uses each position as a number, so add new outcomes at the end.
 */
export const outcomes = [
  'admitted',
  'minute',
  'day',
  'banned',
  'hour',
  'second',
  'month',
  'undecided',
] as const;

export type Outcome = (typeof outcomes)[number];

/** Numbers that one minute or one day takes in a field: one for each outcome. */
export const outcomesMax = 8;

/** Requests by outcome, and the cost of admitted requests that did not cost 1 unit. */
export type Tally = Readonly<Record<Outcome, number>> & {
  /** Units of admitted requests in excess of 1 unit per request. */
  readonly extraUnits: number;
  /** Admitted requests that cost nothing. */
  readonly free: number;
};

export const emptyTally: Tally = {
  admitted: 0,
  minute: 0,
  day: 0,
  banned: 0,
  hour: 0,
  second: 0,
  month: 0,
  undecided: 0,
  extraUnits: 0,
  free: 0,
};

export function outcomeOf(decision: Decision): Outcome {
  switch (decision.kind) {
    case 'admitted':
    case 'banned':
      return decision.kind;
    case 'unavailable':
      return 'undecided';
    case 'refused':
      return decision.rateLimit.inForce.name as PlanWindow;
  }
}

export function offeredOf(tally: Tally): number {
  let sum = 0;
  for (const outcome of outcomes) sum += tally[outcome];
  return sum;
}

/** The units that the windows were charged. */
export function unitsOf({ admitted, extraUnits, free }: Tally): number {
  return admitted + extraUnits - free;
}

/** The units of a response. Undefined if they equal the admitted requests, as without costs. */
export function differingUnits({ admitted, units }: { admitted: number; units: number }): number | undefined {
  return units === admitted ? undefined : units;
}

export function sumOf(tallies: Iterable<Tally>): Tally {
  const sum = { ...emptyTally };
  for (const tally of tallies) {
    for (const outcome of outcomes) sum[outcome] += tally[outcome];
    sum.extraUnits += tally.extraUnits;
    sum.free += tally.free;
  }
  return sum;
}

/**
 * The tallies in a field that has one number for each outcome of a period, by the period's place in the field.
 *
 * @param units the field beside it, with what requests cost (`unitsNumber`)
 */
export function talliesIn(counts: Counts, units?: Counts): Map<number, Tally> {
  const tallies = new Map<number, { -readonly [Figure in keyof Tally]: Tally[Figure] }>();
  for (const [number, value] of counts) {
    if (number === 0) continue;
    const place = Math.floor((number - 1) / outcomesMax);
    const outcome = outcomes[(number - 1) % outcomesMax];
    const tally = tallies.get(place) ?? { ...emptyTally };
    if (outcome !== undefined) tally[outcome] += value;
    tallies.set(place, tally);
  }
  for (const [place, tally] of tallies) {
    tally.extraUnits = units?.get(unitsNumber(place, 0).extra) ?? 0;
    tally.free = units?.get(unitsNumber(place, 0).free) ?? 0;
  }
  return tallies;
}

/** The number under which an outcome of a period is counted; 0 is taken (`latest` in `counts.ts`). */
export function tallyNumber(place: number, outcome: number): number {
  return 1 + place * outcomesMax + outcome;
}

/**
 * The numbers for the cost of requests by period and outcome. `extra` counts units in excess of 1 per request, and `free`
 * counts requests that cost nothing. If both are absent, every request cost 1 unit.
 */
export function unitsNumber(
  place: number,
  outcome: number,
): { readonly extra: number; readonly free: number } {
  const extra = 1 + 2 * (place * outcomesMax + outcome);
  return { extra, free: extra + 1 };
}
