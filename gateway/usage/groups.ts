import { type Decision, type PlanWindow, planWindows } from '../shared/model.ts';
import { policyName } from '../shared/words/limit-names.js';
import { figureNumber, figureOf, figurePlaceOf, type MinuteFigures } from './minute-figures.ts';
import type { Counts } from './store/counts.ts';

export interface GroupTally {
  readonly offered: number;
  readonly admitted: number;
  /** The units that were charged to the windows of the group. */
  readonly units: number;
  /** Requests that a window of the group refused, without windows that refused no request. */
  readonly refused: Readonly<Partial<Record<PlanWindow, number>>>;
}

/** By the name of the group. */
export type GroupTallies = ReadonlyMap<string, GroupTally>;

/** The store identifies a figure by its position, so add new figures at the end. */
const figures = ['offered', 'admitted', 'units'] as const;
const refusedFigure = (window: PlanWindow) => figures.length + planWindows.indexOf(window);

/** Counts a decided request in the figures of a group that has its operation. */
export function countInGroup(
  minute: MinuteFigures,
  name: string,
  { kind, units, rateLimit }: Decision,
): void {
  minute.add(figures.indexOf('offered'));
  if (kind === 'admitted') {
    minute.add(figures.indexOf('admitted'));
    if (units > 0) minute.add(figures.indexOf('units'), units);
  }
  const { inForce } = rateLimit;
  // The windows of a group have no address bucket among them.
  if (kind === 'refused' && inForce.group === name) minute.add(refusedFigure(inForce.name as PlanWindow));
}

/** Reads the field of a group, by the minute of the hour or the day of the month. */
export function groupTalliesIn(counts: Counts): ReadonlyMap<number, GroupTally> {
  const tallies = new Map<number, GroupTally>();
  for (const [number, value] of counts) {
    if (number === 0) continue;
    const [figure, place] = [figureOf(number), figurePlaceOf(number)];
    const tally = tallies.get(place) ?? { offered: 0, admitted: 0, units: 0, refused: {} };
    const name = figures[figure];
    const window = planWindows[figure - figures.length];
    if (name !== undefined) tallies.set(place, { ...tally, [name]: value });
    // A newer version may write further figures.
    else if (window !== undefined)
      tallies.set(place, { ...tally, refused: { ...tally.refused, [window]: value } });
  }
  return tallies;
}

/** Returns the numbers of a group's field for one minute or day. */
export function groupCounts(place: number, { refused, ...tally }: GroupTally): Counts {
  const counts: Counts = new Map();
  for (const [figure, name] of figures.entries()) {
    if (tally[name] > 0) counts.set(figureNumber(place, figure), tally[name]);
  }
  for (const [window, requests] of Object.entries(refused))
    counts.set(figureNumber(place, refusedFigure(window as PlanWindow)), requests);
  return counts;
}

export function addGroups(sums: Map<string, GroupTally>, more: GroupTallies): void {
  for (const [name, tally] of more) {
    const sum = sums.get(name);
    if (sum === undefined) {
      sums.set(name, tally);
      continue;
    }
    const refused = { ...sum.refused };
    for (const [window, requests] of Object.entries(tally.refused) as [PlanWindow, number][])
      refused[window] = (refused[window] ?? 0) + requests;
    const { offered, admitted, units } = tally;
    sums.set(name, {
      ...{ offered: sum.offered + offered, admitted: sum.admitted + admitted, units: sum.units + units },
      refused,
    });
  }
}

/** Returns the requests that groups refused, by the name of the policy, such as `reports-minute`. */
export function refusedByGroups(groups: GroupTallies = new Map()): Readonly<Record<string, number>> {
  return Object.fromEntries(
    [...groups].flatMap(([name, { refused }]) =>
      Object.entries(refused).map(([window, requests]) => [policyName(window, name), requests]),
    ),
  );
}
