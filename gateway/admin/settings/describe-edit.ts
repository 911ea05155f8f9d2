import { setImmediate as nextTurn } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import type { LimitsBefore } from '../../fleet/changes.ts';
import { laterPlansText } from '../../fleet/wording.ts';
import { changedKeys, type KeyEdit } from '../../keys/changed-keys.ts';
import { plansInForce, tableIn } from '../../keys/key-table.ts';
import { toLimitFields, toLimits } from '../../keys/limits/limit-fields.ts';
import type { Settings } from '../../shared/model.ts';
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
 * the edited keys. `planEdits` has a text for each changed member of each changed plan.
 */
export async function describeEdit(
  before: Settings,
  after: Settings,
  bounds: Bounds,
): Promise<{
  readonly edits: readonly string[];
  readonly limitsBefore: LimitsBefore | undefined;
  readonly keys: readonly string[] | undefined;
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

async function keyTexts(
  { keys: before }: Settings,
  { keys: after }: Settings,
  { editedKeysNamedMax, editedKeysFoundMax }: Bounds,
): Promise<{ readonly texts: string[]; readonly changed: readonly KeyEdit[]; readonly edited: string[] }> {
  const edited: string[] = [];
  const found = new Map<KeyEdit['edit'], { number: number; named: KeyEdit[] }>();
  for (const one of changedKeys(tableIn(before), tableIn(after))) {
    if (one === undefined) {
      await nextTurn();
      continue;
    }
    if (edited.length < editedKeysFoundMax) edited.push(one.id);
    const same = found.get(one.edit) ?? { number: 0, named: [] };
    same.number += 1;
    if (same.named.length < editedKeysNamedMax) same.named.push(one);
    found.set(one.edit, same);
  }
  const texts = [...found].flatMap(([edit, { number, named }]) => {
    if (edit === 'changed' && number <= editedKeysNamedMax) return named.map(keyText);
    const ids = named.map(({ id }) => id).join(', ');
    const more = number > named.length ? ` and ${figure(number - named.length)} more` : '';
    return [`${number === 1 ? 'key' : 'keys'} ${ids}${more} ${edit}`];
  });
  return { texts, changed: found.get('changed')?.named ?? [], edited };
}

/** Describes the edit of a key, for example "key acme plan: free → pro, name". */
function keyText({ id, before, after }: KeyEdit): string {
  const changes = diffMembers(membersOf(before), membersOf(after));
  const texts = changes.map((change) => {
    const { member } = change;
    const isShown = member === 'plan' || /^(limits|groups)\./.test(member);
    if (isShown) return changeText(change);
    return member === 'changes' ? laterPlansText(change.before, change.after) : member;
  });
  return `key ${id} ${texts.join(', ')}`;
}

function membersOf(stated: KeyEdit['before']): Mapping {
  const { limits = {}, ...rest } = stated ?? {};
  return { ...rest, limits: Object.fromEntries(toLimits(limits).map(({ window, max }) => [window, max])) };
}
