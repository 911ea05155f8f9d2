import { type Decision, type PlanWindow, planWindows } from '../shared/model.ts';
import { addGroups, type GroupTallies, type GroupTally, groupTalliesIn, refusedByGroups } from './groups.ts';
import { figureNumber, figureOf, figurePlaceOf } from './minute-figures.ts';
import type { Counts } from './store/counts.ts';

/**
 * The outcome of a request with a valid key. If a window refused the request and the response names this window, the
 * outcome is the name of the window, or `group` for a window of a group of operations. `undecided` means that Redis was
 * away. `concurrent` means that the concurrency limit refused the request. The store identifies an outcome by its
 * position in this list, so add new outcomes at the end.
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
  'concurrent',
  'group',
] as const;

export type Outcome = (typeof outcomes)[number];

/** The number of requests by outcome, the costs of admitted requests that did not cost 1 unit, and the requests of groups. */
export type Tally = Readonly<Record<Outcome, number>> & {
  /** Units of admitted requests in excess of 1 unit per request. */
  readonly extraUnits: number;
  /** The number of admitted requests that cost nothing. */
  readonly free: number;
  /** Absent if the key has no groups of operations. */
  readonly groups?: GroupTallies;
};

export const emptyTally = Object.freeze({
  ...Object.fromEntries(outcomes.map((outcome) => [outcome, 0])),
  extraUnits: 0,
  free: 0,
}) as Tally;

export function outcomeOf(decision: Decision): Outcome {
  switch (decision.kind) {
    case 'admitted':
    case 'banned':
      return decision.kind;
    case 'unavailable':
      return 'undecided';
    case 'refused': {
      const { name, group } = decision.rateLimit.inForce;
      return group === undefined ? (name as PlanWindow) : 'group';
    }
    case 'crowded':
      return 'concurrent';
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
  const groups = new Map<string, GroupTally>();
  for (const tally of tallies) {
    for (const outcome of outcomes) sum[outcome] += tally[outcome];
    sum.extraUnits += tally.extraUnits;
    sum.free += tally.free;
    if (tally.groups !== undefined) addGroups(groups, tally.groups);
  }
  return groups.size === 0 ? sum : { ...sum, groups };
}

/** The fields of a record that count the same periods: the minutes of an hour, or the days of a month. */
export interface TallyFields {
  /** The counts of the first eight outcomes in each period (`tallyNumber`). */
  readonly counts?: Counts | undefined;
  /** The counts of the later outcomes in each period (`laterNumber`). */
  readonly later?: Counts | undefined;
  /** The costs of the requests in `counts` (`unitsNumber`). */
  readonly units?: Counts | undefined;
  /** The counts of each group, by its name. */
  readonly groups?: ReadonlyMap<string, Counts>;
}

/**
 * Reads the tallies from the fields of a record, by the position of the period. The function ignores outcomes that only
 * newer gateway versions know.
 */
export function talliesIn({ counts, later, units, groups = new Map() }: TallyFields): Map<number, Tally> {
  const tallies = new Map<number, { -readonly [Figure in keyof Tally]: Tally[Figure] }>();
  const add = (place: number, outcome: Outcome | undefined, requests: number) => {
    if (outcome === undefined) return;
    const tally = tallies.get(place) ?? { ...emptyTally };
    tally[outcome] += requests;
    tallies.set(place, tally);
  };
  for (const [number, value] of counts ?? []) {
    if (number > 0) add(placeOf(number), outcomes[outcomeAt(number)], value);
  }
  for (const [number, value] of later ?? []) {
    if (number > 0) add(...laterAt(number), value);
  }
  for (const [place, tally] of tallies) {
    tally.extraUnits = units?.get(unitsNumber(place, 0).extra) ?? 0;
    tally.free = units?.get(unitsNumber(place, 0).free) ?? 0;
  }
  for (const [name, ofGroup] of groups) {
    for (const [place, inGroup] of groupTalliesIn(ofGroup)) {
      const tally = tallies.get(place) ?? { ...emptyTally };
      tallies.set(place, { ...tally, groups: new Map([...(tally.groups ?? []), [name, inGroup]]) });
    }
  }
  return tallies;
}

/** `tallyNumber` assigns numbers to this many outcomes of each period. */
export const firstOutcomes = 8;

/**
 * Returns the number that identifies the count of one outcome in one period. The outcome must be one of the first eight
 * outcomes. The number 0 is reserved (`latest` in `counts.ts`).
 */
export function tallyNumber(place: number, outcome: number): number {
  return 1 + place * firstOutcomes + outcome;
}

export function placeOf(tallyNumber: number): number {
  return Math.floor((tallyNumber - 1) / firstOutcomes);
}

export function outcomeAt(tallyNumber: number): number {
  return (tallyNumber - 1) % firstOutcomes;
}

/**
 * Returns the number that identifies the count of one outcome in one period. The outcome must not be one of the first
 * eight outcomes. A separate field contains the counts of such outcomes. Earlier versions ignore this field, so two
 * versions can share a record. The field has room for any number of outcomes.
 */
export function laterNumber(place: number, outcome: number): number {
  return figureNumber(place, outcome - firstOutcomes);
}

function laterAt(number: number): [place: number, outcome: Outcome | undefined] {
  return [figurePlaceOf(number), outcomes[firstOutcomes + figureOf(number)]];
}

/**
 * Returns the numbers that identify the costs of one outcome in one period. The outcome must be one of the first eight
 * outcomes. `extra` counts units in excess of 1 per request, and `free` counts requests that cost nothing. If a record
 * has neither number, every request cost 1 unit.
 */
export function unitsNumber(
  place: number,
  outcome: number,
): { readonly extra: number; readonly free: number } {
  const extra = 2 * tallyNumber(place, outcome) - 1;
  return { extra, free: extra + 1 };
}

/** The limits that refuse requests: windows, and the limit of requests in progress. */
const refusingLimits = [...planWindows, 'concurrent'] as const;

/**
 * Returns the number of refused requests by limit, without limits that refused no request. A limit of a group has a name such
 * as `reports-minute`. Refusals by groups that were not read are called `group`.
 */
export function refusedByLimit(tally: Tally): Record<string, number> {
  const refusing = refusingLimits.filter((limit) => tally[limit] > 0);
  const ofGroups = refusedByGroups(tally.groups);
  const unread = tally.group - Object.values(ofGroups).reduce((sum, requests) => sum + requests, 0);
  return {
    ...Object.fromEntries(refusing.map((limit) => [limit, tally[limit]])),
    ...ofGroups,
    ...(unread > 0 && { group: unread }),
  };
}
