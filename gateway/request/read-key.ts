import type { KeyDirectory } from '../keys/directory/key-directory.ts';
import { addressGroup } from '../shared/address-group.ts';
import { type Identity, type UnreadSecret, unknownSecret } from './authenticate/identify-key.ts';
import type { KnownKey, Snapshot } from './snapshot.ts';

/** A secret, and under which configuration it is looked at. */
export interface Presented {
  readonly snapshot: Pick<Snapshot, 'settings' | 'identifyKey'>;
  /** The field's raw value. */
  readonly authorization: string | undefined;
  /** The client's: a look-up takes of the share of its group. */
  readonly address: string;
}

export interface KeyReader {
  /** Absent: all keys are in the configuration. */
  readonly directory?: Pick<KeyDirectory, 'lookUp' | 'readAgain'> | undefined;
  /** The gateway's clock, epoch ms. */
  readonly nowMs: () => number;
}

/** Whose secret it is; `unread` when the directory gives no answer. */
export async function identify(presented: Presented, reader: KeyReader): Promise<Identity<KnownKey>> {
  const identity = presented.snapshot.identifyKey(presented.authorization, reader.nowMs());
  return identity.kind === 'unread' ? readKey(presented, identity, reader) : identity;
}

/**
 * Asks the directory for a secret that is not in the configuration; still `unread` when it gives no answer. What was read may
 * be forgotten before the caller is told, so the answer of its own look-up counts.
 */
export async function readKey(
  { snapshot, authorization, address }: Presented,
  unread: UnreadSecret,
  { directory, nowMs }: KeyReader,
): Promise<Identity<KnownKey>> {
  const read = await directory?.lookUp(unread.digest, addressGroup(address), snapshot.settings);
  if (read === 'absent') return unknownSecret(unread.digest);
  return typeof read === 'object' ? snapshot.identifyKey(authorization, nowMs(), read) : unread;
}
