import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { loadSettings } from '../../gateway/config/load-settings.ts';
import type { Settings } from '../../gateway/shared/model.ts';
import { testConfig } from './gateway-process.ts';

/**
 * Loads the configuration `testConfig`, in which `overrides` replaces fields. The settings are for a gateway in the process of the test.
 *
 * @param files further files, by name
 */
export async function settingsOf(
  overrides: Record<string, unknown>,
  files: Readonly<Record<string, string>> = {},
): Promise<Settings> {
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-'));
  const file = join(folder, 'gateway.yaml');
  await writeFile(file, stringify(testConfig(overrides)));
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
  const loaded = await loadSettings({ file, env: {} });
  await rm(folder, { recursive: true });
  if (loaded.kind === 'invalid') throw new Error('the configuration of this test is not valid');
  return loaded.settings;
}
