import { isDeepStrictEqual } from 'node:util';
import type { ChangedMembers, KeyChange } from '../../../fleet/changes.ts';
import type { StatedKey } from '../../../keys/key-schema.ts';
import { anyLimitField, toLimitFields } from '../../../keys/limits/limit-fields.ts';
import { limits as limitsSchema } from '../../../keys/limits/limits-schema.ts';
import { compileKey, type InForce, termsOverTime } from '../../../keys/plans/compile-key.ts';
import { planFault } from '../../../keys/plans/plans.ts';
import { withoutOperations } from '../../../shared/limits.ts';
import type { Settings } from '../../../shared/model.ts';
import { closestName, listNames } from '../../../shared/schema/closest-name.ts';

/**
 * Checks a key by the same rules as a key of the configuration. The plan must exist, the operations must be in the API
 * document, and the key must have its own limits if and only if its plan is custom. @returns a sentence that names the
 * member
 */
export function termsFault(
  {
    groups = {},
    operations = [],
    ...terms
  }: Pick<StatedKey, 'plan' | 'limits' | 'changes' | 'groups' | 'operations'>,
  { plans, operations: known }: Pick<Settings, 'plans' | 'operations'>,
): string | undefined {
  for (const { path, plan, limits } of termsOverTime(terms)) {
    const member = (name: string) => `The member \`${memberPath([...path, name])}\``;
    switch (planFault(limits, plans.get(plan)?.isCustom)) {
      case 'no_plan':
        return `${member('plan')} names no plan; ${advice(plan, [...plans.keys()], 'plans')}`;
      case 'limits_missing':
        return `${member('limits')} is missing: the plan ${plan} is custom; write ${anyLimitField}.`;
      case 'limits_of_plan':
        return `${member('limits')} is only for custom plans: omit it (\`null\` removes it), or choose a custom plan.`;
      case undefined:
    }
  }
  const ids = new Set(known.map(({ id }) => id));
  const lists = Object.entries(groups).map(([name, group]) => {
    return [`groups.${name}.operations`, group.operations] as const;
  });
  for (const [member, list] of [['operations', operations] as const, ...lists]) {
    const unknown = list.findIndex((id) => !ids.has(id));
    if (unknown === -1) continue;
    const what = `The member \`${member}[${unknown}]\` names no operation of the API document`;
    return `${what}; ${advice(list[unknown] ?? '', [...ids], 'operations')}`;
  }
  return undefined;
}

/**
 * The limits that apply to a key before and after an edit of its plan or limits, for the record of changes. Groups have no operations there.
 * @returns undefined for another edit, and if a plan does not exist
 */
export function appliedLimits(
  before: StatedKey,
  after: StatedKey,
  inForce: InForce,
): KeyChange['appliedLimits'] {
  if (isDeepStrictEqual([before.plan, before.limits], [after.plan, after.limits])) return undefined;
  const [from, to] = [before, after].map((stated) => compileKey(stated, inForce)?.limits);
  return (
    from &&
    to && { before: toLimitFields(withoutOperations(from)), after: toLimitFields(withoutOperations(to)) }
  );
}

/**
 * As `appliedLimits`, for an edit of the keys file that a command reports. The gateway may have loaded the edit already.
 *
 * @param stated the key in the loaded configuration
 */
export function reportedLimits(
  stated: StatedKey | undefined,
  { before = {}, after = {} }: Pick<KeyChange, 'before' | 'after'>,
  inForce: InForce,
): KeyChange['appliedLimits'] {
  if (stated === undefined) return undefined;
  const { changes: _, ...rest } = stated;
  const withTerms = ({ plan = rest.plan, limits }: ChangedMembers): StatedKey => ({
    ...rest,
    plan: String(plan),
    limits: 'limits' in before || 'limits' in after ? limitsSchema.safeParse(limits).data : rest.limits,
  });
  return appliedLimits(withTerms(before), withTerms(after), inForce);
}

function memberPath(path: readonly (string | number)[]): string {
  return path
    .map((step) => (typeof step === 'number' ? `[${step}]` : `.${step}`))
    .join('')
    .slice(1);
}

function advice(written: string, names: readonly string[], what: string): string {
  const closest = closestName(written, names);
  return closest === undefined ? `${what} are: ${listNames(names)}.` : `did you mean \`${closest}\`?`;
}
