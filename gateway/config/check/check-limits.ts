import { planMembers } from '../../capabilities/lists/configuration.ts';
import { limitFieldOf, limitPath } from '../../keys/limits/limit-fields.ts';
import { calendarMonth, calendarWindowsMs } from '../../shared/calendar-windows.ts';
import { groupNames, isSameLimit, limitsOn, ofAllOperations, operationsOf } from '../../shared/limits.ts';
import type { Limit, Limits, Operation, Plan, PlanWindow } from '../../shared/model.ts';
import { nameOf } from '../../shared/schema/schema-faults.ts';
import { per } from '../../shared/words/limit-names.js';

/** The path is such as `plans.free` or `keys[3]`. */
export interface StatedLimits {
  readonly path: readonly PropertyKey[];
  readonly limits: Limits;
  /** A key states the limits in its member `limits`. */
  readonly isKey?: boolean;
}

/** A field that is valid but probably a mistake. */
export interface LimitWarning {
  readonly path: readonly PropertyKey[];
  readonly message: string;
}

/**
 * Finds limits that have no effect. Either a longer window has a lower limit, or the limit of a shorter window always refuses first, or a
 * limit of all operations always refuses before the limit of a group.
 */
export function checkLimits({ path, limits, isKey = false }: StatedLimits): readonly LimitWarning[] {
  const warningOf = (limit: Limit, message: string | undefined) => {
    const at = pathOf(isKey && limit.group === undefined ? [...path, 'limits'] : path, limit);
    return message === undefined ? [] : [{ path: at, message: `${nameOf(at)} (${limit.max}) ${message}` }];
  };
  const ofAll = ofAllOperations(limits);
  return limits.flatMap((longer, index) => {
    const shorter = limits.slice(0, index).filter(({ group }) => group === longer.group);
    const tighter = longer.group === undefined ? [] : ofAll.filter((limit) => alwaysRefuses(limit, longer));
    return [
      ...shorter.flatMap((limit) => warningOf(longer, comparison(limit, longer))),
      ...tighter.slice(0, 1).flatMap((limit) => warningOf(longer, hidden(limit))),
    ];
  });
}

/** Finds groups that never refuse a request, because no key may call their operations, or because the operations cost nothing. */
export function checkGroups(plan: Plan, operations: readonly Operation[]): readonly LimitWarning[] {
  const costOf = new Map(operations.map(({ id, cost = 1 }) => [id, cost]));
  return limitsOfPlan(plan).flatMap((stated) =>
    groupNames(stated.limits).flatMap((group) => {
      const path = [...stated.path, 'groups', group];
      const ofGroup = operationsOf(stated.limits, group) ?? [];
      const callable = ofGroup.filter((id) => plan.operations?.includes(id) ?? true);
      if (callable.some((id) => costOf.get(id) !== 0)) return [];
      const why =
        callable.length === 0
          ? 'the keys of the plan may call none of its operations'
          : 'its operations cost 0 units';
      return [{ path, message: `${nameOf(path)} can never refuse a request, because ${why}` }];
    }),
  );
}

/** With its scheduled changes and its trial. */
function limitsOfPlan({ name, limits, changes = [], trial }: Plan): readonly PlanLimits[] {
  const path = ['plans', name];
  return [
    { path, limits },
    ...changes.map((change, index) => ({ path: [...path, 'changes', index], limits: change.limits })),
    ...(trial === undefined ? [] : [{ path: [...path, 'trial'], limits: trial, isTrial: true }]),
  ];
}

interface PlanLimits extends StatedLimits {
  readonly isTrial?: boolean;
}

function pathOf(path: readonly PropertyKey[], { window, group }: Limit): readonly PropertyKey[] {
  return [...path, ...(group === undefined ? [] : ['groups', group]), limitFieldOf[window]];
}

/** Whether the limit of all operations refuses every request that the limit of the group would refuse. */
function alwaysRefuses(ofAll: Limit, ofGroup: Limit): boolean {
  const isShorter = mostMs(ofAll.window) < mostMs(ofGroup.window);
  return ofGroup.max >= (isShorter ? ofAll.max * mostIn(ofAll.window, ofGroup.window) : ofAll.max);
}

function hidden({ window, max }: Limit): string {
  return `can never refuse a request, because ${limitFieldOf[window]} (${max}) of all operations refuses it first`;
}

/** A request that costs more than a limit gets 403, unless a grant raises the limit. */
export function checkCosts(plan: Plan, operations: readonly Operation[]): readonly LimitWarning[] {
  return operations.flatMap(({ id, cost = 1 }) => {
    if (plan.operations?.includes(id) === false) return [];
    return limitsOfPlan(plan).flatMap(({ path: ofLimits, limits, isTrial }) => {
      const lower = limitsOn(limits, id).find(({ max }) => max < cost);
      if (lower === undefined) return [];
      const path = pathOf(ofLimits, lower);
      const message = `${nameOf(path)} (${lower.max}) is below the cost of \`${id}\` (${cost} units); its requests ${isTrial ? 'would get' : 'get'} 403`;
      return [{ path, message }];
    });
  });
}

export function checkMembers(plan: Plan, nowMs: number): readonly LimitWarning[] {
  return planMembers.flatMap((member) => {
    const warning = member.warning?.(plan, nowMs);
    if (warning === undefined) return [];
    const path = ['plans', plan.name, ...warning.path];
    return [{ path, message: `${nameOf(path)} ${warning.about}` }];
  });
}

/** Finds windows that the plan limits and its trial does not. Such a trial tries to remove the limit of the plan. */
export function checkTrial({ name, trial }: Plan, limits: Limits): readonly LimitWarning[] {
  if (trial === undefined) return [];
  const path = ['plans', name, 'trial'];
  return limits
    .filter((limit) => !trial.some((ofTrial) => isSameLimit(ofTrial, limit)))
    .map((limit) => {
      const field = limitPath(limit);
      const message = `${nameOf(path)} has no \`${field}\`, so it tries the plan without this limit; if the limit stays, write \`${field}: ${limit.max}\``;
      return { path, message };
    });
}

function comparison(shorter: Limit, longer: Limit): string | undefined {
  const other = `${limitFieldOf[shorter.window]} (${shorter.max})`;
  if (longer.max < shorter.max) return `is below ${other}, which can therefore never be used in full`;
  const reachable = shorter.max * mostIn(shorter.window, longer.window);
  if (longer.max <= reachable) return undefined;
  return `can never be reached: ${other} admits at most ${reachable} in ${per(longer.window)}`;
}

/** The largest number of shorter windows in one longer window. */
function mostIn(shorter: PlanWindow, longer: PlanWindow): number {
  return mostMs(longer) / mostMs(shorter);
}

function mostMs(window: PlanWindow): number {
  const lengthMs = calendarWindowsMs[window];
  return lengthMs === calendarMonth ? 31 * calendarWindowsMs.day : lengthMs;
}
