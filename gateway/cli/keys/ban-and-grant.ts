import * as z from 'zod';
import type { LimitsByField } from '../../keys/limit-fields.ts';
import type { AdminClient, Reply } from '../admin/admin-client.ts';
import { keyItem } from '../admin/api-shapes.ts';
import { grantText } from '../admin/keys-view.ts';
import { changeKey, readKey } from '../admin/read-api.ts';
import { CommandError } from '../output/command-error.ts';
import { clock } from '../output/figures.ts';

/** What holds for a key after its ban or its grant was changed. */
const nowHeld = keyItem
  .pick({ id: true, ban: true, grant: true })
  .extend({ wasBanned: z.boolean().optional() });

export type NowHeld = z.output<typeof nowHeld>;

export function unbanKey(client: AdminClient, id: string): Promise<Reply<NowHeld>> {
  return changeKey(id, (path) => client.send({ method: 'POST', path: `${path}/unban` }, nowHeld));
}

export interface GrantOf {
  readonly limits: LimitsByField;
  readonly fromAt?: string | undefined;
  readonly untilAt: string;
}

export function grantKey(client: AdminClient, id: string, body: GrantOf): Promise<Reply<NowHeld>> {
  return changeKey(id, (path) => client.send({ method: 'POST', path: `${path}/grant`, body }, nowHeld));
}

export function ungrantKey(client: AdminClient, id: string): Promise<Reply<NowHeld>> {
  return changeKey(id, (path) => client.send({ method: 'DELETE', path: `${path}/grant` }, nowHeld));
}

export function heldText(
  { id, ban, grant, wasBanned }: NowHeld,
  what: 'ban' | 'grant',
  nowMs: number,
): string {
  if (what === 'grant') {
    if (grant === undefined) return `${id} has no grant.`;
    return `${id} ${grant.fromMs === undefined ? 'has' : 'will have'} a grant: ${grantText(grant, nowMs)}.`;
  }
  if (ban) return `${id} is banned again, until ${clock(ban.untilMs, nowMs)} UTC.`;
  return wasBanned === false ? `${id} was not banned.` : `${id} is no longer banned.`;
}

/** Why the key gets now what it gets: a window may refuse what no ban refuses any more. What was done is done in any case. */
export async function whyNow(client: AdminClient, id: string): Promise<string> {
  try {
    return (await readKey(client, id)).body.why.sentence;
  } catch (error) {
    if (error instanceof CommandError) return `What it gets now is not known: ${error.message}`;
    throw error;
  }
}
