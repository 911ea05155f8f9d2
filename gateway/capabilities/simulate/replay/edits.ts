import { groupNames, limitsOfGroup, ofAllOperations } from '../../../shared/limits.ts';
import {
  type BanPolicy,
  type Key,
  type Limits,
  type Plan,
  type PlanWindow,
  planWindows,
} from '../../../shared/model.ts';
import { closestName, didYouMean, listNames } from '../../../shared/schema/closest-name.ts';

/**
 * An edit of limits. A number is the new maximum of a window, null removes the limit or the group, and absent windows and
 * groups stay unchanged.
 */
export type LimitEdit = WindowEdits & {
  readonly groups?: Readonly<Record<string, GroupEdit | null>> | undefined;
};

type WindowEdits = { readonly [Window in PlanWindow]?: number | null | undefined };

/** An edit of a group. Absent operations stay unchanged. */
type GroupEdit = WindowEdits & { readonly operations?: readonly string[] | undefined };

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
    const problem = groupProblem(plan.limits, edit, `The plan ${JSON.stringify(name)}`);
    if (problem !== undefined) return problem;
    if (plan.isCustom) return `On the plan ${JSON.stringify(name)} each key has its own limits: edit keys.`;
    if (ofAllOperations(edited(plan.limits, edit)).length === 0)
      return `The plan ${JSON.stringify(name)} would have no limit left.`;
  }
  for (const [id, edit] of keys) {
    const key = keyOf(id);
    if (key === undefined) return `There is no key ${JSON.stringify(id)}.`;
    // The edit of a key follows the edit of its plan.
    const limits = limitsThen(key, { plans, keys: new Map() });
    const problem = groupProblem(limits, edit, `The key ${JSON.stringify(id)}`);
    if (problem !== undefined) return problem;
    if (ofAllOperations(edited(limits, edit)).length === 0)
      return `The key ${JSON.stringify(id)} would have no limit left.`;
  }
  return undefined;
}

export function isEdited({ plans, keys, bans }: Edits, { id, plan }: Key): boolean {
  return bans !== undefined || plans.has(plan) || keys.has(id);
}

/** Returns the limits of a key after the edits. */
export function limitsThen(
  { limits, id, plan, ownGroups }: Key,
  { plans, keys }: Pick<Edits, 'plans' | 'keys'>,
): Limits {
  const ofPlan = plans.get(plan);
  return edited(edited(limits, ofPlan && withoutGroups(ofPlan, ownGroups)), keys.get(id));
}

/** Leaves out the groups that a key states itself, which an edit of its plan does not change. */
export function withoutGroups({ groups = {}, ...edit }: LimitEdit, names: readonly string[] = []): LimitEdit {
  return {
    ...edit,
    groups: Object.fromEntries(Object.entries(groups).filter(([name]) => !names.includes(name))),
  };
}

/** Returns the limits after an edit, the shortest window first, and then the limits of each group. */
export function edited(limits: Limits, edit: LimitEdit | undefined): Limits {
  if (edit === undefined) return limits;
  const { groups = {} } = edit;
  const names = [...new Set([...groupNames(limits), ...Object.keys(groups)])];
  return [
    ...editedWindows(ofAllOperations(limits), edit),
    ...names.flatMap((name): Limits => {
      const ofGroup = limitsOfGroup(limits, name);
      const change = groups[name];
      if (change === null) return [];
      const operations = change?.operations ?? ofGroup[0]?.operations;
      return editedWindows(ofGroup, change ?? {}).map((limit) => ({ ...limit, group: name, operations }));
    }),
  ];
}

function editedWindows(limits: Limits, edit: WindowEdits): Limits {
  return planWindows.flatMap((window) => {
    const to = edit[window];
    const max = to === undefined ? limits.find((limit) => limit.window === window)?.max : to;
    return max === undefined || max === null ? [] : [{ window, max }];
  });
}

/** Returns a sentence about a group of an edit that the limits do not have, and for which the edit states no operations. */
function groupProblem(limits: Limits, { groups = {} }: LimitEdit, owner: string): string | undefined {
  const known = groupNames(limits);
  const missing = Object.entries(groups).find(
    ([name, change]) => change !== null && change.operations === undefined && !known.includes(name),
  )?.[0];
  if (missing === undefined) return undefined;
  const advice = closestName(missing, known) === undefined ? '.' : didYouMean(missing, known);
  return `${owner} has no group ${JSON.stringify(missing)}${advice} A new group needs \`operations\`.`;
}

/** Returns the edit from the earlier to the later limits; undefined if both are equal. */
export function editBetween(before: Limits, after: Limits): LimitEdit | undefined {
  const [namesBefore, namesAfter] = [groupNames(before), groupNames(after)];
  const groups = [...new Set([...namesBefore, ...namesAfter])].flatMap(
    (name): [string, GroupEdit | null][] => {
      if (!namesAfter.includes(name)) return [[name, null]];
      const [from, to] = [before, after].map((limits) => limitsOfGroup(limits, name));
      const operations = to?.[0]?.operations;
      const areOther = String(from?.[0]?.operations) !== String(operations);
      const edit = { ...windowsBetween(from ?? [], to ?? []), ...(areOther && { operations }) };
      return Object.keys(edit).length === 0 ? [] : [[name, edit]];
    },
  );
  const edit = {
    ...windowsBetween(ofAllOperations(before), ofAllOperations(after)),
    ...(groups.length > 0 && { groups: Object.fromEntries(groups) }),
  };
  return Object.keys(edit).length === 0 ? undefined : edit;
}

function windowsBetween(before: Limits, after: Limits): WindowEdits {
  const edit: { [Window in PlanWindow]?: number | null } = {};
  for (const window of planWindows) {
    const [from, to] = [before, after].map((limits) => limits.find((limit) => limit.window === window)?.max);
    if (from !== to) edit[window] = to ?? null;
  }
  return edit;
}
