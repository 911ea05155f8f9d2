import type * as z from 'zod';
import { settingsText } from '../../admin/settings/settings-view.ts';
import { getSettingsWire, settingsShown } from '../../admin/wires/settings.ts';
import { loadSettings } from '../../config/load-settings.ts';
import { formatProblems } from '../../config/problems/format-problems.ts';
import { readingOnly } from '../../shared/http/wire.ts';
import type { BanPolicy } from '../../shared/model.ts';
import { printableJson } from '../../shared/terminal/printable.ts';
import type { AdminClient } from '../admin/admin-client.ts';
import { CommandError } from '../output/command-error.ts';

/** Fields of the `/settings` response that commands read. The comparison uses the whole response. */
const settingsRead = settingsShown.pick({
  version: true,
  plans: true,
  keys: true,
  redis: true,
});

export interface Shown {
  /** The name of the file or gateway, for messages. */
  readonly name: string;
  readonly settings: z.output<typeof settingsRead>;
  /** The unchanged response. */
  readonly json: Readonly<Record<string, unknown>>;
}

/** The settings of a file, with the rules for bans in the form that a simulation needs. */
export interface ShownFile extends Shown {
  readonly bans: BanPolicy;
}

/**
 * Reads the settings of a gateway.
 *
 * @throws a CommandError
 */
export async function settingsInForce(client: Pick<AdminClient, 'ask' | 'origin'>): Promise<Shown> {
  const { body, json } = await client.ask(readingOnly(getSettingsWire, settingsRead));
  const settings = Object(json);
  if (settings.baseUrl === undefined) {
    throw new CommandError(
      `The gateway at ${client.origin} has an earlier version, which shows its settings in another form. Update the gateway first, or compare two files: tollgate diff EDITED --against PRESENT.`,
    );
  }
  return { name: `the gateway at ${client.origin}`, settings: body, json: settings };
}

/**
 * Loads the settings of a configuration file.
 *
 * @throws a CommandError with all problems of the file
 */
export async function settingsOfFile(file: string, env: NodeJS.ProcessEnv): Promise<ShownFile> {
  const loaded = loadSettings({ file, env });
  if (loaded.kind === 'invalid') throw new CommandError(formatProblems(loaded.problems));
  const json = JSON.parse(await settingsText(loaded.settings));
  const { bans } = loaded.settings;
  return { name: file, settings: settingsRead.parse(printableJson(json)), json, bans };
}
