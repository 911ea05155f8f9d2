import { hash } from 'node:crypto';
import type { Guard, Limits, Plan, PlanWindow, WindowName } from '../shared/model.ts';

/** The limits of a plan that a guard watches. */
export interface GuardedEdit {
  /**
   * The same in all processes with the same limits and the same guard of the plan. An edit of the limits or of the guard, and a scheduled
   * change of the limits, give another identity. Processes with different configurations therefore never share figures.
   */
  readonly identity: string;
  readonly plan: string;
  /** The limits of the edit. */
  readonly limits: Limits;
  readonly guard: Guard;
  /** The watched windows, in which the edit made the plan smaller. */
  readonly windows: readonly PlanWindow[];
}

/**
 * Returns the guarded edit of a plan; undefined if the plan has no guard, or if no window is smaller than before.
 *
 * @param limits the limits of the edit
 */
export function guardedEditOf({ name, guard }: Plan, limits: Limits): GuardedEdit | undefined {
  if (guard === undefined) return undefined;
  const windows = smallerWindows(guard.before, limits);
  if (windows.length === 0) return undefined;
  return { identity: identityOf(name, limits, guard), plan: name, limits, guard, windows };
}

/** The windows whose limit is smaller than before, or that had no limit before. */
export function smallerWindows(before: Limits, now: Limits): readonly PlanWindow[] {
  return now
    .filter(({ window, max }) => max < (limitOf(before, window) ?? Number.POSITIVE_INFINITY))
    .map(({ window }) => window);
}

/** The limit of a window; undefined if the window has no limit. */
export function limitOf(limits: Limits, window: WindowName): number | undefined {
  return limits.find((one) => one.window === window)?.max;
}

/** Returns a share of requests as the configuration states it: "3 %", "0.5 %". */
export function percentText(share: number): string {
  return `${Number((share * 100).toFixed(3))} %`;
}

function identityOf(name: string, limits: Limits, { before, refusedShareMax, untilMs }: Guard): string {
  const pairsOf = (all: Limits) => all.map(({ window, max }) => [window, max]);
  const stated = JSON.stringify([name, pairsOf(limits), pairsOf(before), refusedShareMax, untilMs]);
  return hash('sha256', stated, 'hex').slice(0, 16);
}
