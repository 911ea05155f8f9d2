import { hash } from 'node:crypto';
import type { Key, Secret, Settings } from '../model.ts';
import { withoutOptionalWhitespace } from '../optional-whitespace.ts';

/** Who calls, by the bearer secret. `Known` is the key with what the snapshot knows of it. */
export type Identity<Known> =
  | { readonly kind: 'identified'; readonly key: Known }
  | { readonly kind: 'refused'; readonly code: 'missing_key' | 'invalid_key' };

/**
 * @param authorization the field's raw value; another scheme than Bearer counts as no key sent (RFC 6750 §3.1)
 * @param nowMs epoch ms
 */
export type IdentifyKey<Known> = (authorization: string | undefined, nowMs: number) => Identity<Known>;

const missing = { kind: 'refused', code: 'missing_key' } as const;
const invalid = { kind: 'refused', code: 'invalid_key' } as const;

/** What is remembered of a secret that was presented. */
interface Remembered<Known> {
  readonly expiresMs: number;
  /** Before it expires. */
  readonly identity: Identity<Known>;
}

/**
 * Finds the key whose secret an `Authorization` field presents. Only digests are compared, so that neither the
 * configuration nor the time of a comparison gives a secret away. Unknown, expired and disabled secrets are refused alike:
 * somebody who guesses learns nothing.
 *
 * A configured secret is remembered when it is first presented, which saves its digest the next time, together with what
 * its key needs for every request. No more secrets are remembered than are configured, and a new configuration begins
 * without any.
 *
 * @param know adds to a key what depends on it alone
 */
export function createIdentifyKey<Known>(
  { secrets, keys }: Pick<Settings, 'secrets' | 'keys'>,
  know: (key: Key) => Known,
): IdentifyKey<Known> {
  const remembered = new Map<string, Remembered<Known>>();

  function findSecret(presented: string): Remembered<Known> | undefined {
    const before = remembered.get(presented);
    if (before !== undefined) return before;
    // Node decodes fields as Latin-1; the digest is of the bytes that were sent.
    const bytes = Buffer.from(presented, 'latin1');
    const secret = secrets.get(hash('sha256', bytes, 'hex'));
    if (secret === undefined) return undefined;
    const found = { expiresMs: secret.expiresMs, identity: identityOf(secret) };
    // A copy: V8 keeps the whole field in memory for a part of it, and the field may have been padded.
    remembered.set(bytes.toString('latin1'), found);
    return found;
  }

  function identityOf({ keyId }: Secret): Identity<Known> {
    const key = keys.get(keyId);
    return key === undefined || key.disabled ? invalid : { kind: 'identified', key: know(key) };
  }

  return (authorization, nowMs) => {
    const presented = authorization === undefined ? undefined : bearerSecret(authorization);
    if (presented === undefined) return missing;
    const found = findSecret(presented);
    return found === undefined || found.expiresMs <= nowMs ? invalid : found.identity;
  };
}

const bearer = 'bearer ';

/** The credentials of a `Bearer` field; the scheme is case-insensitive and one or more spaces follow it (RFC 9110 §11.4). */
function bearerSecret(authorization: string): string | undefined {
  if (authorization.slice(0, bearer.length).toLowerCase() !== bearer) return undefined;
  const secret = withoutOptionalWhitespace(authorization.slice(bearer.length));
  return secret === '' ? undefined : secret;
}
