import { setImmediate as nextTurn } from 'node:timers/promises';
import { figure } from '../../fleet/wording.ts';
import { changedKeys, type KeyEdit } from '../../keys/changed-keys.ts';
import { type KeyTable, tableIn } from '../../keys/key-table.ts';
import { toLimits } from '../../keys/limit-fields.ts';
import type { Settings } from '../../shared/model.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import { changeText, diffMembers, diffSettings, type ListDiff, type Members } from './diff-settings.ts';
import { settingsMembers } from './settings-view.ts';

type EditBounds = Pick<Bounds, 'editTextsMax' | 'editTextCharsMax' | 'editedKeysNamedMax'>;

/**
 * What a reload changed, a text for each thing: "free 60 → 50 a minute", "key acme disabled". No text has a secret, a digest
 * or what a customer calls itself. The keys are compared in steps, between which requests pass.
 */
export async function describeEdit(
  before: Settings,
  after: Settings,
  bounds: EditBounds,
): Promise<readonly string[]> {
  const texts = [...settingTexts(before, after), ...(await keyTexts(before, after, bounds))];
  const { editTextsMax, editTextCharsMax } = bounds;
  const shown = texts
    .slice(0, editTextsMax)
    .map((text) => (text.length > editTextCharsMax ? `${text.slice(0, editTextCharsMax)} …` : text));
  return texts.length > editTextsMax ? [...shown, `${figure(texts.length - editTextsMax)} more`] : shown;
}

/** The tokens of the admin API have an entry of their own. */
const toldElsewhere = new Set(['admin.tokens']);

function settingTexts(before: Settings, after: Settings): string[] {
  const diff = diffSettings(settingsMembers(before), settingsMembers(after));
  const listTexts = (noun: string, { added, removed, changed }: ListDiff, name: (id: string) => string) => [
    ...changed.map(({ id, changes }) => `${name(id)} ${changes.map(planText).join(', ')}`),
    ...added.map((id) => `${noun} ${id} is new`),
    ...removed.map((id) => `${noun} ${id} is gone`),
  ];
  return [
    ...listTexts('plan', diff.plans, (id) => id),
    ...listTexts('operation', diff.operations, (id) => `operation ${id}`),
    ...listTexts('upstream', diff.upstreams, (id) => `upstream ${id}`),
    ...diff.settings.filter(({ member }) => !toldElsewhere.has(member)).map(changeText),
  ];
}

function planText(change: Parameters<typeof changeText>[0]): string {
  if (change.member !== 'isCustom') return changeText(change);
  return change.after === true ? 'has limits for each key now' : 'has limits of its own now';
}

async function keyTexts(
  { keys: before }: Settings,
  { keys: after }: Settings,
  { editedKeysNamedMax }: EditBounds,
): Promise<string[]> {
  const [from, to] = [tableIn(before), tableIn(after)];
  const found = new Map<KeyEdit['edit'], { number: number; ids: string[] }>();
  for (const one of changedKeys(from, to)) {
    if (one === undefined) {
      await nextTurn();
      continue;
    }
    const same = found.get(one.edit) ?? { number: 0, ids: [] };
    same.number += 1;
    if (same.ids.length < editedKeysNamedMax) same.ids.push(one.id);
    found.set(one.edit, same);
  }
  return [...found].flatMap(([edit, { number, ids }]) => {
    if (edit === 'changed' && number <= editedKeysNamedMax) return ids.map((id) => keyText(id, from, to));
    const more = number > ids.length ? ` and ${figure(number - ids.length)} more` : '';
    return [`${number === 1 ? 'key' : 'keys'} ${ids.join(', ')}${more} ${edit}`];
  });
}

/** "key acme plan: free → pro, name". */
function keyText(id: string, before: KeyTable, after: KeyTable): string {
  const changes = diffMembers(membersOf(id, before), membersOf(id, after));
  const texts = changes.map((change) => {
    const { member } = change;
    return member === 'plan' || member.startsWith('limits.') ? changeText(change) : member;
  });
  return `key ${id} ${texts.join(', ')}`;
}

function membersOf(id: string, keys: KeyTable): Members {
  const { limits = {}, ...rest } = keys.statedOf(id) ?? {};
  return { ...rest, limits: Object.fromEntries(toLimits(limits).map(({ window, max }) => [window, max])) };
}
