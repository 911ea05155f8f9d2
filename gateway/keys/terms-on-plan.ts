import type { Limits, Plan } from '../shared/model.ts';

/** What a key states itself: limits where its plan is custom, and which of its plan's operations it may call. */
export interface OwnTerms {
  readonly limits?: Limits | undefined;
  readonly operations?: readonly string[] | undefined;
}

/** What holds for a key on this plan; undefined when there is no such plan, or it is custom and the key states no limits. */
export function termsOnPlan(
  plan: Plan | undefined,
  own: OwnTerms,
): { readonly limits: Limits; readonly operations?: readonly string[] } | undefined {
  const limits = plan?.isCustom ? own.limits : plan?.limits;
  if (limits === undefined) return undefined;
  const operations = scopeOf(plan?.operations, own.operations);
  return { limits, ...(operations && { operations }) };
}

/** A key narrows what its plan lets it call, and cannot widen it. */
function scopeOf(
  ofPlan: readonly string[] | undefined,
  own: readonly string[] | undefined,
): readonly string[] | undefined {
  if (ofPlan === undefined || own === undefined) return ofPlan ?? own;
  return own.filter((id) => ofPlan.includes(id));
}
