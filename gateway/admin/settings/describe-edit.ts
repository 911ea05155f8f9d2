import { setImmediate as nextTurn } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import type { LimitsBefore } from '../../fleet/changes.ts';
import { laterPlansText } from '../../fleet/wording.ts';
import { changedKeys, type KeyEdit } from '../../keys/changed-keys.ts';
import type { RawKey, StatedKey } from '../../keys/key-schema.ts';
import { type KeyTable, plansInForce, tableIn } from '../../keys/key-table.ts';
import { toLimitFields } from '../../keys/limits/limit-fields.ts';
import { limitChangeTexts, planChangeText } from '../../keys/limits/limit-texts.ts';
import { compileKey, withPlanAt } from '../../keys/plans/compile-key.ts';
import { groupNames, operationsOf, withoutOperations } from '../../shared/limits.ts';
import type { Limits, Settings } from '../../shared/model.ts';
import type { Mapping } from '../../shared/structures/plain-data.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import { figure } from '../../shared/words/figures.js';
import {
  changeText,
  diffMembers,
  diffSettings,
  type ListDiff,
  type SettingsDiff,
  settingLists,
} from './diff-settings.ts';
import { settingsMembers } from './settings-view.ts';

/**
 * Describes the changes of a reload, each as a text such as "free 60 → 50 a minute" or "key acme disabled". No text
 * contains a secret, a digest or a customer's name. The comparison of the keys yields to the event loop regularly.
 * `limitsBefore` contains the limits before the reload, for the plans and keys that the texts name. `keys` has the ids of
 * the edited keys, and `removedKeys` those of the removed keys. `planEdits` has a text for each changed member of each changed plan.
 */
export async function describeEdit(
  before: Settings,
  after: Settings,
  bounds: Bounds,
): Promise<{
  readonly edits: readonly string[];
  readonly limitsBefore: LimitsBefore | undefined;
  readonly keys: readonly string[] | undefined;
  readonly removedKeys: readonly string[] | undefined;
  readonly planEdits: readonly PlanEdit[];
}> {
  const ofKeys = await keyTexts(before, after, bounds);
  const diff = diffSettings(settingsMembers(before), settingsMembers(after));
  const texts = [...settingTexts(diff), ...ofKeys.texts];
  const { editTextsMax, editTextCharsMax } = bounds;
  const shown = texts
    .slice(0, editTextsMax)
    .map((text) => (text.length > editTextCharsMax ? `${text.slice(0, editTextCharsMax)} …` : text));
  const left = texts.length - editTextsMax;
  const limitsBefore = limitsThen(before, after, ofKeys.changed, bounds);
  return {
    edits: left > 0 ? [...shown, `${figure(left)} more`] : shown,
    limitsBefore,
    keys: ofKeys.edited.length > 0 ? ofKeys.edited : undefined,
    removedKeys: ofKeys.removed.length > 0 ? ofKeys.removed : undefined,
    planEdits: diff.lists.plans.changed.map(({ id, changes }) => ({
      plan: id,
      edits: changes.map(planText),
    })),
  };
}

export interface PlanEdit {
  readonly plan: string;
  readonly edits: readonly string[];
}

function limitsThen(
  before: Settings,
  after: Settings,
  changed: readonly KeyEdit[],
  { editTextsMax }: Bounds,
): LimitsBefore | undefined {
  const plansAfter = plansInForce(after);
  const plans = [...plansInForce(before)]
    .filter(([name, { limits }]) => !isDeepStrictEqual(limits, plansAfter.get(name)?.limits))
    .slice(0, editTextsMax)
    .map(([name, { limits }]) => [name, toLimitFields(limits)]);
  const keys = changed.flatMap(({ id, before: stated, after: now }) => {
    if (stated === undefined) return [];
    const { plan, limits, groups } = stated;
    if (plan === now?.plan && isDeepStrictEqual([limits, groups], [now.limits, now.groups])) return [];
    return [[id, { plan, limits, groups }]];
  });
  if (plans.length + keys.length === 0) return undefined;
  return {
    plans: plans.length > 0 ? Object.fromEntries(plans) : undefined,
    keys: keys.length > 0 ? Object.fromEntries(keys) : undefined,
  };
}

/** Mapping that the texts omit. The record of changes has a separate entry for changes of admin tokens. */
const recordedElsewhere = new Set(['admin.tokens']);

