import type { Plan, Plans, Settings } from '../shared/model.ts';
import { toLimits } from './limit-fields.ts';
import type { StatedPlan } from './plan-schema.ts';

/**
 * The plans that hold at an instant: today always all of `settings.plans`. Whatever applies a plan asks here. What is made
 * once for a configuration (its keys, the API reference) is made of the plans at the instant of the load.
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

/** Whether a plan is custom, of which it is not known yet whether it has the shape of one. */
export function isStatedCustom(stated: unknown): boolean {
  return (
    stated === 'custom' ||
    (typeof stated === 'object' && stated !== null && 'custom' in stated && stated.custom === true)
  );
}
