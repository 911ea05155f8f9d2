import {
  type BanPolicy,
  type Key,
  type Limits,
  type Plan,
  type PlanWindow,
  planWindows,
} from '../../shared/model.ts';
import { didYouMean, listNames } from '../../shared/schema/closest-name.ts';
import type { Terms } from './replayed-key.ts';

/**
 * An edit of limits. A number is the new maximum of a window, null removes the limit, and absent windows stay
 * unchanged.
 */
export type LimitEdit = { readonly [Window in PlanWindow]?: number | null | undefined };

/** Edits of limits. An edit of a plan applies to all keys on the plan. An edit of a key applies to this key alone. */
export interface Edits {
  readonly plans: ReadonlyMap<string, LimitEdit>;
  readonly keys: ReadonlyMap<string, LimitEdit>;
  readonly bans?: BanPolicy | undefined;
}

/** The present plans and bans, to which the edits apply. */
export interface Present {
  readonly plans: ReadonlyMap<string, Pick<Plan, 'isCustom' | 'limits'>>;
  readonly bans: BanPolicy;
}

/** Returns the reason why edits cannot be replayed: a plan or key does not exist, or would have no limit left. */
export function problemOf(
  { plans, keys }: Edits,
  present: Present,
  keyOf: (id: string) => Key | undefined,
): string | undefined {
  for (const [name, edit] of plans) {
    const plan = present.plans.get(name);
    if (plan === undefined) {
      const names = [...present.plans.keys()];
      const advice = didYouMean(name, names) || `; plans are: ${listNames(names)}.`;
      return `There is no plan ${JSON.stringify(name)}${advice}`;
    }
    if (plan.isCustom) return `On the plan ${JSON.stringify(name)} each key has its own limits: edit keys.`;
    if (edited(plan.limits, edit).length === 0)
      return `The plan ${JSON.stringify(name)} would have no limit left.`;
  }
  for (const [id, edit] of keys) {
    const key = keyOf(id);
    if (key === undefined) return `There is no key ${JSON.stringify(id)}.`;
    if (edited(key.limits, edit).length === 0)
      return `The key ${JSON.stringify(id)} would have no limit left.`;
  }
  return undefined;
}

/** Whether an edit applies to this key. */
export function isEdited({ plans, keys, bans }: Edits, { id, plan }: Key): boolean {
  return bans !== undefined || plans.has(plan) || keys.has(id);
}

/** Returns the limits and bans of a key after the edits. */
export function termsThen({ limits, id, plan }: Key, edits: Edits, present: Present): Terms {
  return {
    limits: edited(edited(limits, edits.plans.get(plan)), edits.keys.get(id)),
    bans: edits.bans ?? present.bans,
  };
}

/** Returns the limits after an edit, the shortest window first. */
export function edited(limits: Limits, edit: LimitEdit | undefined): Limits {
  if (edit === undefined) return limits;
  return planWindows.flatMap((window) => {
    const to = edit[window];
    const max = to === undefined ? limits.find((limit) => limit.window === window)?.max : to;
    return max === undefined || max === null ? [] : [{ window, max }];
  });
}

/** Returns the edit from the earlier to the later limits; undefined if both are equal. */
export function editBetween(before: Limits, after: Limits): LimitEdit | undefined {
  const edit: { [Window in PlanWindow]?: number | null } = {};
  for (const window of planWindows) {
    const [from, to] = [before, after].map((limits) => limits.find((limit) => limit.window === window)?.max);
    if (from !== to) edit[window] = to ?? null;
  }
  return Object.keys(edit).length === 0 ? undefined : edit;
}
