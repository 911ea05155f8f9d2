import { hash } from 'node:crypto';
import { smallerLimits, sortedLimits } from '../../shared/limits.ts';
import type { Limits, Plan } from '../../shared/model.ts';
import type { Guard } from './guard.ts';

/** The limits of a plan that a guard watches. */
export interface GuardedEdit {
  /**
   * The same in all processes with the same limits and the same guard of the plan. An edit of the limits or of the guard, and a scheduled
   * change of the limits, give another identity. Processes with different configurations therefore never share figures.
   */
  readonly identity: string;
  readonly plan: string;
  readonly limits: Limits;
  readonly guard: Guard;
  /** The watched limits, which the edit made smaller. */
  readonly watched: Limits;
}

/** Undefined if the plan has no guard, or if no limit is smaller than before. @param limits the limits of the edit */
export function guardedEditOf({ name, guard }: Plan, limits: Limits): GuardedEdit | undefined {
  if (guard === undefined) return undefined;
  const watched = smallerLimits(guard.before, limits);
  if (watched.length === 0) return undefined;
  return { identity: identityOf(name, limits, guard), plan: name, limits, guard, watched };
}

function identityOf(name: string, limits: Limits, { before, refusedShareMax, untilMs }: Guard): string {
  const pairsOf = (all: Limits) =>
    sortedLimits(all).map(({ window, max, group, operations }) =>
      group === undefined ? [window, max] : [window, max, group, operations],
    );
  const stated = JSON.stringify([name, pairsOf(limits), pairsOf(before), refusedShareMax, untilMs]);
  return hash('sha256', stated, 'hex').slice(0, 16);
}
