import type { Key, Plans } from '../shared/model.ts';
import type { StatedKey } from './key-schema.ts';
import { toLimits } from './limit-fields.ts';

/**
 * The key as the request path uses it, on its plan. Undefined when there is no such plan, or when the plan is custom and the key
 * states no limits.
 */
export function compileKey(
  { id, plan, name, limits: ownLimits, operations: own, disabled }: StatedKey,
  plans: Plans,
): Key | undefined {
  const onPlan = plans.get(plan);
  const limits = onPlan?.isCustom ? ownLimits && toLimits(ownLimits) : onPlan?.limits;
  if (limits === undefined) return undefined;
  const operations = scopeOf(onPlan?.operations, own);
  return {
    id,
    plan,
    ...(name !== undefined && { name }),
    limits,
    ...(operations && { operations }),
    disabled,
  };
}

/** A key narrows what its plan lets it call, and cannot widen it. */
function scopeOf(
  ofPlan: readonly string[] | undefined,
  own: readonly string[] | undefined,
): readonly string[] | undefined {
  if (ofPlan === undefined || own === undefined) return ofPlan ?? own;
  return own.filter((id) => ofPlan.includes(id));
}
