import type { KeyDirectory } from '../../keys/directory/key-directory.ts';
import { addressGroup } from '../../shared/addresses/address-group.ts';
import {
  type Caller,
  type PresentedSecret,
  type UnreadSecret,
  unknownSecret,
} from '../authenticate/authenticate-key.ts';
import type { KnownKey, Snapshot } from '../snapshot.ts';

/** The secret that a request presents, and the configuration of that request. */
export interface Presented extends PresentedSecret {
  readonly snapshot: Pick<Snapshot, 'settings' | 'authenticate'>;
}

export interface KeyReader {
  /** The key directory; undefined when all keys are in the configuration. */
  readonly directory: Pick<KeyDirectory, 'lookUp' | 'readAgain'> | undefined;
  /** The gateway's clock, epoch ms. */
  readonly nowMs: () => number;
}

/** Finds the key of a secret, in the configuration or the key directory. Returns `unread` when the directory does not reply. */
export async function authenticateRequest(
  presented: Presented,
  reader: KeyReader,
): Promise<Caller<KnownKey>> {
  const caller = presented.snapshot.authenticate(presented, reader.nowMs());
  return caller.kind === 'unread' ? readKey(presented, caller, reader) : caller;
}

/**
 * Looks up a secret in the key directory. Returns `unread` when the directory does not reply. The reply is used directly, because the
 * directory's cache may drop the key before this function continues.
 */
export async function readKey(
  presented: Presented,
  unread: UnreadSecret,
  { directory, nowMs }: KeyReader,
): Promise<Caller<KnownKey>> {
  const { snapshot, address } = presented;
  const read = await directory?.lookUp(unread.digest, addressGroup(address), snapshot.settings);
  if (read === 'absent') return unknownSecret(unread.digest);
  return typeof read === 'object' ? snapshot.authenticate(presented, nowMs(), read) : unread;
}
