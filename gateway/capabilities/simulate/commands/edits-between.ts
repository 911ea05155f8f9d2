import { isDeepStrictEqual } from 'node:util';
import { addedChanges } from '../../../admin/settings/diff-settings.ts';
import { limitsInView } from '../../../admin/settings/settings-view.ts';
import type { Shown, ShownFile } from '../../../cli/what-if/settings-shown.ts';
import { type LimitField, limitFieldOf, toLimits } from '../../../keys/limits/limit-fields.ts';
import { type BanPolicy, type Limits, planWindows } from '../../../shared/model.ts';
import { editBetween, edited, type LimitEdit, withoutGroups } from '../replay/edits.ts';

/** Limits by field, in the form of `POST /simulate`. The value null removes a limit or a group. */
export type EditByField = WindowsByField & {
  readonly groups?: Readonly<
    Record<string, (WindowsByField & { readonly operations?: readonly string[] }) | null>
  >;
};

type WindowsByField = { readonly [Field in LimitField]?: number | null };

export interface LimitEdits {
  readonly plans?: Readonly<Record<string, EditByField>>;
  readonly keys?: Readonly<Record<string, EditByField>>;
  readonly bans?: BanPolicy;
}

/**
 * Returns the differences between the limits of two configurations as edits: each edited plan, and each key whose new limits do not follow
 * from the edit of its plan. A key that is missing or disabled in one of the configurations has no limits to compare.
 */
export function editsBetween(
  { settings: before, json: jsonBefore }: Shown,
  { settings: after, json: jsonAfter, bans }: ShownFile,
): LimitEdits {
  const plansBefore = new Map(before.plans.map((plan) => [plan.name, plan]));
  const plansAfter = new Map(after.plans.map((plan) => [plan.name, plan]));
  const plans = new Map<string, LimitEdit>();
  for (const { name, isCustom, windows } of before.plans) {
    const plan = plansAfter.get(name);
    const edit =
      plan && !isCustom && !plan.isCustom
        ? editBetween(limitsInView(windows), limitsInView(plan.windows))
        : undefined;
    if (edit !== undefined) plans.set(name, edit);
  }
  const keysAfter = new Map(after.keys.map((key) => [key.id, key]));
  const keys = new Map<string, LimitEdit>();
  for (const { id, plan, windows } of before.keys) {
    const key = keysAfter.get(id);
    const limits = limitsInView(windows);
    const ofPlan = plans.get(plan);
    const own = otherGroups(limits, limitsInView(plansBefore.get(plan)?.windows ?? []));
    const edit =
      key && !key.disabled
        ? editBetween(edited(limits, ofPlan && withoutGroups(ofPlan, own)), limitsInView(key.windows))
        : undefined;
    if (edit !== undefined) keys.set(id, edit);
  }
  const isOtherLadder = !isDeepStrictEqual(jsonBefore.bans, jsonAfter.bans);
  return {
    ...(plans.size > 0 && { plans: byFields(plans) }),
    ...(keys.size > 0 && { keys: byFields(keys) }),
    ...(isOtherLadder && { bans }),
  };
}

/** Returns the groups of a key with other limits than the groups of its plan. An edit of the plan does not change these groups. */
function otherGroups(ofKey: Limits, ofPlan: Limits): readonly string[] {
  return Object.keys(editBetween(ofPlan, ofKey)?.groups ?? {});
}

/** A scheduled change of a plan, as an edit of the plan's present limits. */
export interface LaterEdit {
  readonly plan: string;
  readonly from: string;
  readonly edit: EditByField;
}

/** Returns the scheduled changes of plans that `after` has and `before` lacks, as edits of the plan's present limits in `before`. */
export function laterEdits(
  { settings: before }: Shown,
  { settings: after }: Shown,
  nowMs: number,
): LaterEdit[] {
  const plansBefore = new Map(before.plans.map((plan) => [plan.name, plan]));
  return after.plans.flatMap((planAfter) => {
    const { name } = planAfter;
    const plan = plansBefore.get(name);
    if (plan === undefined || plan.isCustom) return [];
    return addedChanges(plan, planAfter, nowMs).flatMap(({ from, limits }) => {
      const edit = editBetween(limitsInView(plan.windows), toLimits(limits));
      return edit === undefined ? [] : [{ plan: name, from, edit: toFields(edit) }];
    });
  });
}

function byFields(edits: ReadonlyMap<string, LimitEdit>): Record<string, EditByField> {
  return Object.fromEntries([...edits].map(([name, edit]) => [name, toFields(edit)]));
}

function toFields({ groups, ...edit }: LimitEdit): EditByField {
  if (groups === undefined) return windowsByField(edit);
  const ofGroups = Object.entries(groups).map(([name, change]) => {
    if (change === null) return [name, null];
    const { operations, ...windows } = change;
    return [name, { ...windowsByField(windows), ...(operations && { operations }) }];
  });
  return { ...windowsByField(edit), groups: Object.fromEntries(ofGroups) };
}

function windowsByField(edit: Omit<LimitEdit, 'groups'>): WindowsByField {
  return Object.fromEntries(planWindows.map((window) => [limitFieldOf[window], edit[window]]));
}
