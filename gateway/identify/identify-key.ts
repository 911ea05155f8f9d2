import { hash } from 'node:crypto';
import type { Key, Secret, Settings } from '../model.ts';
import { withoutOptionalWhitespace } from '../optional-whitespace.ts';

/** Who calls, by the bearer secret. */
export type Identity =
  | { readonly kind: 'identified'; readonly key: Key }
  | { readonly kind: 'refused'; readonly code: 'missing_key' | 'invalid_key' };

/**
 * @param authorization the field's raw value; another scheme than Bearer counts as no key sent (RFC 6750 §3.1)
 * @param nowMs epoch ms
 */
export type IdentifyKey = (authorization: string | undefined, nowMs: number) => Identity;

const missing: Identity = { kind: 'refused', code: 'missing_key' };
const invalid: Identity = { kind: 'refused', code: 'invalid_key' };

/**
 * Finds the key whose secret an `Authorization` field presents. Only digests are compared, so that neither the
 * configuration nor a timing tells a secret. Unknown, expired and disabled are one answer: a guesser learns nothing.
 *
 * Secrets of ours are remembered once they were presented, which saves their digest the next time. So there are never
 * more of them than are configured, and a new configuration begins without any.
 */
export function createIdentifyKey({ secrets, keys }: Pick<Settings, 'secrets' | 'keys'>): IdentifyKey {
  const remembered = new Map<string, Secret>();

  function findSecret(presented: string): Secret | undefined {
    const known = remembered.get(presented);
    if (known !== undefined) return known;
    // Node reads fields as Latin-1; the digest is one of the bytes that were sent.
    const bytes = Buffer.from(presented, 'latin1');
    const secret = secrets.get(hash('sha256', bytes, 'hex'));
    // A copy: a part of a string keeps the whole of it, which may have been padded.
    if (secret !== undefined) remembered.set(bytes.toString('latin1'), secret);
    return secret;
  }

  return (authorization, nowMs) => {
    const presented = authorization === undefined ? undefined : bearerSecret(authorization);
    if (presented === undefined) return missing;
    const secret = findSecret(presented);
    if (secret === undefined || secret.expiresMs <= nowMs) return invalid;
    const key = keys.get(secret.keyId);
    if (key === undefined || key.disabled) return invalid;
    return { kind: 'identified', key };
  };
}

const bearer = 'bearer ';

/** The credentials of a `Bearer` field; the scheme is case-insensitive and one or more spaces follow it (RFC 9110 §11.4). */
function bearerSecret(authorization: string): string | undefined {
  if (authorization.slice(0, bearer.length).toLowerCase() !== bearer) return undefined;
  const secret = withoutOptionalWhitespace(authorization.slice(bearer.length));
  return secret === '' ? undefined : secret;
}
