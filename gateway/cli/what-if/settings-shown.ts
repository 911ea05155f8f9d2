import type * as z from 'zod';
import { settingsShown, settingsText } from '../../admin/settings/settings-view.ts';
import { getSettingsWire } from '../../admin/wires/changes.ts';
import { readingOnly } from '../../admin/wires/wire.ts';
import { loadSettings } from '../../config/load-settings.ts';
import { formatProblems } from '../../config/problems/format-problems.ts';
import { printableJson } from '../../shared/terminal/printable.ts';
import type { AdminClient } from '../admin/admin-client.ts';
import { CommandError } from '../output/command-error.ts';

/** Fields of the `/settings` response that commands read. The comparison uses the whole response. */
const settingsRead = settingsShown.pick({
  version: true,
  environment: true,
  plans: true,
  keys: true,
  bans: true,
  workers: true,
  listen: true,
  admin: true,
  redis: true,
  usage: true,
  directory: true,
});

export interface Shown {
  /** The name of the file or gateway, for messages. */
  readonly name: string;
  readonly settings: z.output<typeof settingsRead>;
  /** The unchanged response. */
  readonly json: Readonly<Record<string, unknown>>;
}

/**
 * Reads the settings of a gateway.
 *
 * @throws a CommandError
 */
export async function settingsInForce(client: Pick<AdminClient, 'ask' | 'origin'>): Promise<Shown> {
  const { body, json } = await client.ask(readingOnly(getSettingsWire, settingsRead));
  return { name: `the gateway at ${client.origin}`, settings: body, json: Object(json) };
}

/**
 * Loads the settings of a configuration file.
 *
 * @throws a CommandError with all problems of the file
 */
export async function settingsOfFile(file: string, env: NodeJS.ProcessEnv): Promise<Shown> {
  const loaded = loadSettings({ file, env });
  if (loaded.kind === 'invalid') throw new CommandError(formatProblems(loaded.problems));
  const json = JSON.parse(await settingsText(loaded.settings));
  return { name: file, settings: settingsRead.parse(printableJson(json)), json };
}
