import { reportChangeWire } from '../../admin/wires/changes.ts';
import { clientOf, hasToken } from '../admin/find-gateway.ts';
import type { GatewayOptions } from '../command.ts';
import { CommandError } from '../output/command-error.ts';
import type { ChangedKey, KeyDefinition } from './file/writable-keys.ts';

/** A change of the keys file, in the form in which gateways record it. */
export interface ToldChange {
  readonly action: 'create' | 'secret' | 'rotate' | 'revoke' | 'restore' | 'update' | 'import';
  /** Absent for a change of many keys. */
  readonly key?: string;
  readonly before?: Readonly<Record<string, unknown>>;
  readonly after?: Readonly<Record<string, unknown>>;
}

/**
 * Reports a change of the keys file to a gateway, so that the record of changes contains the name of the token. Changes of the key
 * directory need no report, because the gateway itself records them. Without a token, the function does nothing. The file is already
 * changed, so the command does not fail if no gateway can be reached.
 */
export async function tellChange(
  options: GatewayOptions,
  change: ToldChange,
  changed?: ChangedKey,
): Promise<void> {
  if (changed === undefined || changed.key.source === 'file') await tellChanges(options, [change]);
}

/** As `tellChange`, for many changes of the keys file. */
export async function tellChanges(options: GatewayOptions, changes: readonly ToldChange[]): Promise<void> {
  if (!hasToken(process.env) || changes.length === 0) return;
  await saidIfUnrecorded(async () => {
    const client = await clientOf(options);
    const wire = reportChangeWire(client.bounds);
    for (const body of changes) await saidIfUnrecorded(() => client.ask(wire, { body }));
  });
}

async function saidIfUnrecorded(tell: () => Promise<unknown>): Promise<void> {
  try {
    await tell();
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    console.error(`The change was made, but it is not in the record of changes: ${error.message}`);
  }
}

/** The plan, limits and other members of a new key, for the record of changes. */
export function toldKey({ id: _, disabled: __, source: ___, secrets: [first], ...terms }: KeyDefinition) {
  return { ...terms, ...(first && toldSecret(first)) };
}

export function toldSecret({ digestStart, expiresAt }: KeyDefinition['secrets'][number]) {
  return { secret: digestStart, expiresAt };
}
