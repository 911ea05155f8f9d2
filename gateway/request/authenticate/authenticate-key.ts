import { hash } from 'node:crypto';
import { type AddressRanges, compileRanges, hasAddress } from '../../shared/addresses/address-ranges.ts';
import { withoutOptionalWhitespace } from '../../shared/http/field-grammar.ts';
import {
  type FoundKey,
  isIn,
  type Key,
  type Period,
  type ReadSecret,
  type Settings,
} from '../../shared/model.ts';
import { digestStart, isInventedSecret } from '../../shared/secrets.ts';

/** The result of authentication. `Known` is the type of the key with the members that the snapshot adds. */
export type Caller<Known> =
  | { readonly kind: 'authenticated'; readonly key: Known }
  | { readonly kind: 'refused'; readonly code: 'missing_key' }
  | {
      readonly kind: 'refused';
      readonly code: 'invalid_key' | 'address_not_allowed';
      readonly presented: InvalidSecret;
    }
  | UnreadSecret;

/** A secret that is not in the configuration. The caller must look the secret up in the key directory. */
export interface UnreadSecret {
  readonly kind: 'unread';
  readonly digest: string;
}

/** The valid secret that a request presented. */
export interface ValidSecret {
  /** The timestamp at which the secret expires; Infinity when the secret never expires. */
  readonly expiresMs: number;
  /** The first digits of the secret's digest, for the log. */
  readonly digestStart: string;
}

/**
 * A secret that was refused, with the reason for the log. The client gets the same response for all reasons except `address_not_allowed`.
 */
export interface InvalidSecret {
  /**
   * `unknown`: the secret belongs to no key. `expired`: the secret has expired. `disabled`: the key is disabled, whether or not the
   * secret has expired. `no_plan`: the key is in the directory, but the configuration gives it no limits on its plan. `leaked`: the secret was found
   * where everyone can read it. `address_not_allowed`: the secret is valid, but the key does not allow the client's address. `unread`: the
   * key directory did not reply, so it is not known whether the secret is valid.
   */
  readonly status:
    | 'unknown'
    | 'expired'
    | 'disabled'
    | 'no_plan'
    | 'leaked'
    | 'address_not_allowed'
    | 'unread';
  readonly digestStart: string;
  /** The id of the key; undefined when the secret is unknown or unread. */
  readonly keyId?: string | undefined;
}

/** The data of a request that authentication needs. */
export interface PresentedSecret {
  /** The raw `Authorization` field. A scheme other than Bearer counts as a missing key (RFC 6750 §3.1). */
  readonly authorization: string | undefined;
  readonly address: string;
}

/**
 * @param nowMs epoch ms
 * @param read the result of a look-up in the directory for this request, which takes precedence over the cache
 */
export type AuthenticateKey<Known> = (
  presented: PresentedSecret,
  nowMs: number,
  read?: ReadSecret,
) => Caller<Known>;

const missing = { kind: 'refused', code: 'missing_key' } as const;

/** The cache of the key directory. */
export interface KeysRead {
  /** @returns `absent` when no key has a secret with this digest; undefined when that is not cached */
  find(digest: string, nowMs: number): ReadSecret | 'absent' | undefined;
  /** Whether Tollgate issued every secret of the directory. The directory then has no secret with a wrong checksum. */
  isAllIssued(): boolean;
  /** The maximum number of cached secrets. */
  readonly secretsMax: number;
}

/** The leaked secrets of the configuration (`keys/leaks/blocked/`). */
export interface Blocked {
  /** Whether the secret with this digest has ended because it leaked. */
  has(digest: string): boolean;
  /** A number that changes whenever the leaked secrets change. */
  revision(): number;
}

/** The cache entry for a presented secret. */
interface Remembered<Known> {
  /** The period in which the entry is valid; undefined when the entry is valid for the lifetime of the configuration. */
  readonly period: Readonly<Period> | undefined;
  readonly expiresMs: number;
  readonly beforeExpiry: Caller<Known>;
  readonly afterExpiry: Caller<Known>;
  /** The addresses from which the key may be used; undefined when every address is allowed. */
  readonly restriction: Restriction | undefined;
}

/** The addresses from which a key may be used, and the result for requests from other addresses. */
interface Restriction {
  readonly ranges: AddressRanges;
  readonly refused: Caller<never>;
  /**
   * The period after which the gateway reads a key of the key directory again. Only the limiter detects that a key has changed, and refused
   * requests do not reach the limiter. The cached list of allowed addresses is therefore valid only for a short period. Undefined for a key
   * of the configuration.
   */
  readonly rereads: { readonly period: Readonly<Period>; readonly unread: UnreadSecret } | undefined;
}

/**
 * Finds the key whose secret an `Authorization` field presents. Only digests are compared. The configuration therefore contains no secret,
 * and the duration of a comparison reveals nothing about a secret. Unknown, expired and disabled secrets get the same refusal, so a client
 * cannot find valid secrets by guessing.
 *
 * A known secret is cached when a client first presents it, with the key and all data that its requests need. Later requests with it
 * therefore compute no digest. The cache has room for all secrets of the configuration and of the directory's cache. A new configuration
 * starts with an empty cache, and a leaked secret of the configuration clears it. A secret from the key directory is cached only while the
 * directory's reply is valid.
 *
 * @param know adds to a key what depends on the key and the presented secret; called once for each secret
 */
