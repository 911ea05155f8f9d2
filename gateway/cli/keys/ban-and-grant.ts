import type * as z from 'zod';
import {
  banKeyWire,
  grantKeyWire,
  unbanKeyWire,
  ungrantKeyWire,
  type whatHolds,
} from '../../admin/wires/keys/bans-and-grants.ts';
import { manyWords } from '../../admin/words/many-keys.js';
import { type LimitsByField, limitFieldNames } from '../../keys/limits/limit-fields.ts';
import { exemptionMembers, exemptions } from '../../shared/schema/exemptions.ts';
import { ending } from '../../shared/words/figures.js';
import type { AdminClient } from '../admin/admin-client.ts';
import { clientOf } from '../admin/find-gateway.ts';
import { grantText } from '../admin/keys-view.ts';
import { grantPeriod } from '../admin/period.ts';
import { changeKey, readWhy } from '../admin/read/read-key.ts';
import { CommandError } from '../output/command-error.ts';
import { clock } from '../output/figures.ts';
import { print, printJson } from '../output/screen.ts';
import { limitOption, limitsOf } from './limit-options.ts';
import { changeMany, type ManyChange } from './many/change-many.ts';
import { foreseeBan, foreseeGrant, foreseeUnban, foreseeUngrant } from './many/foresee.ts';
import { onlyKey, type SelectionOptions, selectKeys } from './many/select-keys.ts';
import { banTerms, grantTerms } from './many/terms.ts';

export interface GrantOptions extends SelectionOptions, LimitsByField {
  readonly group?: string;
  readonly from?: string;
  readonly until: string;
  /** The names of the exemptions. */
  readonly exempt: readonly string[];
}

export interface BanOptions extends SelectionOptions {
  readonly for?: string;
  readonly until?: string;
  readonly reason?: string;
}

export async function banKeys(
  id: string | undefined,
  { for: length, until, reason, ...options }: BanOptions,
): Promise<void> {
  const end = length === undefined ? until : `+${length}`;
  if (end === undefined) throw new CommandError('How long? Give --for, such as --for 2h, or --until.');
  const { untilAt } = grantPeriod({ until: end }, Date.now());
  const body = { untilAt, reason };
  await change(id, options, {
    words: manyWords.ban,
    terms: banTerms(body),
    foresee: foreseeBan(body),
    wire: banKeyWire,
    body,
    textOf: banText,
  });
}

export async function unbanKeys(id: string | undefined, options: SelectionOptions): Promise<void> {
  await change(id, options, {
    words: manyWords.unban,
    foresee: foreseeUnban,
    wire: unbanKeyWire,
    textOf: banText,
  });
}

export async function grantKeys(id: string | undefined, { exempt, ...options }: GrantOptions): Promise<void> {
  const stated = limitsOf(options);
  const { group } = options;
  const limits = group === undefined ? stated : stated && { groups: { [group]: stated } };
  const all = limitFieldNames.map(limitOption).join(', ');
  if (group !== undefined && limits === undefined) {
    throw new CommandError(`Which limits of the group ${group}? Give at least one of ${all}.`);
  }
  if (limits === undefined && exempt.length === 0) {
    const orExempt = exemptions.map(({ option }) => `, or ${option}`).join('');
    throw new CommandError(`Which limits? Give at least one of ${all}${orExempt}.`);
  }
  const body = { limits, ...exemptionMembers({ exemptions: exempt }), ...grantPeriod(options, Date.now()) };
  await change(id, options, {
    words: manyWords.grant,
    terms: grantTerms(body),
    foresee: foreseeGrant(body),
    wire: grantKeyWire,
    body,
    textOf: grantHeldText,
  });
}

export async function ungrantKeys(id: string | undefined, options: SelectionOptions): Promise<void> {
  await change(id, options, {
    words: manyWords.ungrant,
    foresee: foreseeUngrant,
    wire: ungrantKeyWire,
    textOf: grantHeldText,
  });
}

interface Change extends Pick<ManyChange, 'words' | 'terms' | 'foresee'> {
  readonly wire: typeof banKeyWire | typeof unbanKeyWire | typeof grantKeyWire | typeof ungrantKeyWire;
  readonly body?: object;
  /** The text for one key. */
  readonly textOf: (held: NowHeld, nowMs: number) => string;
}

type NowHeld = z.output<typeof whatHolds>;

async function change(
  argument: string | undefined,
  options: SelectionOptions,
  { wire, body: sent, textOf, ...many }: Change,
): Promise<void> {
  const ask = (client: AdminClient, id: string) =>
    changeKey(id, () => client.ask(wire, { params: { id }, body: sent }));
  const only = onlyKey(argument, options);
  if (only === undefined) {
    return changeMany(
      await selectKeys(argument, options),
      {
        ...many,
        async ask(client, id) {
          const { body } = await ask(client, id);
          return { isChanged: !body.isUnchanged && body.wasBanned !== false };
        },
      },
      options,
    );
  }
  const client = await clientOf(options);
  const { json, body } = await ask(client, only);
  if (options.json) return printJson(json);
  print([textOf(body, Date.now())]);
  try {
    // A limit may still refuse the key's requests. For example, the key may have no requests left for the day when its ban ends.
    print([(await readWhy(client, only)).body.why.sentence]);
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    print([`The present responses of the key cannot be explained: ${error.message}`]);
  }
}

function banText({ id, ban, wasBanned }: NowHeld, nowMs: number): string {
  if (ban) {
    return ban.byHand
      ? `${id} is banned until ${ending(ban.untilMs)}.`
      : `${id} is banned again, until ${clock(ban.untilMs, nowMs)} UTC.`;
  }
  return wasBanned === false ? `${id} was not banned.` : `${id} is no longer banned.`;
}

function grantHeldText({ id, grant }: NowHeld, nowMs: number): string {
  if (grant === undefined) return `${id} has no grant.`;
  return `${id} ${grant.fromMs === undefined ? 'has' : 'will have'} a grant: ${grantText(grant, nowMs)}.`;
}
