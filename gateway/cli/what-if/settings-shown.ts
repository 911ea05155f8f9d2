import * as z from 'zod';
import { settingsText } from '../../admin/settings/settings-view.ts';
import { loadSettings } from '../../config/load-settings.ts';
import { formatProblems } from '../../config/problems/format-problems.ts';
import { type Limits, planWindows } from '../../shared/model.ts';
import { printableJson } from '../../shared/terminal/printable.ts';
import type { AdminClient } from '../admin/admin-client.ts';
import { CommandError } from '../output/command-error.ts';

const windows = z
  .array(z.object({ name: z.enum(planWindows), limit: z.number() }))
  .transform((all): Limits => all.map(({ name, limit }) => ({ window: name, max: limit })));

const listener = z.looseObject({ host: z.string(), port: z.number(), tls: z.unknown().optional() });

/** Members of the `/settings` response that commands read. The comparison uses the whole response. */
const settingsShown = z.looseObject({
  version: z.string(),
  environment: z.string(),
  plans: z.array(z.looseObject({ name: z.string(), isCustom: z.boolean(), windows })),
  keys: z.array(z.looseObject({ id: z.string(), plan: z.string(), windows, disabled: z.boolean() })),
  bans: z.object({ after: z.number(), withinMs: z.number(), forMs: z.number(), maxMs: z.number() }),
  workers: z.unknown().optional(),
  listen: listener,
  admin: listener,
  redis: z.unknown().optional(),
  usage: z.unknown().optional(),
  directory: z.unknown().optional(),
});

export interface Shown {
  /** The file or gateway, for people. */
  readonly name: string;
  readonly settings: z.output<typeof settingsShown>;
  /** The unchanged response. */
  readonly json: Readonly<Record<string, unknown>>;
}

/** Reads the settings of a gateway. @throws a CommandError */
export async function settingsInForce(client: Pick<AdminClient, 'get' | 'origin'>): Promise<Shown> {
  const { body, json } = await client.get('/settings', {}, settingsShown);
  return { name: `the gateway at ${client.origin}`, settings: body, json: Object(json) };
}

/** Loads the settings of a configuration file. @throws a CommandError with all its problems */
export async function settingsOfFile(file: string, env: NodeJS.ProcessEnv): Promise<Shown> {
  const loaded = loadSettings({ file, env });
  if (loaded.kind === 'invalid') throw new CommandError(formatProblems(loaded.problems));
  const json = JSON.parse(await settingsText(loaded.settings));
  return { name: file, settings: settingsShown.parse(printableJson(json)), json };
}
