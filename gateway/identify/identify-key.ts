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
 * configuration nor the time of a comparison gives a secret away. Unknown, expired and disabled secrets are refused alike:
 * somebody who guesses learns nothing.
 *
 * A valid secret is remembered when it is first presented, which saves its digest the next time. No more secrets are
 * remembered than are configured, and a new configuration begins without any.
 */
export function createIdentifyKey({ secrets, keys }: Pick<Settings, 'secrets' | 'keys'>): IdentifyKey {
  const remembered = new Map<string, Secret>();

  function findSecret(presented: string): Secret | undefined {
    const known = remembered.get(presented);
    if (known !== undefined) return known;
    // Node decodes fields as Latin-1; the digest is of the bytes that were sent.
    const bytes = Buffer.from(presented, 'latin1');
    const secret = secrets.get(hash('sha256', bytes, 'hex'));
    // A copy: V8 keeps the whole field in memory for a part of it, and the field may be padded.
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
