import { isDeepStrictEqual } from 'node:util';
import {
  type ChangedMembers,
  isLimitsChange,
  type LimitsBefore,
  type RecordedChange,
} from '../../../fleet/changes.ts';
import type { StatedKey } from '../../../keys/key-schema.ts';
import {
  type GroupsByName,
  type LimitsByField,
  limitFieldNames,
  ownGroupsOf,
  toLimitFields,
  toLimits,
  withGroups,
} from '../../../keys/limits/limit-fields.ts';
import { limitsAt, plansAt } from '../../../keys/plans/plans.ts';
import { applyGrant, isRunning } from '../../../quota/grants.ts';
import { ofAllOperations } from '../../../shared/limits.ts';
import type { Grant, Key, Limits, Plan, Plans, Settings } from '../../../shared/model.ts';
import { isoOf, parseDate } from '../../../shared/schema/dates-and-durations.ts';
import type { LimitsSteps } from '../../wires/keys/usage.ts';

/** A value from a time on, until the next one. A list of them has the oldest first, and begins at -Infinity. */
interface Held<Value> {
  readonly fromMs: number;
  readonly value: Value;
}

/** The limits of a key without a grant, the names of its own groups, and its running grant, from a time on. */
export interface TermsStep {
  readonly fromMs: number;
  /** Empty while there was no such key. */
  readonly limits: Limits;
  readonly ownGroups: readonly string[] | undefined;
  readonly grant: Grant | undefined;
}

/** The parts of a key that give it its limits while it has no grant. */
interface KeyTerms {
  readonly plan: string;
  /** The key's own limits, if its plan is custom. */
  readonly own: LimitsByField | undefined;
  /** The groups that the key states itself. */
  readonly groups: GroupsByName | undefined;
}

/** The limits of plans over time, by name. Undefined: there was no such plan, or it was custom. */
export type PlanLimits = ReadonlyMap<string, readonly Held<LimitsByField | undefined>[]>;

export interface KeyHistory {
  readonly key: Pick<Key, 'id' | 'plan' | 'limits' | 'ownGroups'>;
  /** The key's stated plan and changes; undefined if they could not be read. */
  readonly stated?: StatedTerms | undefined;
  /** The present grant of the key. */
  readonly grant: Grant | undefined;
  /** The changes of the key, and reloads, the newest first. Changes of other keys are ignored. */
  readonly changes: readonly RecordedChange[];
  readonly fromMs: number;
  /** The present time. */
  readonly toMs: number;
}

/** The stated plans, and what the processes have decided about plans. */
type ConfiguredPlans = Pick<Settings, 'plans' | 'planStates'>;

/** Computes which limits a key had over a period, with its grants (`termsOverTime`). */
export function limitsOverTime({ plans, planStates, ...history }: KeyHistory & ConfiguredPlans): LimitsSteps {
  const ofPlans = planLimitsOverTime({ plans, planStates }, history.changes, history.toMs);
  return termsOverTime(history, ofPlans)
    .map(({ fromMs, limits, grant }) => ({
      fromAt: isoOf(fromMs),
      limits: toLimitFields(applyGrant(limits, grant, fromMs)),
    }))
    .filter(({ limits }, index, all) => !isDeepStrictEqual(limits, all[index - 1]?.limits));
}

/**
 * Computes the limits of plans over time. The function begins with the present limits and undoes the recorded changes, the newest first. It
 * assumes that the limits did not change before the oldest recorded change.
 *
 * @param changes the newest first
 * @param nowMs the present time
 */
export function planLimitsOverTime(
  configured: ConfiguredPlans,
  changes: readonly RecordedChange[],
  nowMs: number,
): PlanLimits {
  const limited = [...plansAt(configured, nowMs).values()].filter(({ isCustom }) => !isCustom);
  const earliest = new Map<string, LimitsByField | undefined>(
    limited.map((one) => [one.name, toLimitFields(one.limits)]),
  );
  const held = new Map<string, Held<LimitsByField | undefined>[]>();
  const begin = (name: string, fromMs: number) => {
    const list = held.get(name) ?? [];
    held.set(name, list);
    list.push({ fromMs, value: earliest.get(name) });
  };
  for (const { at, limitsBefore } of withPlanChanges(changes.filter(isOfPlans), configured.plans, nowMs)) {
    for (const [name, limits] of Object.entries(limitsBefore?.plans ?? {})) {
      begin(name, Date.parse(at));
      earliest.set(name, limits);
    }
  }
  for (const name of earliest.keys()) begin(name, Number.NEGATIVE_INFINITY);
  return new Map([...held].map(([name, list]) => [name, list.toReversed()]));
}

/**
 * Computes the terms of a key over a period, like `planLimitsOverTime`. A key that was deleted and issued again has its earlier terms before
 * the deletion.
 *
 * @returns a step for each change and for the start and end of each grant, the oldest first
 */
