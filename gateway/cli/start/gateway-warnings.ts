import * as z from 'zod';
import { settingsMembers } from '../../admin/settings/settings-view.ts';
import { getStateWire } from '../../admin/wires/fleet/fleet.ts';
import { listPlansWire, planShown } from '../../admin/wires/plans/plans.ts';
import { editNotes } from '../../capabilities/lists/commands.ts';
import { readingOnly } from '../../shared/http/wire.ts';
import type { Settings } from '../../shared/model.ts';
import { printable } from '../../shared/terminal/printable.ts';
import type { AdminClient } from '../admin/admin-client.ts';
import { CommandError } from '../output/command-error.ts';
import { leakedWarnings } from './leaked-warnings.ts';

type Client = Pick<AdminClient, 'ask'>;

/**
 * Asks a gateway about a configuration file: which of its secrets have leaked, and what capabilities say
 * about its plans.
 *
 * @returns one sentence for each of these secrets and plans, and a sentence with the reason if the gateway could not be asked
 */
export async function gatewayWarnings(
  { settings, file, nowMs }: { readonly settings: Settings; readonly file: string; readonly nowMs: number },
  clientOf: () => Promise<Client>,
): Promise<readonly string[]> {
  const answers = await Promise.allSettled([
    (async () => leakedWarnings(settings, await clientOf()))(),
    (async () => editWarnings({ settings, file, nowMs }, await clientOf()))(),
  ]);
  const warnings = answers.map((answer) =>
    answer.status === 'fulfilled' ? answer.value : reasonOf(answer.reason),
  );
  // Both questions usually fail for the same reason.
  return [...new Set(warnings.flat())];
}

function reasonOf(error: unknown): readonly string[] {
  if (!(error instanceof CommandError)) throw error;
  const text = `no gateway could be asked whether a secret has leaked, or whether a plan becomes smaller. ${error.message}`;
  return [printable(text)];
}

const plansNow = z.object({ plans: z.array(planShown) });
const stateNow = z.object({ environment: z.string() });

/** A gateway of another environment has other plans, so the comparison with this gateway is left out. */
async function editWarnings(
  { settings, file, nowMs }: { readonly settings: Settings; readonly file: string; readonly nowMs: number },
  client: Client,
): Promise<readonly string[]> {
  const [{ body: state }, { body: present }] = await Promise.all([
    client.ask(readingOnly(getStateWire, stateNow)),
    client.ask(readingOnly(listPlansWire, plansNow)),
  ]);
  if (state.environment !== settings.environment) return [];
  const plans = { before: present.plans, after: settingsMembers(settings).plans };
  const edit = { plans, hasRedis: settings.redis !== undefined, nowMs };
  const notes = await Promise.all(editNotes.map(async (load) => (await (await load())(edit)).notes));
  return notes.flat().flatMap(({ warning }) => (warning === undefined ? [] : [printable(warning(file))]));
}
