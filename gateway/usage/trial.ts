import type { Limits } from '../shared/model.ts';
import { outcomes } from './tally.ts';

/**
 * Returns the name of a trial in the usage record, for example `minute40,day1000`. The name contains all limits of the
 * trial, so the counts of an edited trial begin at zero.
 */
export function trialName(limits: Limits): string {
  const known = names.get(limits);
  if (known !== undefined) return known;
  const name = limits.map(({ window, max }) => `${window}${max}`).join(',');
  names.set(limits, name);
  return name;
}

/** All keys of a plan share the limits of the plan's trial, so each configuration makes the name of a trial once. */
const names = new WeakMap<Limits, string>();

/**
 * The figures of each minute in the field of a trial: the requests that the plan itself refused, and then the requests
 * by the outcome that the trial decided. The store identifies a figure by its position.
 */
export const refusedNowFigure = 0;
export const trialFigure = (outcome: number) => 1 + outcome;
export const trialFigures = trialFigure(outcomes.length);

/** The maximum number of minutes of a figure in one field. */
const placesMax = 64;

/** Returns the number that identifies a figure of one minute in the field of a trial. */
export const trialNumber = (place: number, figure: number) => 1 + figure * placesMax + place;

/** Returns the figure and the minute of the hour to which a number in the field of a trial belongs. */
export const trialFigureOf = (number: number) => Math.floor((number - 1) / placesMax);
export const trialPlaceOf = (number: number) => (number - 1) % placesMax;
