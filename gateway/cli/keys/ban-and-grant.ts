import type * as z from 'zod';
import {
  banKeyWire,
  grantKeyWire,
  unbanKeyWire,
  ungrantKeyWire,
  type whatHolds,
} from '../../admin/wires/keys/bans-and-grants.ts';
import { type LimitsByField, limitFieldNames } from '../../keys/limits/limit-fields.ts';
import { exemptionMembers, exemptions } from '../../shared/schema/exemptions.ts';
import { clientOf } from '../admin/find-gateway.ts';
import { grantText } from '../admin/keys-view.ts';
import { grantPeriod } from '../admin/period.ts';
import { changeKey, readWhy } from '../admin/read/read-key.ts';
import type { Asking } from '../command.ts';
import { CommandError } from '../output/command-error.ts';
import { clock } from '../output/figures.ts';
import { print, printJson } from '../output/screen.ts';
import { limitOption, limitsOf } from './limit-options.ts';

export interface GrantOptions extends Asking, LimitsByField {
  readonly group?: string;
  readonly from?: string;
  readonly until: string;
  /** The names of the exemptions. */
  readonly exempt: readonly string[];
}

export interface BanOptions extends Asking {
  readonly for?: string;
  readonly until?: string;
  readonly reason?: string;
}

export async function banKey(
  id: string,
  { for: length, until, reason, ...options }: BanOptions,
): Promise<void> {
  const end = length === undefined ? until : `+${length}`;
  if (end === undefined) throw new CommandError('How long? Give --for, such as --for 2h, or --until.');
  const { untilAt } = grantPeriod({ until: end }, Date.now());
  await change(id, options, { wire: banKeyWire, body: { untilAt, reason } }, banText);
}

export async function unbanKey(id: string, options: Asking): Promise<void> {
  await change(id, options, { wire: unbanKeyWire }, banText);
}

export async function grantKey(id: string, { exempt, ...options }: GrantOptions): Promise<void> {
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
  await change(id, options, { wire: grantKeyWire, body }, grantHeldText);
}

export async function ungrantKey(id: string, options: Asking): Promise<void> {
  await change(id, options, { wire: ungrantKeyWire }, grantHeldText);
}

interface Change {
  readonly wire: typeof banKeyWire | typeof unbanKeyWire | typeof grantKeyWire | typeof ungrantKeyWire;
  readonly body?: object;
}

type NowHeld = z.output<typeof whatHolds>;

async function change(
  id: string,
  options: Asking,
  { wire, body: sent }: Change,
  textOf: (held: NowHeld, nowMs: number) => string,
): Promise<void> {
  const client = await clientOf(options);
  const { json, body } = await changeKey(id, () => client.ask(wire, { params: { id }, body: sent }));
  if (options.json) return printJson(json);
  print([textOf(body, Date.now())]);
  try {
    // A limit may still refuse the key's requests. For example, the key may have no requests left for the day when its ban ends.
    print([(await readWhy(client, id)).body.why.sentence]);
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    print([`The present responses of the key cannot be explained: ${error.message}`]);
  }
}

function banText({ id, ban, wasBanned }: NowHeld, nowMs: number): string {
  if (ban) {
    const again = ban.byHand ? '' : ' again,';
    return `${id} is banned${again} until ${clock(ban.untilMs, nowMs)} UTC.`;
  }
  return wasBanned === false ? `${id} was not banned.` : `${id} is no longer banned.`;
}

function grantHeldText({ id, grant }: NowHeld, nowMs: number): string {
  if (grant === undefined) return `${id} has no grant.`;
  return `${id} ${grant.fromMs === undefined ? 'has' : 'will have'} a grant: ${grantText(grant, nowMs)}.`;
}
