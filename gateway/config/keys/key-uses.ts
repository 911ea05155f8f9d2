import type { RawKey } from '../../keys/key-schema.ts';
import { ownLimits } from '../../keys/limits/limit-fields.ts';
import { termsOverTime } from '../../keys/plans/compile-key.ts';
import { isStatedCustom } from '../../keys/plans/plans.ts';
import { checkLimits } from '../check/check-limits.ts';

/**
 * How often keys refer to plans and operations. After an edit of a key, a plan or the API document, the loader checks these counts for
 * conflicts, and does not read every key.
 */
export interface KeyUses {
  /** Keys with and without their own limits, by plan. */
  readonly plans: ReadonlyMap<string, { readonly limited: number; readonly unlimited: number }>;
  /** How often the `operations` lists of keys and of their groups name an operation. */
  readonly operations: ReadonlyMap<string, number>;
  /** Keys with limits that have no effect. */
  readonly warned: number;
}

/** @param before the counts at the start */
export function createKeyUses(before?: KeyUses): {
  count(key: RawKey, change: 1 | -1): void;
  uses(): KeyUses;
} {
  const plans = new Map(before?.plans);
  const operations = new Map(before?.operations);
  let warned = before?.warned ?? 0;
  return {
    count(key, change) {
      for (const { plan, limits } of termsOverTime(key)) {
        const { limited, unlimited } = plans.get(plan) ?? { limited: 0, unlimited: 0 };
        plans.set(
          plan,
          limits ? { limited: limited + change, unlimited } : { limited, unlimited: unlimited + change },
        );
      }
      const ofGroups = Object.values(key.groups ?? {}).flatMap((group) => group.operations ?? []);
      for (const id of [...(key.operations ?? []), ...ofGroups])
        operations.set(id, (operations.get(id) ?? 0) + change);
      if (checkLimits({ path: [], limits: ownLimits(key) }).length > 0) warned += change;
    },
    uses: () => ({ plans, operations, warned }),
  };
}

/** Whether the plan of every key exists, and exactly the keys on custom plans have their own limits. */
export function fitPlans({ plans }: KeyUses, defined: Readonly<Record<string, unknown>>): boolean {
  return [...plans].every(([plan, { limited, unlimited }]) => {
    if (limited === 0 && unlimited === 0) return true;
    if (!Object.hasOwn(defined, plan)) return false;
    return isStatedCustom(defined[plan]) ? unlimited === 0 : limited === 0;
  });
}

export function fitOperations({ operations }: KeyUses, known: ReadonlySet<string>): boolean {
  return [...operations].every(([id, keys]) => keys === 0 || known.has(id));
}