export function termsOverTime(
  { key, stated, grant, changes, fromMs, toMs }: KeyHistory,
  ofPlans: PlanLimits,
): readonly TermsStep[] {
  const ofKey = keyTermsOverTime(key, [...changes, ...datedEdits(key.id, stated, toMs)], ofPlans);
  const grants = grantsOf(key.id, grant, changes);
  const ownPlans = new Set(ofKey.flatMap(({ value }) => (value && !value.own ? [value.plan] : [])));
  const heldByPlan = new Map([...ownPlans].map((name) => [name, ofPlans.get(name) ?? []]));
  const instants = [
    ...[...ofKey, ...grants, ...[...heldByPlan.values()].flat()].map((one) => one.fromMs),
    ...grants.flatMap(({ value }) => (value ? [value.fromMs ?? 0, value.untilMs] : [])),
  ].filter((atMs) => atMs > fromMs && atMs <= toMs);
  const [termsAt, grantAt] = [inTurn(ofKey), inTurn(grants)];
  const limitsOfPlanAt = new Map([...heldByPlan].map(([name, held]) => [name, inTurn(held)]));
  return [...new Set([fromMs, ...instants.sort((a, b) => a - b)])].map((atMs) => {
    const terms = termsAt(atMs);
    const granted = grantAt(atMs);
    const byPlan = (name: string) => limitsOfPlanAt.get(name)?.(atMs) ?? {};
    return {
      fromMs: atMs,
      limits: terms ? withGroups(toLimits(terms.own ?? byPlan(terms.plan)), terms.groups) : [],
      ownGroups: terms?.groups && Object.keys(terms.groups),
      grant: isRunning(granted, atMs) ? granted : undefined,
    };
  });
}

/** Returns a function that finds the value at a time. Calls pass times in ascending order. */
function inTurn<Value>(held: readonly Held<Value>[]): (atMs: number) => Value | undefined {
  let place = 0;
  return (atMs) => {
    while ((held[place + 1]?.fromMs ?? Number.POSITIVE_INFINITY) <= atMs) place += 1;
    return held[place]?.value;
  };
}

/** @param changes in any order; undefined terms: there was no such key */
function keyTermsOverTime(
  { id, plan, limits, ownGroups }: KeyHistory['key'],
  changes: readonly (RecordedChange | DatedEdit)[],
  ofPlans: PlanLimits,
): readonly Held<KeyTerms | undefined>[] {
  const isLimited = ofPlans.get(plan)?.at(-1)?.value !== undefined;
  const own = isLimited ? undefined : toLimitFields(ofAllOperations(limits));
  let terms: KeyTerms | undefined = { plan, own, groups: ownGroupsOf({ limits, ownGroups }) };
  const steps: Held<KeyTerms | undefined>[] = [];
  const ofKey = changes.filter((change) => isOfKey(change, id));
  for (const change of ofKey.toSorted((a, b) => Date.parse(b.at) - Date.parse(a.at))) {
    const earlier = termsBefore(terms, change, id);
    if (earlier === terms) continue;
    steps.push({ fromMs: Date.parse(change.at), value: terms });
    terms = earlier;
  }
  steps.push({ fromMs: Number.NEGATIVE_INFINITY, value: terms });
  return steps.toReversed();
}

/** Whether a change may have changed the terms of a key. A recorded change with an error is left out, because it may have had no effect. */
function isOfKey(change: RecordedChange | DatedEdit, id: string): boolean {
  if (change.action === 'reload') return Object.hasOwn(change.limitsBefore?.keys ?? {}, id);
  return 'key' in change && change.key === id && change.error === undefined;
}

/** A scheduled change of a plan, with the members of a recorded reload, so that the same code reads both. */
interface DatedReload {
  readonly action: 'reload';
  readonly at: string;
  readonly limitsBefore: LimitsBefore;
}

type StatedTerms = Pick<StatedKey, 'plan' | 'limits' | 'changes'>;

/** A past change of the key's plan at its date, with the members of a recorded edit. */
interface DatedEdit {
  readonly action: 'update';
  readonly at: string;
  readonly key: string;
  readonly before: ChangedMembers;
  readonly after: ChangedMembers;
  readonly error?: undefined;
}

function datedEdits(id: string, stated: StatedTerms | undefined, nowMs: number): readonly DatedEdit[] {
  const { changes = [], ...first } = stated ?? { plan: '' };
  return changes
    .map(({ from, ...after }, index): DatedEdit => {
      const { plan, limits } = changes[index - 1] ?? first;
      const at = isoOf(parseDate(from) ?? 0);
      return {
        action: 'update',
        at,
        key: id,
        before: { plan, limits },
        after: { limits: undefined, ...after },
      };
    })
    .filter(({ at }) => Date.parse(at) <= nowMs);
}

type PlanChange = Extract<RecordedChange, { readonly limitsBefore?: unknown }>;

function isOfPlans(change: RecordedChange): change is PlanChange {
  return 'limitsBefore' in change && change.limitsBefore?.plans !== undefined;
}

/**
 * Adds the scheduled changes of plans, which are not in the record of changes. The result has the newest change
 * first.
 */
