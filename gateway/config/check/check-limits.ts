import { smallerWindows } from '../../keys/guards.ts';
import { limitFieldOf } from '../../keys/limit-fields.ts';
import { calendarMonth, calendarWindowsMs } from '../../shared/calendar-windows.ts';
import type { Limit, Limits, Operation, Plan, PlanWindow } from '../../shared/model.ts';
import { nameOf } from '../../shared/schema/schema-faults.ts';

/** Limits and their path in the configuration, such as `plans.free` or `keys[3].limits`. */
export interface StatedLimits {
  readonly path: readonly PropertyKey[];
  readonly limits: Limits;
}

/** A warning about a field that is valid but probably a mistake. */
export interface LimitWarning {
  readonly path: readonly PropertyKey[];
  readonly message: string;
}

/**
 * Finds limits that have no effect. A limit is useless if a longer window has a lower limit. A longer window's limit is also
 * useless if the shorter window's limit always refuses the client first.
 */
export function checkLimits({ path, limits }: StatedLimits): readonly LimitWarning[] {
  return limits.flatMap((longer, index) =>
    limits.slice(0, index).flatMap((shorter) => {
      const message = comparison(shorter, longer);
      const at = [...path, limitFieldOf[longer.window]];
      return message === undefined ? [] : [{ path: at, message: `${nameOf(at)} (${longer.max}) ${message}` }];
    }),
  );
}

/**
 * Finds operations that cost more than a limit of a plan. A request that costs more than a limit gets 403, unless a grant raises the limit.
 */
export function checkCosts(plan: Plan, operations: readonly Operation[]): readonly LimitWarning[] {
  const { name, limits, changes = [], trial } = plan;
  const ofPlan = { path: ['plans', name], limits, effect: 'get 403' };
  const ofChanges = changes.map((change, index) => ({
    ...ofPlan,
    path: ['plans', name, 'changes', index],
    limits: change.limits,
  }));
  const ofTrial = trial ? [{ path: ['plans', name, 'trial'], limits: trial, effect: 'would get 403' }] : [];
  return operations.flatMap(({ id, cost = 1 }) => {
    if (plan.operations?.includes(id) === false) return [];
    return [ofPlan, ...ofChanges, ...ofTrial].flatMap((stated) => {
      const lower = stated.limits.find(({ max }) => max < cost);
      if (lower === undefined) return [];
      const path = [...stated.path, limitFieldOf[lower.window]];
      const message = `${nameOf(path)} (${lower.max}) is below the cost of \`${id}\` (${cost} units); its requests ${stated.effect}`;
      return [{ path, message }];
    });
  });
}

/** Finds a guard that has ended, or that has nothing to watch because no limit of the plan is smaller than before the edit. */
export function checkGuard(plan: Plan, nowMs: number): LimitWarning | undefined {
  const { name, guard, limits, changes = [] } = plan;
  if (guard === undefined) return undefined;
  const path = ['plans', name, 'guard'];
  if (guard.untilMs <= nowMs) {
    const until = [...path, 'until'];
    const message = `${nameOf(until)} is past, so the guard has ended; remove the guard if the new limits shall stay`;
    return { path: until, message };
  }
  const all = [limits, ...changes.map((change) => change.limits)];
  if (all.some((one) => smallerWindows(guard.before, one).length > 0)) return undefined;
  const message = `${nameOf(path)} has nothing to watch, because no limit of the plan is smaller than in \`before\`; remove the guard, or write the limits before the edit`;
  return { path, message };
}

/** Finds windows that a plan limits and its trial does not limit. Such a trial tries to remove the limit of the plan. */
export function checkTrial({ name, trial }: Plan, limits: Limits): readonly LimitWarning[] {
  if (trial === undefined) return [];
  const path = ['plans', name, 'trial'];
  return limits
    .filter(({ window }) => !trial.some((tried) => tried.window === window))
    .map(({ window, max }) => {
      const field = limitFieldOf[window];
      const message = `${nameOf(path)} has no \`${field}\`, so it tries the plan without this limit; if the limit stays, write \`${field}: ${max}\``;
      return { path, message };
    });
}

function comparison(shorter: Limit, longer: Limit): string | undefined {
  const other = `${limitFieldOf[shorter.window]} (${shorter.max})`;
  if (longer.max < shorter.max) return `is below ${other}, which can therefore never be used in full`;
  const reachable = shorter.max * mostIn(shorter.window, longer.window);
  if (longer.max <= reachable) return undefined;
  return `can never be reached: ${other} admits at most ${reachable} in a ${longer.window}`;
}

/** The largest number of shorter windows in one longer window. */
function mostIn(shorter: PlanWindow, longer: PlanWindow): number {
  return mostMs(longer) / mostMs(shorter);
}

function mostMs(window: PlanWindow): number {
  const lengthMs = calendarWindowsMs[window];
  return lengthMs === calendarMonth ? 31 * calendarWindowsMs.day : lengthMs;
}
