import { expect, test } from 'vitest';
import { settingsMembers } from '../../gateway/admin/settings/settings-view.ts';
import { loadSettings } from '../../gateway/config/load-settings.ts';
import { restartNeeded, settingsInForce } from '../../gateway/config/watch-settings.ts';
import type { Mapping } from '../../gateway/shared/structures/plain-data.ts';
import { configFolder, digestOf, mainDocument } from '../support/config-folder.ts';

function settingsWith(lines: string) {
  const loaded = loadSettings({
    file: configFolder({ 'tollgate.yaml': mainDocument + lines }).file,
    env: {},
  });
  if (loaded.kind === 'invalid') throw new Error(JSON.stringify(loaded.problems));
  return loaded.settings;
}

test('changes of listeners and store need a restart, and other changes do not', () => {
  const before = settingsWith('');
  expect(restartNeeded(before, settingsWith('bodyBytesMax: 5\ntrustedProxies: [10.0.0.1]\n'))).toEqual([]);
  const tokens = `[{ name: a, may: read, sha256: ${digestOf('a')} }]`;
  expect(restartNeeded(before, settingsWith(`admin: { hosts: [gateway], tokens: ${tokens} }\n`))).toEqual([]);
  expect(restartNeeded(before, settingsWith('listen: { port: 1 }\n'))).toEqual(['listen']);
  expect(
    restartNeeded(
      before,
      settingsWith('admin: { port: 1 }\nredis: { url: redis://redis }\nbodyBytesMax: 5\n'),
    ),
  ).toEqual(['admin', 'redis']);
  const shared = 'redis: { url: redis://redis }\n';
  expect(restartNeeded(settingsWith(shared), settingsWith(`${shared}workers: auto\n`))).toEqual(['workers']);
});

test('settings that need a restart keep their values from the start, and all other settings change with the load', () => {
  const starts = [
    settingsWith(''),
    settingsWith('redis: { url: redis://redis }\nworkers: 2\nusage: { keepDays: 2 }\nlisten: { port: 1 }\n'),
  ];
  const edits = 'admin: { port: 1, hosts: [gateway] }\nredis: { url: redis://other }\nbodyBytesMax: 5\n';
  for (const atStart of starts) {
    const loaded = settingsWith(edits);
    const inForce = settingsInForce(atStart, loaded);
    expect(restartNeeded(atStart, loaded)).not.toEqual([]);
    expect(restartNeeded(atStart, inForce)).toEqual([]);
    const { version, bodyBytesMax, admin } = inForce;
    expect({ version, bodyBytesMax, hosts: admin.hosts }).toEqual({
      version: loaded.version,
      bodyBytesMax: 5,
      hosts: ['gateway'],
    });
    const [shown, before]: Mapping[] = [settingsMembers(inForce), settingsMembers(atStart)];
    for (const name of ['workers', 'usage', 'redis', 'listen', 'directory']) {
      expect([name, shown?.[name]]).toEqual([name, before?.[name]]);
    }
    expect([shown?.bodyBytesMax, shown?.admin]).toEqual([
      5,
      { ...Object(before?.admin), hosts: ['gateway'] },
    ]);
  }
});