function withPlanChanges(
  changes: readonly PlanChange[],
  plans: Plans,
  nowMs: number,
): readonly (PlanChange | DatedReload)[] {
  const dated = [...plans.values()].flatMap((plan) =>
    (plan.changes ?? []).map(({ fromMs }): DatedReload => {
      const limits = limitsUntil(fromMs, plan, changes);
      return { action: 'reload', at: isoOf(fromMs), limitsBefore: { plans: { [plan.name]: limits } } };
    }),
  );
  const past = dated.filter(({ at }) => Date.parse(at) <= nowMs);
  return [...changes, ...past].sort((a, b) => Date.parse(b.at) - Date.parse(a.at));
}

/**
 * Returns the limits of a plan just before its scheduled change at `fromMs`. If a process had changed the plan then, these are the limits after
 * that change.
 *
 * @param changes the newest first
 */
function limitsUntil(fromMs: number, plan: Plan, changes: readonly PlanChange[]): LimitsByField {
  const last = changes.find(
    (change) => change.limitsBefore?.plans?.[plan.name] !== undefined && Date.parse(change.at) < fromMs,
  );
  const endedByEarlierChange = plan.changes?.some(
    (one) => last !== undefined && one.fromMs < fromMs && one.fromMs > Date.parse(last.at),
  );
  return last !== undefined && isLimitsChange(last) && !endedByEarlierChange
    ? last.after
    : toLimitFields(limitsAt(plan, fromMs - 1));
}

/** @returns the same object if the change edited no terms */
function termsBefore(
  terms: KeyTerms | undefined,
  change: RecordedChange | DatedEdit,
  id: string,
): KeyTerms | undefined {
  if (change.action === 'reload') {
    const before = change.limitsBefore?.keys?.[id];
    return before ? { plan: before.plan, own: before.limits, groups: before.groups } : terms;
  }
  const { action, before = {}, after = {} } = change as Extract<typeof change, { readonly key?: unknown }>;
  if (action === 'create') return undefined;
  if (action === 'delete') {
    if (typeof before.plan !== 'string') return terms;
    return { plan: before.plan, own: limitsIn(before.limits), groups: groupsIn(before.groups) };
  }
  if (action !== 'update' || terms === undefined) return terms;
  const plan = typeof before.plan === 'string' ? before.plan : terms.plan;
  const isOther = (member: string) => member in before || member in after;
  if (plan === terms.plan && !isOther('limits') && !isOther('groups')) return terms;
  const own = isOther('limits') ? limitsIn(before.limits) : terms.own;
  return { plan, own, groups: isOther('groups') ? groupsIn(before.groups) : terms.groups };
}

/**
 * Returns the recorded grants of a key with their timestamps, the oldest first. An entry without a grant means that the
 * grant was ended.
 */
function grantsOf(
  id: string,
  present: Grant | undefined,
  changes: readonly RecordedChange[],
): readonly Held<Grant | undefined>[] {
  const given: Held<Grant | undefined>[] = [];
  let first = present;
  for (const change of changes) {
    // A recorded change with an error is skipped, because it may have had no effect.
    if (!('key' in change) || change.key !== id || change.error !== undefined) continue;
    const { action, before = {}, after = {} } = change;
    if (action !== 'grant' && action !== 'ungrant' && action !== 'delete') continue;
    given.unshift({ fromMs: Date.parse(change.at), value: action === 'grant' ? grantIn(after) : undefined });
    first = grantIn(before);
  }
  return [{ fromMs: Number.NEGATIVE_INFINITY, value: first }, ...given];
}

function grantIn(members: ChangedMembers): Grant | undefined {
  const limits = limitsIn(members.limits);
  const untilMs = Date.parse(String(members.untilAt));
  if (limits === undefined || Number.isNaN(untilMs)) return undefined;
  const fromMs = Date.parse(String(members.fromAt));
  return { limits: toLimits(limits), fromMs: Number.isNaN(fromMs) ? undefined : fromMs, untilMs };
}

/** The value is checked, because a command can report members with any values. */
function limitsIn(recorded: unknown): LimitsByField | undefined {
  if (typeof recorded !== 'object' || recorded === null) return undefined;
  const numbers = Object.fromEntries(
    Object.entries(recorded).filter(
      ([field, max]) => limitFieldNames.some((name) => name === field) && typeof max === 'number',
    ),
  );
  const groups = groupsIn((recorded as { readonly groups?: unknown }).groups);
  return groups === undefined ? numbers : { ...numbers, groups };
}

function groupsIn(recorded: unknown): GroupsByName | undefined {
  if (typeof recorded !== 'object' || recorded === null) return undefined;
  return Object.fromEntries(
    Object.entries(recorded).map(([name, group]) => {
      const { operations } = Object(group) as { readonly operations?: unknown };
      const list = Array.isArray(operations) ? operations.map(String) : undefined;
      return [name, { ...limitsIn(group), ...(list && { operations: list }) }];
    }),
  );
}
