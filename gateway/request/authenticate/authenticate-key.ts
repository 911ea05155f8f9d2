import { hash } from 'node:crypto';
import type { FoundKey, Key, Period, ReadSecret, Settings } from '../../shared/model.ts';
import { withoutOptionalWhitespace } from '../../shared/optional-whitespace.ts';
import { digestStart } from '../../shared/secrets.ts';

/** Who calls, by the bearer secret. `Known` is the key with what the snapshot adds to it. */
export type Caller<Known> =
  | { readonly kind: 'authenticated'; readonly key: Known }
  | { readonly kind: 'refused'; readonly code: 'missing_key' }
  | { readonly kind: 'refused'; readonly code: 'invalid_key'; readonly presented: InvalidSecret }
  | UnreadSecret;

/** It is not in the configuration, and the directory must be asked for it. */
export interface UnreadSecret {
  readonly kind: 'unread';
  readonly digest: string;
}

/** A secret that a key was found by. */
export interface ValidSecret {
  /** It is valid before this instant; Infinity when it never expires. */
  readonly expiresMs: number;
  /** The first digits of its digest, for the log. */
  readonly digestStart: string;
}

/** A secret that no key is found by. For the log: the client is told the same in all cases. */
export interface InvalidSecret {
  /**
   * Unknown: in no entry of the keys. Expired: this secret of the key. Disabled: the whole key, expired or not. No plan: a key
   * of the directory whose plan the configuration does not have.
   */
  readonly status: 'unknown' | 'expired' | 'disabled' | 'no_plan';
  readonly digestStart: string;
  /** Undefined when the secret is unknown. */
  readonly keyId?: string;
}

/**
 * @param authorization the field's raw value; another scheme than Bearer counts as no key sent (RFC 6750 §3.1)
 * @param nowMs epoch ms
 * @param read what the directory has just said of the secret: it holds for this request, whatever is still remembered of it
 */
export type AuthenticateKey<Known> = (
  authorization: string | undefined,
  nowMs: number,
  read?: ReadSecret,
) => Caller<Known>;

const missing = { kind: 'refused', code: 'missing_key' } as const;

/** The keys that are issued while the gateway runs, as far as this process has read them. */
export interface KeysRead {
  /** @returns `absent`: no key has a secret with this digest; undefined: that has not been read, or too long ago */
  find(digest: string, nowMs: number): ReadSecret | 'absent' | undefined;
  /** Secrets of theirs that are remembered. */
  readonly secretsMax: number;
}

/** What is remembered of a secret that was presented. */
interface Remembered<Known> {
  /** In which that holds; undefined: as long as the configuration. */
  readonly period: Readonly<Period> | undefined;
  readonly expiresMs: number;
  readonly beforeExpiry: Caller<Known>;
  readonly afterExpiry: Caller<Known>;
}

/**
 * Finds the key whose secret an `Authorization` field presents. Only digests are compared, so that neither the
 * configuration nor the time of a comparison gives a secret away. Unknown, expired and disabled secrets are refused alike:
 * somebody who guesses learns nothing.
 *
 * A configured secret is remembered when it is first presented, which saves its digest the next time, together with what
 * its key needs for every request. No more secrets are remembered than are configured, and a new configuration begins
 * without any. A secret of the directory is remembered likewise, for as long as what was read of its key holds.
 *
 * @param know adds to a key what depends on it and on the secret that was presented; called once for each secret
 */
export function createAuthenticateKey<Known>(
  { keys }: Pick<Settings, 'keys'>,
  know: (key: Key, secret: ValidSecret) => Known,
  directory?: KeysRead,
): AuthenticateKey<Known> {
  const remembered = new Map<string, Remembered<Known>>();
  const rememberedMax = keys.secrets + (directory?.secretsMax ?? 0) + 1;

  function authenticate(presented: string, nowMs: number, read: ReadSecret | undefined): Caller<Known> {
    const before = remembered.get(presented);
    if (before !== undefined && holds(before, nowMs)) return callerAt(before, nowMs);
    // Node decodes fields as Latin-1; the digest is of the bytes that were sent.
    const bytes = Buffer.from(presented, 'latin1');
    const digest = hash('sha256', bytes, 'hex');
    const known =
      keys.find(digest) ?? read ?? (directory === undefined ? 'absent' : directory.find(digest, nowMs));
    if (known === undefined) return { kind: 'unread', digest };
    if (known === 'absent') return unknownSecret(digest);
    const shown = digestStart(digest);
    const found = 'kind' in known ? rememberedOfRead(known, shown) : rememberedOf(known, shown);
    if (remembered.size >= rememberedMax) remembered.clear();
    // A copy: V8 keeps the whole field in memory for a part of it, and the field may have been padded.
    remembered.set(bytes.toString('latin1'), found);
    return callerAt(found, nowMs);
  }

  function rememberedOf({ key, secret }: FoundKey, digestStart: string): Remembered<Known> {
    if (key.disabled) return refusedAlways({ status: 'disabled', digestStart, keyId: key.id });
    return validUntil(secret.expiresMs, key, digestStart);
  }

  function rememberedOfRead(secret: ReadSecret, digestStart: string): Remembered<Known> {
    const { period, expiresMs } = secret;
    if (secret.kind === 'usable') return validUntil(expiresMs, secret.key, digestStart, period);
    return refusedAlways({ status: secret.status, digestStart, keyId: secret.keyId }, period);
  }

  function validUntil(
    expiresMs: number,
    key: Key,
    digestStart: string,
    period?: Readonly<Period>,
  ): Remembered<Known> {
    return {
      period,
      expiresMs,
      beforeExpiry: { kind: 'authenticated', key: know(key, { expiresMs, digestStart }) },
      afterExpiry: invalid({ status: 'expired', digestStart, keyId: key.id }),
    };
  }

  return (authorization, nowMs, read) => {
    const presented = authorization === undefined ? undefined : bearerSecret(authorization);
    return presented === undefined ? missing : authenticate(presented, nowMs, read);
  };
}

function callerAt<Known>(found: Remembered<Known>, nowMs: number): Caller<Known> {
  return found.expiresMs <= nowMs ? found.afterExpiry : found.beforeExpiry;
}

/** Not before its period either: the clock may have been set back. */
function holds({ period }: Remembered<unknown>, nowMs: number): boolean {
  return period === undefined || (nowMs >= period.fromMs && nowMs < period.untilMs);
}

function refusedAlways(presented: InvalidSecret, period?: Readonly<Period>): Remembered<never> {
  const refused = invalid(presented);
  return { period, expiresMs: Number.POSITIVE_INFINITY, beforeExpiry: refused, afterExpiry: refused };
}

/** @param digest of a secret that is neither in the configuration nor in the directory */
export function unknownSecret(digest: string): Caller<never> {
  return invalid({ status: 'unknown', digestStart: digestStart(digest) });
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
