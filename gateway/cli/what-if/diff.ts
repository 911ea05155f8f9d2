import { comparable, diffSettings, isEmpty } from '../../admin/settings/diff-settings.ts';
import { editNotes } from '../../capabilities/lists/commands.ts';
import { restartNeeded } from '../../config/watch-settings.ts';
import { clientOf } from '../admin/find-gateway.ts';
import type { Asking } from '../command.ts';
import { print, printJson } from '../output/screen.ts';
import { screenNow } from '../output/show.ts';
import { diffLines } from './diff-view.ts';
import { settingsInForce, settingsOfFile } from './settings-shown.ts';

export interface DiffOptions extends Asking {
  readonly against?: string;
}

/** Prints what an edit changes, and which keys it would have affected. The exit code is 2 if the configurations differ. */
export async function diff(file: string, options: DiffOptions): Promise<void> {
  const { found, names, notes } = await compare(file, options);
  const differs = !isEmpty(found);
  const { before, after, lists, ...others } = found;
  if (options.json) printJson({ differs, before, after, ...lists, ...others });
  else if (differs) print(diffLines(found, notes, names, screenNow()));
  else print([`${names[1]} has the same settings as ${names[0]}.`]);
  if (differs) process.exitCode = 2;
}

/**
 * Compares a configuration file with another file, or with the settings of a gateway. When the command compares with a gateway, the gateway
 * also simulates the edited limits.
 */
async function compare(file: string, { against, ...options }: DiffOptions) {
  const after = await settingsOfFile(file, process.env);
  const client =
    against === undefined ? await clientOf({ ...options, config: options.config ?? file }) : undefined;
  const before = client ? await settingsInForce(client) : await settingsOfFile(against ?? '', process.env);
  const edit = {
    plans: { before: before.settings.plans, after: after.settings.plans },
    hasRedis: after.settings.redis !== undefined,
    nowMs: Date.now(),
    replayed: client && { before, after, client },
  };
  const notes = await Promise.all(editNotes.map(async (load) => (await load())(edit)));
  const found = {
    before: before.settings.version,
    after: after.settings.version,
    ...diffSettings(before.json, after.json),
    needsRestart: restartNeeded(comparable(before.json), comparable(after.json)),
    ...Object.assign({}, ...notes.map(({ members }) => members)),
  };
  return { found, names: [before.name, after.name] as const, notes: notes.flatMap((one) => one.notes) };
}
