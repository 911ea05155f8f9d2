import { expect, test } from 'vitest';
import { loadSettings, type ValidSettings } from '../../../gateway/config/load-settings.ts';
import {
  applyMessage,
  fullMessage,
  messageBetween,
} from '../../../gateway/config/loader/settings-message.ts';
import type { Settings } from '../../../gateway/shared/model.ts';
import { configFolder, mainDocument } from '../../support/config-folder.ts';
import { keysView } from '../../support/loaded-view.ts';

const view = (settings: Settings) => ({ ...settings, keys: keysView(settings.keys) });
const entry = (id: number, plan = 'free') =>
  `- { id: k${id}, plan: ${plan}, secrets: [{ sha256: ${`f${id}`.padStart(64, '0')} }] }\n`;
const keysOf = (ids: readonly number[]) => ids.map((id) => entry(id)).join('');
const hundred = Array.from({ length: 100 }, (_, id) => id);

function load(file: string, before?: ValidSettings): ValidSettings {
  const loaded = loadSettings({ file, env: {}, before: before?.entries });
  if (loaded.kind === 'invalid') throw new Error('the configuration of this test is not valid');
  return loaded;
}

test('settings that are sent to another process arrive unchanged', () => {
  const { settings } = load(configFolder({ 'keys.yaml': keysOf(hundred) }).file);
  const arrived = applyMessage(undefined, structuredClone(fullMessage(settings)));
  expect(view(arrived)).toEqual(view(settings));
  expect(view(applyMessage(arrived, structuredClone(fullMessage(settings))))).toEqual(view(settings));
});

test('an edit sends only the differences, which change the old settings into the new settings', () => {
  const { file, write } = configFolder({ 'keys.yaml': keysOf(hundred) });
  let loaded = load(file);
  let arrived = applyMessage(undefined, structuredClone(fullMessage(loaded.settings)));
  const edits = [
    () => write('keys.yaml', `# One more line.\n${keysOf(hundred)}`),
    () => write('keys.yaml', keysOf([...hundred.slice(0, 50), 500, ...hundred.slice(51)])),
    () => write('keys.yaml', keysOf(hundred.toReversed())),
    () => write('keys.yaml', keysOf(hundred).replace('k7, plan: free', 'k7, disabled: true, plan: free')),
    () => write('tollgate.yaml', `${mainDocument.replace('perDay: 1000', 'perDay: 2000')}docsPath: /docs\n`),
    () => write('tollgate.yaml', mainDocument),
  ];
  for (const edit of edits) {
    edit();
    const next = load(file, loaded);
    const message = messageBetween(loaded.settings, next.settings);
    expect(message.kind).toBe('difference');
    expect(message.changes.size).toBeLessThanOrEqual(4);
    const before = view(arrived);
    const after = applyMessage(arrived, structuredClone(message));
    expect(view(after)).toEqual(view(load(file).settings));
    expect(view(arrived)).toEqual(before);
    [loaded, arrived] = [next, after];
  }
});

test('an edit of very many keys sends all settings', () => {
  const { file, write } = configFolder({ 'keys.yaml': keysOf(hundred) });
  const before = load(file);
  write('keys.yaml', keysOf(Array.from({ length: 300 }, (_, id) => 1_000 + id)));
  const after = load(file, before);
  const message = messageBetween(before.settings, after.settings);
  expect(message.kind).toBe('full');
  expect(view(applyMessage(before.settings, message))).toEqual(view(load(file).settings));
});
