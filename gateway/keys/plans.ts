import type { Plan, Plans, Settings } from '../shared/model.ts';
import { toLimits } from './limit-fields.ts';
import type { StatedPlan } from './plan-schema.ts';

/**
 * Returns the plans that are valid at an instant, currently always all of `settings.plans`. Code that applies a plan calls this
 * function. A configuration's keys and API reference use the plans at the instant of the load.
 */
export function plansAt({ plans }: Pick<Settings, 'plans'>, _nowMs: number): Plans {
  return plans;
}

export function compilePlans(stated: Readonly<Record<string, StatedPlan>>): Plans {
  return new Map(Object.entries(stated).map(([name, plan]) => [name, compilePlan(name, plan)]));
}

function compilePlan(name: string, stated: StatedPlan): Plan {
  return {
    name,
    isCustom: stated.custom,
    limits: toLimits(stated),
    operations: stated.operations,
  };
}

/** The possible conflicts between a key and its plan. */
export type PlanFault = 'no_plan' | 'limits_missing' | 'limits_of_plan';

/**
 * Checks that the plan of a key exists, and that the key states limits exactly if the plan is custom.
 *
 * @param isCustom whether the key's plan is custom; undefined if the plan does not exist
 */
export function planFault(limits: unknown, isCustom: boolean | undefined): PlanFault | undefined {
  if (isCustom === undefined) return 'no_plan';
  if (isCustom) return limits === undefined ? 'limits_missing' : undefined;
  return limits === undefined ? undefined : 'limits_of_plan';
}

/** Whether a plan is custom. The plan may not have been validated by the schema yet. */
export function isStatedCustom(stated: unknown): boolean {
  return (
    stated === 'custom' ||
    (typeof stated === 'object' && stated !== null && 'custom' in stated && stated.custom === true)
  );
}
