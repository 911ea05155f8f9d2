import type { Key, Plans } from '../../shared/model.ts';
import type { StatedKey } from '../key-schema.ts';
import { toLimits, withGroups } from '../limits/limit-fields.ts';

/** For the request path. @returns undefined when the plan does not exist, or when it is custom and the key states no limits */
export function compileKey(
  { id, plan, name, limits: ownLimits, groups, concurrent, operations: own, addresses, disabled }: StatedKey,
  plans: Plans,
): Key | undefined {
  const onPlan = plans.get(plan);
  const limits = onPlan?.isCustom ? ownLimits && toLimits(ownLimits) : onPlan?.limits;
  if (limits === undefined) return undefined;
  return {
    id,
    plan,
    name,
    limits: withGroups(limits, groups),
    trial: onPlan?.trial && withGroups(onPlan.trial, groups),
    ownGroups: groups && Object.keys(groups),
    concurrent: concurrent ?? onPlan?.concurrent,
    operations: scopeOf(onPlan?.operations, own),
    addresses,
    disabled,
  };
}

/** A key can restrict the operations of its plan, but cannot extend them. */
function scopeOf(
  ofPlan: readonly string[] | undefined,
  own: readonly string[] | undefined,
): readonly string[] | undefined {
  if (ofPlan === undefined || own === undefined) return ofPlan ?? own;
  return own.filter((id) => ofPlan.includes(id));
}
