import { createHash } from 'node:crypto';
import type { Limit, Limits } from '../shared/model.ts';
import { policyName } from '../shared/words/limit-names.js';
import { outcomes } from './tally.ts';

/**
 * Returns the name of a trial in the usage record, for example `minute40,day1000,reports-minute5~0e5d94c2`. The name contains all
 * limits of the trial, and a digest of the operations of each group, so the counts of an edited trial begin at zero.
 */
export function trialName(limits: Limits): string {
  const known = names.get(limits);
  if (known !== undefined) return known;
  const name = limits.map(limitName).join(',');
  names.set(limits, name);
  return name;
}

function limitName({ window, group, max, operations }: Limit): string {
  const name = `${policyName(window, group)}${max}`;
  if (operations === undefined) return name;
  const digest = createHash('sha256')
    .update([...operations].sort().join())
    .digest('hex');
  return `${name}~${digest.slice(0, 8)}`;
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
