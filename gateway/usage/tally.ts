import { type Decision, type PlanWindow, planWindows } from '../shared/model.ts';
import type { Counts } from './store/counts.ts';

/**
 * The outcome of a request with a valid key. If a window refused the request and the response names this window, the
 * outcome is the name of the window. `undecided` means that Redis was away. The store uses each position as a number,
 * so add new outcomes at the end.
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

/** The number of requests by outcome, and the costs of admitted requests that did not cost 1 unit. */
export type Tally = Readonly<Record<Outcome, number>> & {
  /** Units of admitted requests in excess of 1 unit per request. */
  readonly extraUnits: number;
  /** The number of admitted requests that cost nothing. */
  readonly free: number;
};

export const emptyTally = Object.freeze({
  ...Object.fromEntries(outcomes.map((outcome) => [outcome, 0])),
  extraUnits: 0,
  free: 0,
}) as Tally;

/**
 * Returns the outcome of a decision; undefined for a request beyond the concurrency limit, which the usage record
 * does not count.
 */
export function outcomeOf(decision: Decision): Outcome | undefined {
  switch (decision.kind) {
    case 'admitted':
    case 'banned':
      return decision.kind;
    case 'unavailable':
      return 'undecided';
    case 'refused':
      return decision.rateLimit.inForce.name as PlanWindow;
    case 'crowded':
      return undefined;
  }
}

export function offeredOf(tally: Tally): number {
  let sum = 0;
  for (const outcome of outcomes) sum += tally[outcome];
  return sum;
}

/** Returns the units that were charged to the windows. */
export function unitsOf({ admitted, extraUnits, free }: Tally): number {
  return admitted + extraUnits - free;
}

/** Returns the units to show in a response; undefined if they equal the admitted requests. */
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
 * Reads the tallies from a field, by the position of the period in the field. The field has one number for each
 * outcome of a period.
 *
 * @param units the field with the costs of the same requests (`unitsNumber`)
 */
export function talliesIn(counts: Counts, units?: Counts): Map<number, Tally> {
  const tallies = new Map<number, { -readonly [Figure in keyof Tally]: Tally[Figure] }>();
  for (const [number, value] of counts) {
    if (number === 0) continue;
    const place = placeOf(number);
    const outcome = outcomes[outcomeAt(number)];
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

/**
 * The size of a block of numbers in a field: 8 outcomes for each of 64 periods. A field has the 60 minutes of an hour
 * or the 31 days of a month.
 */
const [blockOutcomes, blockPlaces] = [8, 64];
const blockNumbers = blockOutcomes * blockPlaces;

/**
 * Returns the number under which an outcome of a period is counted. The number 0 is reserved (`latest` in
 * `counts.ts`). The ninth outcome begins a second block, so the numbers in older records stay valid.
 */
export function tallyNumber(place: number, outcome: number): number {
  const block = Math.floor(outcome / blockOutcomes);
  return 1 + block * blockNumbers + place * blockOutcomes + (outcome % blockOutcomes);
}

/** Returns the position of a period in its field. */
export function placeOf(tallyNumber: number): number {
  return Math.floor(((tallyNumber - 1) % blockNumbers) / blockOutcomes);
}

/** Returns the outcome that belongs to a number of a field. */
export function outcomeAt(tallyNumber: number): number {
  const block = Math.floor((tallyNumber - 1) / blockNumbers);
  return block * blockOutcomes + ((tallyNumber - 1) % blockOutcomes);
}

/**
 * Returns the numbers under which the costs of requests are counted, by period and outcome. `extra` counts units in
 * excess of 1 per request, and `free` counts requests that cost nothing. If both are absent, every request cost 1
 * unit.
 */
export function unitsNumber(
  place: number,
  outcome: number,
): { readonly extra: number; readonly free: number } {
  const extra = 2 * tallyNumber(place, outcome) - 1;
  return { extra, free: extra + 1 };
}

/** Returns the number of refused requests by window, without windows that refused no request. */
export function refusedByWindow(tally: Tally): Record<string, number> {
  const refusing = planWindows.filter((window) => tally[window] > 0);
  return Object.fromEntries(refusing.map((window) => [window, tally[window]]));
}
