import { isDeepStrictEqual } from 'node:util';
import type * as z from 'zod';
import type { SettingList } from '../../capabilities/interfaces/configuration.ts';
import { planMembers, settingsParts } from '../../capabilities/lists/configuration.ts';
import { statedSettings } from '../../config/schema/settings-schema.ts';
import { type LimitsByField, limitFieldOf, toLimits } from '../../keys/limits/limit-fields.ts';
import { limitChangeText, limitsText } from '../../keys/limits/limit-texts.ts';
import { planWindows } from '../../shared/model.ts';
import { dateText } from '../../shared/schema/dates-and-durations.ts';
import { marksIn } from '../../shared/schema/marks.ts';
import { isMapping, type Mapping } from '../../shared/structures/plain-data.ts';
import type { planShown } from '../wires/plans/plans.ts';
import { windowsView } from './settings-view.ts';

/**
 * A member with different values in two configurations. A new member has no `before`, and a removed member has no
 * `after`.
 */
export interface MemberChange {
  readonly member: string;
  readonly before?: unknown;
  readonly after?: unknown;
}

export interface ListDiff {
  readonly added: readonly string[];
  readonly removed: readonly string[];
  readonly changed: readonly { readonly id: string; readonly changes: readonly MemberChange[] }[];
}

export interface SettingsDiff {
  /** The changes of lists, by the name of the setting. */
  readonly lists: Readonly<Record<keyof typeof ownLists, ListDiff> & Record<string, ListDiff>>;
  /** The changes of all other settings, by the path of the setting. */
  readonly settings: readonly MemberChange[];
}

const ownLists = {
  keys: { by: 'id', noun: 'key' },
  plans: { by: 'name', noun: 'plan' },
  operations: { by: 'id', noun: 'operation' },
  upstreams: { by: 'name', noun: 'upstream' },
} as const satisfies Readonly<Record<string, SettingList>>;

export const settingLists: typeof ownLists & Readonly<Record<string, SettingList>> = Object.assign(
  {},
  ownLists,
  ...settingsParts.map(({ lists }) => lists),
);

/** The paths of members that do not change the gateway's behaviour: digests of whole files, and paths of files. */
const notCompared: readonly (readonly string[])[] = [
  ['version'],
  ['keysFile'],
  ...marksIn(statedSettings).flatMap(({ path, mark }) => (mark.file ? [path] : [])),
];

/** Returns settings in the form of `/settings` without the members that the comparison ignores. */
export function comparable(members: Mapping): Mapping {
  return notCompared.reduce((rest, path) => without(rest, path), members);
}

/** Removes the member at a path. In a path, `*` and `[]` stand for each entry of a list. */
function without<Of>(value: Of, [step, ...rest]: readonly string[]): Of {
  if (step === '*' || step === '[]')
    return Array.isArray(value) ? (value.map((entry) => without(entry, rest)) as Of) : value;
  if (step === undefined || !isMapping(value) || value[step] === undefined) return value;
  const { [step]: member, ...others } = value;
  return (rest.length === 0 ? others : { ...others, [step]: without(member, rest) }) as Of;
}

/** Compares two configurations in the form of `/settings`. */
export function diffSettings(membersBefore: Mapping, membersAfter: Mapping): SettingsDiff {
  const [before, after] = [comparable(membersBefore), comparable(membersAfter)];
  const ofLists = Object.entries(settingLists).map(([list, { by }]) => [
    list,
    diffLists(namedIn(before, list, by), namedIn(after, list, by)),
  ]);
  const rest = (members: Mapping) =>
    Object.fromEntries(Object.entries(members).filter(([name]) => !Object.hasOwn(settingLists, name)));
  return { lists: Object.fromEntries(ofLists), settings: diffMembers(rest(before), rest(after)) };
}

export function isEmpty({ lists, settings }: SettingsDiff): boolean {
  const all = Object.values(lists).flatMap(({ added, removed, changed }) => [
    ...added,
    ...removed,
    ...changed,
  ]);
  return all.length + settings.length === 0;
}

/** An item of a list for comparisons. */
interface Item {
  /** Without the limits that a key gets from its plan. */
  readonly own: Mapping;
  /** With the limits that a key gets from its plan. */
  readonly all: Mapping;
}

function namedIn(members: Mapping, list: string, name: string): ReadonlyMap<string, Item> {
  const items = Array.isArray(members[list]) ? members[list] : [];
  const ofPlans = new Map(
    Array.isArray(members.plans) ? members.plans.map((plan) => [plan.name, plan.windows]) : [],
  );
  return new Map(
    items.map((item: Mapping) => {
      const [shown, ofPlan] = [configured(item), ofPlans.get(item.plan)];
      const all = withLimits(shown, ofPlan === undefined ? undefined : []);
      return [String(item[name]), { own: withLimits(shown, ofPlan), all }];
    }),
  );
}

/** Returns a plan as the configuration states it. */
function configured(shown: Mapping): Mapping {
  return planMembers.reduce((plan, member) => {
    const { rest, limits } = member.asConfigured?.(plan) ?? { rest: plan };
    return limits === undefined ? rest : { ...rest, windows: windowsView(toLimits(limits)) };
  }, shown);
}

/**
 * Replaces the list of windows by an object, so that each limit is a member. The limits of a key are omitted if they
 * equal its plan's limits. The groups of a key are members of the key.
 */
