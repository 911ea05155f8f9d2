import type { RawKey } from '../../keys/key-schema.ts';
import { ownLimits } from '../../keys/limits/limit-fields.ts';
import { isStatedCustom } from '../../keys/plans.ts';
import { checkLimits } from '../check/check-limits.ts';

/**
 * Counts of the plans and operations that keys refer to. After an edit of a key, a plan or the API document, the loader checks
 * the counts for conflicts, and does not read every key.
 */
export interface KeyUses {
  /** For each plan: the number of keys with their own limits, and the number of keys without their own limits. */
  readonly plans: ReadonlyMap<string, { readonly limited: number; readonly unlimited: number }>;
  /** For each operation: how often the `operations` lists of keys and of their groups name it. */
  readonly operations: ReadonlyMap<string, number>;
  /** The number of keys with limits that have no effect. */
  readonly warned: number;
}

/** Makes a counter that starts with the counts in `before`. The counter's method `count` adds or subtracts one key. */
export function createKeyUses(before?: KeyUses): {
  count(key: RawKey, change: 1 | -1): void;
  uses(): KeyUses;
} {
  const plans = new Map(before?.plans);
  const operations = new Map(before?.operations);
  let warned = before?.warned ?? 0;
  return {
    count(key, change) {
      const { limited, unlimited } = plans.get(key.plan) ?? { limited: 0, unlimited: 0 };
      plans.set(
        key.plan,
        key.limits ? { limited: limited + change, unlimited } : { limited, unlimited: unlimited + change },
      );
      const ofGroups = Object.values(key.groups ?? {}).flatMap((group) => group.operations ?? []);
      for (const id of [...(key.operations ?? []), ...ofGroups])
        operations.set(id, (operations.get(id) ?? 0) + change);
      if (checkLimits({ path: [], limits: ownLimits(key) }).length > 0) warned += change;
    },
    uses: () => ({ plans, operations, warned }),
  };
}

/** Whether the plan of every key exists, every key on a custom plan has its own limits, and no other key has its own limits. */
export function fitPlans({ plans }: KeyUses, defined: Readonly<Record<string, unknown>>): boolean {
  return [...plans].every(([plan, { limited, unlimited }]) => {
    if (limited === 0 && unlimited === 0) return true;
    if (!Object.hasOwn(defined, plan)) return false;
    return isStatedCustom(defined[plan]) ? unlimited === 0 : limited === 0;
  });
}

/** Whether the API document has all operations that the keys name. */
export function fitOperations({ operations }: KeyUses, known: ReadonlySet<string>): boolean {
  return [...operations].every(([id, keys]) => keys === 0 || known.has(id));
}
