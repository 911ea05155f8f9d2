import { planMembers } from '../../capabilities/lists/configuration.ts';
import type { Key, Limits, Plan, PlanChange, PlanStates, Plans, Settings } from '../../shared/model.ts';
import { toLimits } from '../limits/limit-fields.ts';
import type { InForce } from './compile-key.ts';
import type { StatedPlan } from './plan-schema.ts';

/**
 * The plans with the limits that apply at `nowMs`, epoch ms on the store's clock. `planStates` may give a plan other limits. Code that
 * applies a plan gets the limits from here.
 *
 * A key table stores the result for one time (`plansInForce`). When the limits of a plan change, `server/plan-changes.ts` makes a new key
 * table.
 */
export function plansAt({ plans, planStates }: Pick<Settings, 'plans' | 'planStates'>, nowMs: number): Plans {
  const hasChanged = planChangeTimes(plans).some((fromMs) => fromMs <= nowMs);
  if (!hasChanged && planStates === undefined) return plans;
  return new Map([...plans].map(([name, plan]) => [name, planAt(plan, nowMs, planStates)]));
}

function planAt(plan: Plan, nowMs: number, states: PlanStates = {}): Plan {
  const byDate: Plan = { ...plan, limits: limitsAt(plan, nowMs) };
  return planMembers.reduce((inForce, member) => member.inForce?.(inForce, states) ?? inForce, byDate);
}

/** For a key table. */
export function inForceAt(configured: Pick<Settings, 'plans' | 'planStates'>, nowMs: number): InForce {
  return { plans: plansAt(configured, nowMs), atMs: nowMs };
}

/** Without the decisions of processes. The plan must come from `compilePlan`. */
export function limitsAt({ limits, changes }: Plan, nowMs: number): Limits {
  return changes?.findLast(({ fromMs }) => fromMs <= nowMs)?.limits ?? limits;
}

export function changesAfter({ changes = [] }: Pick<Plan, 'changes'>, nowMs: number): readonly PlanChange[] {
  return changes.filter(({ fromMs }) => fromMs > nowMs);
}

/** The dates of all scheduled changes, epoch ms, in any order. */
export function planChangeTimes(plans: Plans): readonly number[] {
  return [...plans.values()].flatMap(({ changes = [] }) => changes.map(({ fromMs }) => fromMs));
}

/** The limits of a key from one time on, and its plan. */
export interface LaterTerms {
  readonly fromMs: number;
  readonly plan: string;
  readonly limits: Limits;
}

/** What will change after `nowMs`, by changes of the key and of its plans, the earliest first. Without grants. */
export function laterTerms(
  key: Pick<Key, 'plan' | 'limits' | 'changes'>,
  plans: Plans,
  nowMs: number,
): readonly LaterTerms[] {
  const ofKey = key.changes?.filter(({ fromMs }) => fromMs > nowMs) ?? [];
  return [{ fromMs: nowMs, plan: key.plan, limits: undefined }, ...ofKey].flatMap((change, index) => {
    const plan = plans.get(change.plan);
    if (plan === undefined) return [];
    const untilMs = ofKey[index]?.fromMs ?? Number.POSITIVE_INFINITY;
    const inTime = changesAfter(plan, change.fromMs).filter(({ fromMs }) => fromMs < untilMs);
    const first = { ...change, limits: change.limits ?? limitsAt(plan, change.fromMs) };
    return [...(index === 0 ? [] : [first]), ...inTime.map((one) => ({ ...one, plan: change.plan }))];
  });
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
