import type { KeyDirectory } from '../keys/directory/key-directory.ts';
import { addressGroup } from '../shared/address-group.ts';
import { type Caller, type UnreadSecret, unknownSecret } from './authenticate/authenticate-key.ts';
import type { KnownKey, Snapshot } from './snapshot.ts';

/** A presented secret, and the configuration that applies to it. */
export interface Presented {
  readonly snapshot: Pick<Snapshot, 'settings' | 'authenticate'>;
  /** The raw value of the field. */
  readonly authorization: string | undefined;
  /** The client's address. A look-up in the directory counts towards the share of its group. */
  readonly address: string;
}

export interface KeyReader {
  /** Undefined when all keys are in the configuration. */
  readonly directory: Pick<KeyDirectory, 'lookUp' | 'readAgain'> | undefined;
  /** The gateway's clock, epoch ms. */
  readonly nowMs: () => number;
}

/** Finds the key of a secret, if necessary in the directory. Returns `unread` when the directory does not reply. */
export async function authenticateRequest(
  presented: Presented,
  reader: KeyReader,
): Promise<Caller<KnownKey>> {
  const caller = presented.snapshot.authenticate(presented.authorization, reader.nowMs());
  return caller.kind === 'unread' ? readKey(presented, caller, reader) : caller;
}

/**
 * Looks up a secret in the directory that is not in the configuration. Returns `unread` when the directory does not reply. The
 * cached key may be dropped before the look-up returns, so the reply to this look-up is used directly.
 */
export async function readKey(
  { snapshot, authorization, address }: Presented,
  unread: UnreadSecret,
  { directory, nowMs }: KeyReader,
): Promise<Caller<KnownKey>> {
  const read = await directory?.lookUp(unread.digest, addressGroup(address), snapshot.settings);
  if (read === 'absent') return unknownSecret(unread.digest);
  return typeof read === 'object' ? snapshot.authenticate(authorization, nowMs(), read) : unread;
}