function withLimits({ windows, ...rest }: Mapping, ofPlan: unknown): Mapping {
  const shown = Array.isArray(windows) && Array.isArray(ofPlan) ? windows.filter(isOfAll) : windows;
  if (!Array.isArray(shown) || isDeepStrictEqual(shown, Array.isArray(ofPlan) && ofPlan.filter(isOfAll)))
    return rest;
  const operations = shown
    .filter(({ group }) => group !== undefined)
    .map((one) => [one.group, one.operations]);
  return {
    ...rest,
    limits: Object.fromEntries(shown.map(({ name, limit }) => [name, limit])),
    operationsOf: Object.fromEntries(operations),
  };
}

function isOfAll({ group }: { readonly group?: string }): boolean {
  return group === undefined;
}

function diffLists(before: ReadonlyMap<string, Item>, after: ReadonlyMap<string, Item>): ListDiff {
  return {
    added: [...after.keys()].filter((id) => !before.has(id)),
    removed: [...before.keys()].filter((id) => !after.has(id)),
    changed: [...before].flatMap(([id, item]) => {
      const other = after.get(id);
      const changes = other === undefined ? [] : diffItems(item, other);
      return changes.length === 0 ? [] : [{ id, changes }];
    }),
  };
}

/** An edit of a plan changes no key. An edit of the plan of a key also changes the limits that the key gets. */
function diffItems(before: Item, after: Item): MemberChange[] {
  const isOnSamePlan = before.own.plan === after.own.plan;
  const areSame = isOnSamePlan && Object.hasOwn(before.own, 'limits') === Object.hasOwn(after.own, 'limits');
  return areSame ? diffMembers(before.own, after.own) : diffMembers(before.all, after.all);
}

/**
 * Compares two objects member by member, and returns each changed member with its path. Values other than objects are
 * compared as a whole.
 */
export function diffMembers(before: Mapping, after: Mapping, path = ''): MemberChange[] {
  return [...new Set([...Object.keys(before), ...Object.keys(after)])].flatMap((name) => {
    const [from, to] = [before[name], after[name]];
    if (isDeepStrictEqual(from, to)) return [];
    // The limits of a new group, and of a removed group, are compared one by one.
    const isOfGroups = /(^|\.)groups(\.[^.]+)?$/.test(`${path}${name}`);
    const [inFrom, inTo] = isOfGroups ? [from ?? {}, to ?? {}] : [from, to];
    if (isMapping(inFrom) && isMapping(inTo)) return diffMembers(inFrom, inTo, `${path}${name}.`);
    const member = `${path}${name}`;
    return [{ member, before: from, after: to }];
  });
}

/** The member with the operations of a group: `operationsOf.reports`, `groups.reports.operations` or `trial.groups.reports.operations`. */
const operationsPattern = /^(.*\.)??(?:operationsOf\.([^.]+)|groups\.([^.]+)\.operations)$/;

/** Describes a change, for example "60 → 30 a minute" or "host: keep → target". */
export function changeText({ member, before, after }: MemberChange): string {
  const limit = limitIn(member);
  if (limit !== undefined && areLimits(before, after)) {
    return `${member.startsWith('trial') ? 'trial ' : ''}${limitChangeText(limit, before, after)}`;
  }
  const [, path = '', ofPlan, ofOthers] = operationsPattern.exec(member) ?? [];
  const group = ofPlan ?? ofOthers;
  if (group !== undefined) {
    const where = path === '' ? '' : `${path.slice(0, -1)} `;
    return `${where}operations of the group ${group}: ${valueText(before)} → ${valueText(after)}`;
  }
  if (member === 'changes') {
    const [from, to] = [planChangesText(before), planChangesText(after)];
    return `${member}: ${from} → ${to}${from === to ? ' with other operations in groups' : ''}`;
  }
  const textOf = planMembers.flatMap(({ texts }) => texts[member] ?? [])[0];
  if (textOf !== undefined) return `${member}: ${textOf(before)} → ${textOf(after)}`;
  if (member === 'trial') return `trial: ${trialText(before)} → ${trialText(after)}`;
  return `${member}: ${valueText(before)} → ${valueText(after)}`;
}

/** Returns the limit that a member states: `limits.reports-minute`, `trial.perMinute` or `groups.reports.perMinute`. */
function limitIn(member: string) {
  const policy = /^limits\.(?:([a-z0-9-]+)-)?(\w+)$/.exec(member);
  const field = /^(?:trial\.)?(?:groups\.([^.]+)\.)?(per\w+)$/.exec(member);
  const window = planWindows.find((one) => one === policy?.[2] || limitFieldOf[one] === field?.[2]);
  return window && { window, group: policy?.[1] ?? field?.[1] };
}

function areLimits(...values: readonly unknown[]): boolean {
  return values.every((value) => value === undefined || typeof value === 'number');
}

/** Describes the changes of a plan, for example "from 2027-01-01: 40 a minute". Semicolons separate several changes. */
function planChangesText(changes: unknown): string {
  if (!Array.isArray(changes)) return 'nothing';
  const texts = changes.map(({ from, limits }) => `from ${dateText(from)}: ${limitsText(toLimits(limits))}`);
  return texts.join('; ');
}

function trialText(trial: unknown): string {
  return trial === undefined ? 'nothing' : limitsText(toLimits(trial as LimitsByField));
}

/** Returns the scheduled changes of a plan after `nowMs` that `after` has and `before` lacks. */
export function addedChanges(before: PlanChanges, after: PlanChanges, nowMs: number): StatedChanges {
  return (after.changes ?? [])
    .filter(({ from }) => Date.parse(from) > nowMs)
    .filter((change) => !before.changes?.some((known) => isDeepStrictEqual(known, change)));
}

type PlanChanges = Pick<z.output<typeof planShown>, 'changes'>;
type StatedChanges = NonNullable<PlanChanges['changes']>;

function valueText(value: unknown): string {
  if (value === undefined) return 'nothing';
  return typeof value === 'string' ? value : JSON.stringify(value);
}
