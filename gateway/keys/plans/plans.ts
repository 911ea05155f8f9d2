import { planMembers } from '../../capabilities/lists/configuration.ts';
import type { Limits, Plan, PlanChange, PlanStates, Plans, Settings } from '../../shared/model.ts';
import { toLimits } from '../limits/limit-fields.ts';
import type { StatedPlan } from './plan-schema.ts';

/**
 * The plans with the limits that apply at `nowMs`, epoch ms on the store's clock. `planStates` may give a plan other limits. Code that
 * applies a plan gets the limits from here.
 *
 * A key table stores the result for one time (`plansInForce`). When the limits of a plan change, `server/plan-changes.ts` makes a new key
 * table.
 */
export function plansAt({ plans, planStates }: Pick<Settings, 'plans' | 'planStates'>, nowMs: number): Plans {
  if (lastChangeMs(plans, nowMs) === undefined && planStates === undefined) return plans;
  return new Map([...plans].map(([name, plan]) => [name, planAt(plan, nowMs, planStates)]));
}

function planAt(plan: Plan, nowMs: number, states: PlanStates = {}): Plan {
  const byDate: Plan = { ...plan, limits: limitsAt(plan, nowMs) };
  return planMembers.reduce((inForce, member) => member.inForce?.(inForce, states) ?? inForce, byDate);
}

/** Without the decisions of processes. The plan must come from `compilePlan`. */
export function limitsAt({ limits, changes }: Plan, nowMs: number): Limits {
  return changes?.findLast(({ fromMs }) => fromMs <= nowMs)?.limits ?? limits;
}

export function changesAfter({ changes = [] }: Pick<Plan, 'changes'>, nowMs: number): readonly PlanChange[] {
  return changes.filter(({ fromMs }) => fromMs > nowMs);
}

/** The last change up to `nowMs`. */
export function lastChangeMs(plans: Plans, nowMs: number): number | undefined {
  return latestOf(instantsOf(plans).filter((fromMs) => fromMs <= nowMs));
}

/** The first change after `nowMs`. */
export function nextChangeMs(plans: Plans, nowMs: number): number | undefined {
  const later = instantsOf(plans).filter((fromMs) => fromMs > nowMs);
  return later.length === 0 ? undefined : Math.min(...later);
}

function instantsOf(plans: Plans): readonly number[] {
  return [...plans.values()].flatMap(({ changes = [] }) => changes.map(({ fromMs }) => fromMs));
}

function latestOf(instants: readonly number[]): number | undefined {
  return instants.length === 0 ? undefined : Math.max(...instants);
}

export function compilePlans(stated: Readonly<Record<string, StatedPlan>>): Plans {
  return new Map(Object.entries(stated).map(([name, plan]) => [name, compilePlan(name, plan)]));
}

function compilePlan(name: string, stated: StatedPlan): Plan {
  return {
    name,
    isCustom: stated.custom,
    limits: toLimits(stated),
    concurrent: stated.concurrent,
    operations: stated.operations,
    changes: stated.changes?.map(({ from, ...limits }) => ({ fromMs: from, limits: toLimits(limits) })),
    trial: stated.trial && toLimits(stated.trial),
    ...Object.assign({}, ...planMembers.map((member) => member.compile(stated))),
  };
}

/** Between a key and its plan. */
export type PlanFault = 'no_plan' | 'limits_missing' | 'limits_of_plan';

/**
 * The plan of a key exists, and the key states limits if and only if the plan is custom. @param isCustom undefined if the plan does not
 * exist
 */
export function planFault(limits: unknown, isCustom: boolean | undefined): PlanFault | undefined {
  if (isCustom === undefined) return 'no_plan';
  if (isCustom) return limits === undefined ? 'limits_missing' : undefined;
  return limits === undefined ? undefined : 'limits_of_plan';
}

/** For a plan that the schema may not have validated yet. */
export function isStatedCustom(stated: unknown): boolean {
  return (
    stated === 'custom' ||
    (typeof stated === 'object' && stated !== null && 'custom' in stated && stated.custom === true)
  );
}
