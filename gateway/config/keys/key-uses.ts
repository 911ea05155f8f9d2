import type { RawKey } from '../../keys/key-schema.ts';
import { toLimits } from '../../keys/limit-fields.ts';
import { isStatedCustom } from '../../keys/plans.ts';
import { checkLimits } from '../check-limits.ts';

/**
 * What keys refer to, counted: an edit of one key, of a plan or of the API document is checked against this, without a look at
 * every key.
 */
export interface KeyUses {
  /** By plan: its keys with limits of their own, and those without. */
  readonly plans: ReadonlyMap<string, { readonly limited: number; readonly unlimited: number }>;
  /** How many keys state each operation. */
  readonly operations: ReadonlyMap<string, number>;
  /** Keys with limits that cannot do what they say. */
  readonly warned: number;
}

/** Counts keys, beginning with what `before` says, and takes back others. */
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
      for (const id of key.operations ?? []) operations.set(id, (operations.get(id) ?? 0) + change);
      if (key.limits && checkLimits({ path: [], limits: toLimits(key.limits) }).length > 0) warned += change;
    },
    uses: () => ({ plans, operations, warned }),
  };
}

/** Whether every key is on a plan that there is, with limits of its own exactly where that is custom. */
export function fitPlans({ plans }: KeyUses, defined: Readonly<Record<string, unknown>>): boolean {
  return [...plans].every(([plan, { limited, unlimited }]) => {
    if (limited === 0 && unlimited === 0) return true;
    if (!Object.hasOwn(defined, plan)) return false;
    return isStatedCustom(defined[plan]) ? unlimited === 0 : limited === 0;
  });
}

/** Whether all operations that keys state are among these. */
export function fitOperations({ operations }: KeyUses, known: ReadonlySet<string>): boolean {
  return [...operations].every(([id, keys]) => keys === 0 || known.has(id));
}
