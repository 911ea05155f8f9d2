import { expect, test } from 'vitest';
import { loadSettings } from '../../gateway/config/load-settings.ts';
import { applyMessage, fullMessage } from '../../gateway/config/settings-message.ts';
import { configFolder } from '../support/config-folder.ts';

test('settings that are sent to another process arrive as they are', () => {
  const loaded = loadSettings({ file: configFolder().file, env: {} });
  if (loaded.kind === 'invalid') throw new Error('the configuration of this test is not valid');
  const { settings } = loaded;
  expect(applyMessage(undefined, structuredClone(fullMessage(settings)))).toEqual(settings);
});