function settingTexts(diff: SettingsDiff): string[] {
  const { keys: _, ...lists } = diff.lists;
  const listTexts = ([list, { added, removed, changed }]: [string, ListDiff]) => {
    const noun = settingLists[list]?.noun;
    const nameOf = (id: string) => (list === 'plans' ? id : `${noun} ${id}`);
    return [
      ...changed.map(({ id, changes }) => `${nameOf(id)} ${changes.map(planText).join(', ')}`),
      ...added.map((id) => `${noun} ${id} is new`),
      ...removed.map((id) => `${noun} ${id} is gone`),
    ];
  };
  return [
    ...Object.entries(lists).flatMap(listTexts),
    ...diff.settings.filter(({ member }) => !recordedElsewhere.has(member)).map(changeText),
  ];
}

function planText(change: Parameters<typeof changeText>[0]): string {
  if (change.member !== 'isCustom') return changeText(change);
  return change.after === true
    ? 'now has separate limits for each key'
    : 'now has the same limits for every key';
}

interface Tables {
  readonly before: KeyTable;
  readonly after: KeyTable;
}

async function keyTexts(
  before: Settings,
  after: Settings,
  { editedKeysNamedMax, editedKeysFoundMax }: Bounds,
): Promise<{
  readonly texts: string[];
  readonly changed: readonly KeyEdit[];
  readonly edited: string[];
  readonly removed: string[];
}> {
  const tables = { before: tableIn(before.keys), after: tableIn(after.keys) };
  const [edited, removed]: [string[], string[]] = [[], []];
  const found = new Map<KeyEdit['edit'], { number: number; named: KeyEdit[] }>();
  for (const one of changedKeys(tables.before, tables.after)) {
    if (one === undefined) {
      await nextTurn();
      continue;
    }
    if (edited.length < editedKeysFoundMax) edited.push(one.id);
    if (one.edit === 'removed' && removed.length < editedKeysFoundMax) removed.push(one.id);
    const same = found.get(one.edit) ?? { number: 0, named: [] };
    same.number += 1;
    if (same.named.length < editedKeysNamedMax) same.named.push(one);
    found.set(one.edit, same);
  }
  const texts = [...found].flatMap(([edit, { number, named }]) => {
    if (edit === 'changed' && number <= editedKeysNamedMax) return named.map((one) => keyText(one, tables));
    const ids = named.map(({ id }) => id).join(', ');
    const more = number > named.length ? ` and ${figure(number - named.length)} more` : '';
    return [`${number === 1 ? 'key' : 'keys'} ${ids}${more} ${edit}`];
  });
  return { texts, changed: found.get('changed')?.named ?? [], edited, removed };
}

/** Describes the edit of a key, for example "key acme plan free → pro (60 → 600 a minute), name". */
function keyText({ id, before, after }: KeyEdit, tables: Tables): string {
  const texts = diffMembers(otherMembers(before), otherMembers(after)).map(({ member, ...change }) =>
    member === 'changes' ? laterPlansText(change.before, change.after) : member,
  );
  return `key ${id} ${[...termsTexts(before, after, tables), ...texts].join(', ')}`;
}

/** Describes the plan and the limits of a key, as they applied before and after its edit. */
function termsTexts(before: KeyEdit['before'], after: KeyEdit['after'], tables: Tables): readonly string[] {
  if (before === undefined || after === undefined) return [];
  const { atMs } = tables.after.inForce;
  const [from, to] = [withPlanAt(before, atMs), withPlanAt(after, atMs)];
  const areOther = !isDeepStrictEqual([from.plan, from.limits, from.groups], [to.plan, to.limits, to.groups]);
  if (!areOther) return [];
  const limitsOf = (stated: StatedKey, { inForce: { plans } }: KeyTable) =>
    compileKey(stated, { plans, atMs })?.limits ?? [];
  const [fromLimits, toLimits] = [limitsOf(from, tables.before), limitsOf(to, tables.after)];
  const ofLimits = [
    ...limitChangeTexts(withoutOperations(fromLimits), withoutOperations(toLimits)),
    ...diffMembers(operationsByGroup(fromLimits), operationsByGroup(toLimits)).map(changeText),
  ];
  return from.plan === to.plan ? ofLimits : [planChangeText(from.plan, to.plan, ofLimits)];
}

function operationsByGroup(limits: Limits): Mapping {
  return {
    operationsOf: Object.fromEntries(groupNames(limits).map((name) => [name, operationsOf(limits, name)])),
  };
}

function otherMembers(stated: KeyEdit['before']): Mapping {
  const { plan: _, limits: __, groups: ___, ...others }: Partial<RawKey> = stated ?? {};
  return others;
}
