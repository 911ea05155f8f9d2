import { hash } from 'node:crypto';
import type { Key, Secret, Settings } from '../model.ts';
import { withoutOptionalWhitespace } from '../optional-whitespace.ts';
import { digestStart } from '../secrets.ts';

/** Who calls, by the bearer secret. `Known` is the key with what the snapshot knows of it. */
export type Identity<Known> =
  | { readonly kind: 'identified'; readonly key: Known }
  | { readonly kind: 'refused'; readonly code: 'missing_key' }
  | { readonly kind: 'refused'; readonly code: 'invalid_key'; readonly presented: InvalidSecret };

/** A secret that a key was found by. */
export interface ValidSecret {
  /** It is valid before this instant; Infinity when it never expires. */
  readonly expiresMs: number;
  /** The first digits of its digest, for the log. */
  readonly digestStart: string;
}

/** A secret that no key is found by. For the log: the client is told the same in all three cases. */
export interface InvalidSecret {
  /** Unknown: in no entry of the keys. Expired: this secret of the key. Disabled: the whole key, expired or not. */
  readonly status: 'unknown' | 'expired' | 'disabled';
  readonly digestStart: string;
  /** Undefined when the secret is unknown. */
  readonly keyId?: string;
}

/**
 * @param authorization the field's raw value; another scheme than Bearer counts as no key sent (RFC 6750 §3.1)
 * @param nowMs epoch ms
 */
export type IdentifyKey<Known> = (authorization: string | undefined, nowMs: number) => Identity<Known>;

const missing = { kind: 'refused', code: 'missing_key' } as const;

/** What is remembered of a secret that was presented. */
interface Remembered<Known> {
  readonly expiresMs: number;
  readonly beforeExpiry: Identity<Known>;
  readonly afterExpiry: Identity<Known>;
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
 * @param know adds to a key what depends on it and on the secret that was presented; called once for each secret
 */
export function createIdentifyKey<Known>(
  { secrets, keys }: Pick<Settings, 'secrets' | 'keys'>,
  know: (key: Key, secret: ValidSecret) => Known,
): IdentifyKey<Known> {
  const remembered = new Map<string, Remembered<Known>>();

  function identify(presented: string, nowMs: number): Identity<Known> {
    const before = remembered.get(presented);
    if (before !== undefined) return identityAt(before, nowMs);
    // Node decodes fields as Latin-1; the digest is of the bytes that were sent.
    const bytes = Buffer.from(presented, 'latin1');
    const digest = hash('sha256', bytes, 'hex');
    const secret = secrets.get(digest);
    if (secret === undefined) return invalid({ status: 'unknown', digestStart: digestStart(digest) });
    const found = rememberedOf(secret, digestStart(digest));
    // A copy: V8 keeps the whole field in memory for a part of it, and the field may have been padded.
    remembered.set(bytes.toString('latin1'), found);
    return identityAt(found, nowMs);
  }

  function rememberedOf({ keyId, expiresMs }: Secret, digestStart: string): Remembered<Known> {
    const key = keys.get(keyId);
    if (key === undefined || key.disabled) {
      const disabled = invalid({ status: 'disabled', digestStart, keyId });
      return { expiresMs, beforeExpiry: disabled, afterExpiry: disabled };
    }
    return {
      expiresMs,
      beforeExpiry: { kind: 'identified', key: know(key, { expiresMs, digestStart }) },
      afterExpiry: invalid({ status: 'expired', digestStart, keyId }),
    };
  }

  return (authorization, nowMs) => {
    const presented = authorization === undefined ? undefined : bearerSecret(authorization);
    return presented === undefined ? missing : identify(presented, nowMs);
  };
}

function identityAt<Known>(found: Remembered<Known>, nowMs: number): Identity<Known> {
  return found.expiresMs <= nowMs ? found.afterExpiry : found.beforeExpiry;
}

function invalid(presented: InvalidSecret) {
  return { kind: 'refused', code: 'invalid_key', presented } as const;
}

const bearer = 'bearer ';

/** The credentials of a `Bearer` field; the scheme is case-insensitive and one or more spaces follow it (RFC 9110 §11.4). */
function bearerSecret(authorization: string): string | undefined {
  if (authorization.slice(0, bearer.length).toLowerCase() !== bearer) return undefined;
  const secret = withoutOptionalWhitespace(authorization.slice(bearer.length));
  return secret === '' ? undefined : secret;
}
