import { isDeepStrictEqual } from 'node:util';
import type * as z from 'zod';
import { addedChanges } from '../../../admin/settings/diff-settings.ts';
import { limitsInView } from '../../../admin/settings/settings-view.ts';
import type { planShown } from '../../../admin/wires/plans/plans.ts';
import { type LimitsByField, toLimitFields, toLimits } from '../../../keys/limits/limit-fields.ts';
import { limitChangeTexts, limitsText } from '../../../keys/limits/limit-texts.ts';
import { areSameLimits, maxOf, smallerLimits } from '../../../shared/limits.ts';
import type { Limits } from '../../../shared/model.ts';
import { dateText } from '../../../shared/schema/dates-and-durations.ts';
import { percent } from '../../../shared/words/figures.js';
import { policyName } from '../../../shared/words/limit-names.js';
import { proposeGuard } from './propose-guard.ts';

type ShownPlan = Pick<
  z.output<typeof planShown>,
  'name' | 'isCustom' | 'windows' | 'changes' | 'guard' | 'reverted'
>;

/** A plan that an edit makes smaller, while no guard keeps the edit from refusing too many requests. */
export interface UnguardedPlan {
  readonly plan: string;
  /** The time of the scheduled change that makes the plan smaller. The field is absent if the edit itself makes the plan smaller. */
  readonly from?: string;
  /** The names of the limits that become smaller or are new, such as `minute` or `reports-minute`. */
  readonly windows: readonly string[];
  /** The present limits of the plan. */
  readonly before: LimitsByField;
  /**
   * `no_guard`: the plan has no guard. `other_limits`: its guard returns it to other limits than the present limits. `ended`: its guard ends
   * before it becomes smaller. `share_reached`: the guard would have returned the plan to `before` under the recorded requests.
   */
  readonly why: 'no_guard' | 'other_limits' | 'ended' | 'share_reached';
  /** A sentence for the operator, without its full stop. */
  readonly warning: string;
  /** A proposed `guard` for the edit, as a line of the configuration. The field is absent if the edit was not simulated. */
  readonly guard?: string;
}

/** Returns the simulated share that a guard must allow (`guardShare`); undefined if the edit was not simulated. */
export type GuardShareOf = (plan: string, from: string | undefined) => number | undefined;

/**
 * Finds the plans that an edit makes smaller without a suitable guard. The limits of an edited plan count from the first time at which a
 * limit is smaller than now. This time may be a scheduled change. A custom plan has no limits of its own. A new plan and a removed plan
 * become no smaller.
 *
 * @param before the plans with the limits that apply now
 * @param after the plans after the edit
 */
export function unguardedPlans(
  before: readonly ShownPlan[],
  after: readonly ShownPlan[],
  nowMs: number,
  shareOf: GuardShareOf = () => undefined,
): readonly UnguardedPlan[] {
  const plansNow = new Map(before.map((plan) => [plan.name, plan]));
  return after.flatMap((plan) => {
    const now = plansNow.get(plan.name);
    const edit =
      now === undefined || now.isCustom || plan.isCustom ? undefined : firstSmaller(now, plan, nowMs);
    if (edit === undefined) return [];
    const { from, smaller } = edit;
    const windows = smaller.map(({ window, group }) => policyName(window, group));
    const fromMs = from === undefined ? nowMs : Date.parse(from);
    const share = shareOf(plan.name, from);
    const fault = faultOf(plan, edit, { fromMs, share });
    if (fault === undefined) return [];
    const found = { plan: plan.name, windows, before: toLimitFields(edit.present), ...fault };
    const guard = share === undefined ? undefined : proposeGuard(edit.present, share, fromMs);
    return [{ ...found, ...(from !== undefined && { from }), ...(guard !== undefined && { guard }) }];
  });
}

interface SmallerEdit {
  readonly from: string | undefined;
  readonly present: Limits;
  readonly limits: Limits;
  readonly smaller: Limits;
}

/** Finds the first limits of the edited plan that are smaller than the present limits. A known scheduled change is not part of the edit. */
function firstSmaller(now: ShownPlan, plan: ShownPlan, nowMs: number): SmallerEdit | undefined {
  const present = limitsInView(now.windows);
  if (isStillReverted(now, plan)) return undefined;
  const later = addedChanges(now, plan, nowMs).map(({ from, limits }) => ({
    from,
    limits: toLimits(limits),
  }));
  return [{ from: undefined, limits: limitsInView(plan.windows) }, ...later]
    .map((one) => ({ ...one, present, smaller: smallerLimits(present, one.limits) }))
    .find(({ smaller }) => smaller.length > 0);
}

/** Whether a reverted plan keeps its limits and its guard. The plan then stays reverted. */
function isStillReverted({ reverted, guard }: ShownPlan, plan: ShownPlan): boolean {
  if (reverted === undefined) return false;
  if (guard === undefined || plan.guard === undefined) return false;
  const [{ before, ...rest }, { before: beforeOfEdit, ...restOfEdit }] = [guard, plan.guard];
  return (
    areSameLimits(toLimits(reverted.edit), limitsInView(plan.windows)) &&
    areSameLimits(toLimits(before), toLimits(beforeOfEdit)) &&
    isDeepStrictEqual(rest, restOfEdit)
  );
}

/** Returns the reason why the guard of the plan is not suitable for the edit; undefined if it is suitable. */
function faultOf(
  { name, guard }: ShownPlan,
  { from, present, smaller }: SmallerEdit,
  { fromMs, share }: { readonly fromMs: number; readonly share: number | undefined },
): Pick<UnguardedPlan, 'why' | 'warning'> | undefined {
  const earlier = present.filter((limit) => maxOf(smaller, limit) !== undefined);
  const changes = limitChangeTexts(earlier, smaller);
  const when = from === undefined ? '' : ` on ${dateText(from)}`;
  const becomes = `the plan ${name} becomes smaller${when} (${changes.join(', ')})`;
  if (guard === undefined) return { why: 'no_guard', warning: `${becomes} without a guard` };
  const { before, refusedAtMost, untilAt } = guard;
  if (Date.parse(untilAt) <= fromMs)
    return { why: 'ended', warning: `${becomes}, but its guard ends earlier, on ${dateText(untilAt)}` };
  if (!areSameLimits(toLimits(before), present)) {
    const other = `its guard would return it to other limits than its present limits: ${limitsText(toLimits(before))}`;
    return { why: 'other_limits', warning: `${becomes}, but ${other}` };
  }
  if (share === undefined || share < Number.parseFloat(refusedAtMost) / 100) return undefined;
  const recorded = `the new limits would have refused ${percent(share)} of its requests in the worst ten minutes on record, and its guard allows less than ${refusedAtMost}`;
  return {
    why: 'share_reached',
    warning: `${becomes}, but its guard may soon return it to its present limits: ${recorded}`,
  };
}
