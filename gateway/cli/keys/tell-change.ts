import * as z from 'zod';
import type { GatewayOptions } from '../admin/find-gateway.ts';
import { clientOf } from '../command.ts';
import { CommandError } from '../output/command-error.ts';
import type { KeyDefinition } from './writable-keys.ts';

/** A change of the keys file, as gateways record it. */
export interface ToldChange {
  readonly action: 'create' | 'secret' | 'rotate' | 'revoke' | 'restore' | 'import';
  /** Its id; absent where it is about many. */
  readonly key?: string;
  readonly before?: Readonly<Record<string, unknown>>;
  readonly after?: Readonly<Record<string, unknown>>;
}

/**
 * Tells a gateway what was changed in the keys file, so that its record of changes says who did what. Without a token nothing
 * is told: whoever has none does without gateways. The change itself is made, so a gateway that cannot be told is no failure.
 */
export async function tellChange(options: GatewayOptions, change: ToldChange): Promise<void> {
  const { TOLLGATE_ADMIN_TOKEN, TOLLGATE_ADMIN_TOKEN_FILE } = process.env;
  if (!TOLLGATE_ADMIN_TOKEN && !TOLLGATE_ADMIN_TOKEN_FILE) return;
  try {
    await clientOf(options).send({ method: 'POST', path: '/changes', body: change }, z.undefined());
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    console.error(`Done, but it is not in the record of changes: ${error.message}`);
  }
}

/** What of a new key is told. */
export function toldKey({ id: _, disabled: __, source: ___, secrets: [first], ...terms }: KeyDefinition) {
  return { ...terms, ...(first && toldSecret(first)) };
}

export function toldSecret({ digestStart, expiresAt }: KeyDefinition['secrets'][number]) {
  return { secret: digestStart, ...(expiresAt !== undefined && { expiresAt }) };
}
