import type { Leak } from '../../shared/model.ts';
import { digestStart } from '../../shared/secrets.ts';
import { type DirectoryKey, type DirectorySecret, expiryOf } from '../directory/directory-key.ts';
import { descendantsOf } from '../directory/lineage.ts';

type Secrets = Pick<DirectoryKey, 'secrets' | 'pastSecrets'>;

/**
 * Stores a leak with a secret. If it ends the secret, all descendants end too, because a thief may have issued them. A descendant that was
 * found itself keeps its own leak.
 */
export function endLine<Key extends Secrets>(key: Key, digest: string, leak: Leak): Key {
  const descendants = leak.ended ? descendantsOf(digest, allOf(key)) : new Set();
  const inherited: Leak = { ...leak, ancestor: digestStart(digest) };
  const secrets = key.secrets.map((secret) => {
    if (secret.digest === digest) return withLeak(secret, leak);
    return descendants.has(secret.digest) && !secret.leak?.ended ? withLeak(secret, inherited) : secret;
  });
  if (key.pastSecrets === undefined) return { ...key, secrets };
  const pastSecrets = key.pastSecrets.map((past) => (past.digest === digest ? { ...past, leak } : past));
  return { ...key, secrets, pastSecrets };
}

/** Undefined if the key neither has nor had the secret. */
export function lineOf(key: Secrets, digest: string) {
  const all = allOf(key);
  const reported = all.find((one) => one.digest === digest);
  if (reported === undefined) return undefined;
  const below = descendantsOf(digest, all);
  const descendants = key.secrets.filter((secret) => below.has(secret.digest));
  return {
    /** A leak of an ancestor does not count. */
    leak: reported.leak?.ancestor === undefined ? reported.leak : undefined,
    hasEnded: descendants.every((secret) => secret.leak?.ended),
    /** The first digits of the digests that the key still has. */
    descendants: descendants.map((secret) => digestStart(secret.digest)),
  };
}

function allOf({ secrets, pastSecrets = [] }: Secrets) {
  return [...secrets, ...pastSecrets];
}

/** The expiry is for earlier versions of the gateway. */
function withLeak(secret: DirectorySecret, leak: Leak): DirectorySecret {
  return leak.ended
    ? { ...secret, leak, expiresMs: Math.min(expiryOf(secret), leak.atMs) }
    : { ...secret, leak };
}
