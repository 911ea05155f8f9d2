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

interface Held<Value> {
  readonly fromMs: number;
  readonly value: Value;
}

/** The plan and the limits of a key without a grant, and its running grant, from a time on. */
export interface TermsStep {
  readonly fromMs: number;
  /** Undefined before the key existed. */
  readonly plan: string | undefined;
  readonly limits: Limits;
  readonly grant: Grant | undefined;
}

/** The parts of the configuration that give a key its limits while it has no grant. */
interface Terms {
  readonly plan: string;
  /** The key's own limits, if its plan is custom. */
  readonly own: LimitsByField | undefined;
  /** The groups that the key states itself. */
  readonly groups: GroupsByName | undefined;
  /** The limits of each plan by its name. A custom plan is absent, because it has no limits. */
  readonly plans: ReadonlyMap<string, LimitsByField>;
}

/** The present terms of a key, and the changes that led to them. */
export interface LimitHistory {
  readonly key: Pick<Key, 'id' | 'plan' | 'limits' | 'ownGroups'>;
  /** The key's stated plan and changes; undefined if they could not be read. */
  readonly stated?: StatedTerms | undefined;
  /** The stated plans. */
  readonly plans: Plans;
  /** What the processes have decided about plans. */
  readonly planStates: Settings['planStates'];
  /** The present grant of the key. */
  readonly grant: Grant | undefined;
  /** The newest first. */
  readonly changes: readonly RecordedChange[];
  readonly fromMs: number;
  /** The present time. */
  readonly toMs: number;
}

/** Computes which limits a key had over a period, with its grants (`termsOverTime`). */
export function limitsOverTime(history: LimitHistory): LimitsSteps {
  return termsOverTime(history)
    .map(({ fromMs, limits, grant }) => ({
      fromAt: isoOf(fromMs),
      limits: toLimitFields(applyGrant(limits, grant, fromMs)),
    }))
    .filter(({ limits }, index, all) => !isDeepStrictEqual(limits, all[index - 1]?.limits));
}

/**
 * Computes the terms of a key over a period. The function begins with the present terms and undoes the recorded changes, the newest
 * first. The function assumes that the limits did not change before the oldest recorded change.
 *
 * @returns a step for each change and for the start and end of each grant, the oldest first
 */
export function termsOverTime({
  key,
  stated,
  plans,
  planStates,
  grant,
  changes,
  fromMs,
  toMs,
}: LimitHistory): readonly TermsStep[] {
  const all = [...changes, ...datedEdits(key.id, stated, toMs)];
  const steps = termsWithoutGrants(key, { plans, planStates }, all, toMs);
  const grants = grantsOf(key.id, grant, changes);
  const instants = [
    ...[...steps, ...grants].map((one) => one.fromMs),
    ...grants.flatMap(({ value }) => (value ? [value.fromMs ?? 0, value.untilMs] : [])),
  ].filter((atMs) => atMs > fromMs && atMs <= toMs);
  return [fromMs, ...instants.sort((a, b) => a - b)].map((atMs) => {
    const terms = steps.findLast((one) => one.fromMs <= atMs)?.value;
    const granted = grants.findLast((one) => one.fromMs <= atMs)?.value;
    const running = isRunning(granted, atMs) ? granted : undefined;
    return { fromMs: atMs, plan: terms?.plan, limits: terms ? limitsOf(terms) : [], grant: running };
  });
}

/** Returns the terms that the key had over time, the oldest first. The result ignores grants. */
function termsWithoutGrants(
  key: Pick<Key, 'id' | 'plan' | 'limits' | 'ownGroups'>,
  configured: Pick<Settings, 'plans' | 'planStates'>,
  changes: readonly (RecordedChange | DatedEdit)[],
  nowMs: number,
): readonly Held<Terms>[] {
  const limited = [...plansAt(configured, nowMs).values()].filter(({ isCustom }) => !isCustom);
  const ofPlans = new Map(limited.map((one) => [one.name, toLimitFields(one.limits)]));
  const { id, plan, limits } = key;
  const own = ofPlans.has(plan) ? undefined : toLimitFields(ofAllOperations(limits));
  let terms: Terms = { plan, own, groups: ownGroupsOf(key), plans: ofPlans };
  const steps: Held<Terms>[] = [];
  for (const change of withPlanChanges(changes, configured.plans, nowMs)) {
    const earlier = termsBefore(terms, change, id);
    if (earlier === terms) continue;
    steps.unshift({ fromMs: Date.parse(change.at), value: terms });
    if (earlier === 'no_key') return steps;
    terms = earlier;
  }
  return [{ fromMs: Number.NEGATIVE_INFINITY, value: terms }, ...steps];
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

/**
 * Adds the scheduled changes of plans, which are not in the record of changes. The result has the newest change
 * first.
 */
function withPlanChanges(
  changes: readonly (RecordedChange | DatedEdit)[],
  plans: Plans,
  nowMs: number,
): readonly (RecordedChange | DatedReload | DatedEdit)[] {
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
function limitsUntil(
  fromMs: number,
  plan: Plan,
  changes: readonly (RecordedChange | DatedEdit)[],
): LimitsByField {
  const last = changes.find(
    (change) =>
      'limitsBefore' in change &&
      change.limitsBefore?.plans?.[plan.name] !== undefined &&
      Date.parse(change.at) < fromMs,
  );
  const endedByEarlierChange = plan.changes?.some(
    (one) => last !== undefined && one.fromMs < fromMs && one.fromMs > Date.parse(last.at),
  );
  return last !== undefined && isLimitsChange(last) && !endedByEarlierChange
    ? last.after
    : toLimitFields(limitsAt(plan, fromMs - 1));
}

function limitsOf({ plan, own, groups, plans }: Terms): Limits {
  return withGroups(toLimits(own ?? plans.get(plan) ?? {}), groups);
}

/** @returns the same object if the change edited no limits */
function termsBefore(
  terms: Terms,
  change: RecordedChange | DatedReload | DatedEdit,
  id: string,
): Terms | 'no_key' {
  if (change.action === 'reload' || isLimitsChange(change)) {
    const { plans, keys }: LimitsBefore = change.limitsBefore ?? {};
    const known = plans ? { ...terms, plans: new Map([...terms.plans, ...Object.entries(plans)]) } : terms;
    const ofKey = keys && Object.hasOwn(keys, id) ? keys[id] : undefined;
    if (ofKey !== undefined) return { ...known, plan: ofKey.plan, own: ofKey.limits, groups: ofKey.groups };
    return plans ? known : terms;
  }
  if (!('key' in change) || change.key !== id) return terms;
  const { action, before = {}, after = {} } = change;
  if (action === 'create') return 'no_key';
  if (action !== 'update') return terms;
  const plan = typeof before.plan === 'string' ? before.plan : terms.plan;
  const isOther = (member: string) => member in before || member in after;
  if (plan === terms.plan && !isOther('limits') && !isOther('groups')) return terms;
  const own = isOther('limits') ? limitsIn(before.limits) : terms.own;
  return { ...terms, plan, own, groups: isOther('groups') ? groupsIn(before.groups) : terms.groups };
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