export function createAuthenticateKey<Known>(
  { keys }: Pick<Settings, 'keys'>,
  knownKeyOf: (key: Key, secret: ValidSecret) => Known,
  directory: KeysRead | undefined,
  blocked: Blocked,
): AuthenticateKey<Known> {
  const remembered = new Map<string, Remembered<Known>>();
  let revision = blocked.revision();
  const rememberedMax = keys.secrets + (directory?.secretsMax ?? 0) + 1;

  function authenticate(
    presented: string,
    address: string,
    nowMs: number,
    read: ReadSecret | undefined,
  ): Caller<Known> {
    if (blocked.revision() !== revision) {
      remembered.clear();
      revision = blocked.revision();
    }
    const before = remembered.get(presented);
    const isReadNow = read !== undefined;
    if (before !== undefined && holds(before, nowMs)) return callerAt(before, address, nowMs, isReadNow);
    // Node decodes header fields as Latin-1. Encoding a field as Latin-1 restores the octets that the client sent.
    const bytes = Buffer.from(presented, 'latin1');
    const digest = hash('sha256', bytes, 'hex');
    const known =
      keys.find(digest) ?? read ?? (directory === undefined ? 'absent' : directory.find(digest, nowMs));
    if (known === undefined) {
      // Known digests are compared first, so a secret of the configuration may have any form.
      const isInvented = isInventedSecret(presented) && directory?.isAllIssued() === true;
      return isInvented ? unknownSecret(digest) : { kind: 'unread', digest };
    }
    if (known === 'absent') return unknownSecret(digest);
    const shown = digestStart(digest);
    const found = 'kind' in known ? rememberedOfRead(known, digest) : rememberedOf(known, shown);
    if (remembered.size >= rememberedMax) remembered.clear();
    // The cache key is a copy of the secret. A substring would keep the whole header field in memory, and a client can make this field
    // long.
    remembered.set(bytes.toString('latin1'), found);
    return callerAt(found, address, nowMs, isReadNow);
  }

  function rememberedOf({ key, secret }: FoundKey, digestStart: string): Remembered<Known> {
    if (key.disabled) return refusedAlways({ status: 'disabled', digestStart, keyId: key.id });
    if (blocked.has(secret.digest)) return refusedAlways({ status: 'leaked', digestStart, keyId: key.id });
    return validUntil(secret.expiresMs, key, digestStart);
  }

  function rememberedOfRead(secret: ReadSecret, digest: string): Remembered<Known> {
    const { period, expiresMs } = secret;
    const shown = digestStart(digest);
    if (secret.kind === 'refused')
      return refusedAlways({ status: secret.status, digestStart: shown, keyId: secret.keyId }, period);
    const { key, refusalPeriod } = secret;
    const rereads = { period: refusalPeriod, unread: { kind: 'unread', digest } } as const;
    return { ...validUntil(expiresMs, key, shown), period, restriction: restrictionOf(key, shown, rereads) };
  }

  function validUntil(expiresMs: number, key: Key, digestStart: string): Remembered<Known> {
    return {
      period: undefined,
      expiresMs,
      beforeExpiry: { kind: 'authenticated', key: knownKeyOf(key, { expiresMs, digestStart }) },
      afterExpiry: invalid({ status: 'expired', digestStart, keyId: key.id }),
      restriction: restrictionOf(key, digestStart),
    };
  }

  return ({ authorization, address }, nowMs, read) => {
    const presented = authorization === undefined ? undefined : bearerSecret(authorization);
    return presented === undefined ? missing : authenticate(presented, address, nowMs, read);
  };
}

/** Returns the cached result for a client's address. @param isReadNow whether the key was read for this request */
function callerAt<Known>(
  { expiresMs, beforeExpiry, afterExpiry, restriction }: Remembered<Known>,
  address: string,
  nowMs: number,
  isReadNow: boolean,
): Caller<Known> {
  if (expiresMs <= nowMs) return afterExpiry;
  if (restriction === undefined || hasAddress(restriction.ranges, address)) return beforeExpiry;
  const { refused, rereads } = restriction;
  return rereads === undefined || isReadNow || isIn(rereads.period, nowMs) ? refused : rereads.unread;
}

function restrictionOf(
  { id, addresses }: Key,
  digestStart: string,
  rereads?: Restriction['rereads'],
): Restriction | undefined {
  if (addresses === undefined) return undefined;
  const presented = { status: 'address_not_allowed', digestStart, keyId: id } as const;
  const refused = { kind: 'refused', code: 'address_not_allowed', presented } as const;
  return { ranges: compileRanges(addresses), refused, rereads };
}

function holds({ period }: Remembered<unknown>, nowMs: number): boolean {
  return period === undefined || isIn(period, nowMs);
}

function refusedAlways(presented: InvalidSecret, period?: Readonly<Period>): Remembered<never> {
  const refused = invalid(presented);
  return {
    period,
    expiresMs: Number.POSITIVE_INFINITY,
    beforeExpiry: refused,
    afterExpiry: refused,
    restriction: undefined,
  };
}

/** Returns the refusal of a secret that is neither in the configuration nor in the key directory. */
export function unknownSecret(digest: string) {
  return invalid({ status: 'unknown', digestStart: digestStart(digest) });
}

function invalid(presented: InvalidSecret) {
  return { kind: 'refused', code: 'invalid_key', presented } as const;
}

const bearer = 'bearer ';

/** Returns the secret in a `Bearer` field. The scheme is case-insensitive. One or more spaces follow the scheme (RFC 9110 §11.4). */
function bearerSecret(authorization: string): string | undefined {
  if (authorization.slice(0, bearer.length).toLowerCase() !== bearer) return undefined;
  const secret = withoutOptionalWhitespace(authorization.slice(bearer.length));
  return secret === '' ? undefined : secret;
}
