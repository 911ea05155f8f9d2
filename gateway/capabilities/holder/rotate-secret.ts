import { hash } from 'node:crypto';
import type { KeyChange } from '../../fleet/changes.ts';
import { withNewSecret } from '../../keys/directory/change-secrets.ts';
import { type DirectoryKey, type DirectorySecret, expiryOf } from '../../keys/directory/directory-key.ts';
import type { KeyDefinition } from '../../keys/directory/key-directory.ts';
import { ancestorsOf, descendantsOf } from '../../keys/directory/lineage.ts';
import { planNameAt } from '../../keys/plans/compile-key.ts';
import type { Authenticated } from '../../request/exchange.ts';
import type { Stations } from '../../request/stations.ts';
import type { Refusal } from '../../shared/errors.ts';
import { isoOf } from '../../shared/schema/dates-and-durations.ts';
import { digestSecret, digestStart, issueSecret } from '../../shared/secrets.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import type { HolderData } from './usage/own-usage.ts';

/** A request to rotate the secret that it presents. */
interface Rotating {
  readonly key: Pick<Authenticated['key'], 'id' | 'digestStart' | 'generation'>;
  readonly req: Pick<Authenticated['req'], 'headers'>;
}

/**
 * The form of an `Idempotency-Key`. A thief of the rotated secret who guesses the value could end the new secret, so a value has at least 16
 * characters.
 */
const idempotencyKeyPattern = /^[!-~]{16,200}$/;

/**
 * Issues a new secret for the holder of a directory key. The presented secret stays valid for `ownRotationOverlapMs`, and other secrets of
 * the key do not change. The new secret has the expiry of the presented secret, so a holder cannot extend temporary access. A secret that
 * expires within the overlap cannot be rotated. A secret that was already rotated expires within the overlap, so a thief cannot use this
 * secret to get a new secret.
 *
 * If the response to a client is lost, the client repeats the request with the same `Idempotency-Key`. The lost secret is stored only as a
 * digest, so the gateway cannot send it again. The repeated request removes it and issues another one. The key stores the digest of an
 * `Idempotency-Key` with the issued secret, so it has at most as many of these digests as secrets.
 *
 * If the reply to the change is lost, the function reads the key again. If the change was made, the holder gets the new secret. Without the
 * second read, the new secret would be lost, and the holder could lose access.
 */
export async function rotateOwnSecret(
  { key: { id, digestStart: presentedStart, generation }, req }: Rotating,
  {
    directory,
    recordKeyChange,
    nowMs,
    bounds,
  }: Pick<Stations, 'directory' | 'recordKeyChange' | 'nowMs' | 'bounds'>,
): Promise<HolderData> {
  if (directory === undefined || generation === undefined) {
    return refusal(
      'operation_not_allowed',
      'The API team keeps this key in a file: ask the team for a new secret.',
    );
  }
  const idempotencyKey = req.headers['idempotency-key'];
  if (idempotencyKey !== undefined && !idempotencyKeyPattern.test(String(idempotencyKey))) {
    return refusal(
      'invalid_request',
      'The header field Idempotency-Key must be 16 to 200 visible characters of ASCII.',
    );
  }
  const requestDigest =
    idempotencyKey === undefined ? undefined : hash('sha256', String(idempotencyKey), 'hex');
  const secret = issueSecret();
  const issuedDigest = digestSecret(secret);
  let unconfirmed: Unconfirmed | undefined;
  for (let attempt = 1; attempt <= bounds.directoryChangeAttemptsMax; attempt++) {
    const found = await directory.read(id);
    if (found.kind === 'away') return failed(unconfirmed);
    const presented =
      found.kind === 'found' && !found.key.disabled
        ? found.key.secrets.find(({ digest }) => digestStart(digest) === presentedStart)
        : undefined;
    if (found.kind === 'absent' || presented === undefined || presented.leak?.ended) {
      return refusal('invalid_key');
    }
    const { secrets } = found.key;
    const stored = secrets.find(({ digest }) => digest === issuedDigest);
    if (stored !== undefined && unconfirmed !== undefined) {
      recordKeyChange(unconfirmed.change);
      return rotated(secret, stored.expiresMs, expiryOf(presented));
    }
    const rotation = rotationOf(found.key, presented, {
      issuedDigest,
      requestDigest,
      nowMs: nowMs(),
      bounds,
    });
    if (rotation.kind === 'refused') return rotation;
    const { to, issued, oldEndsMs, lost } = rotation;
    const change: KeyChange = {
      action: 'rotate',
      by: 'holder',
      key: id,
      plan: planNameAt(found.key, nowMs()),
      before: { secret: presentedStart },
      after: {
        secret: digestStart(issuedDigest),
        oldEndsAt: isoOf(oldEndsMs),
        replaces: lost && digestStart(lost.digest),
      },
    };
    const reply = await directory.replace(to, found.key);
    switch (reply.kind) {
      case 'written':
        recordKeyChange(change);
        return rotated(secret, issued.expiresMs, oldEndsMs);
      case 'absent':
        return refusal('invalid_key');
      case 'away':
        if (!reply.mayHaveRun) return failed(unconfirmed);
        unconfirmed = { change, reason: reply.reason };
        break;
      case 'changed':
      // The next attempt reads the key again.
    }
  }
  return refusal('rate_limited', 'Other requests are changing this key at the same time. Retry in 1 s.', 1);

  function failed(doubted: Unconfirmed | undefined): HolderData {
    if (doubted !== undefined) recordKeyChange({ ...doubted.change, error: doubted.reason });
    return storeFailed(doubted !== undefined);
  }
}

type Refused = Extract<HolderData, { kind: 'refused' }>;

/** The key with the new secret. `lost` is the secret of an earlier request with the same `Idempotency-Key`, which the key no longer has. */
interface Rotation {
  readonly kind: 'rotation';
  readonly to: KeyDefinition;
  readonly issued: DirectorySecret;
  readonly oldEndsMs: number;
  readonly lost: DirectorySecret | undefined;
}

function rotationOf(
  key: DirectoryKey,
  presented: DirectorySecret,
  {
    issuedDigest,
    requestDigest,
    nowMs,
    bounds,
  }: {
    readonly issuedDigest: string;
    readonly requestDigest: string | undefined;
    readonly nowMs: number;
    readonly bounds: Pick<Bounds, 'ownRotationOverlapMs' | 'ownRotationsMax' | 'directorySecretsPerKeyMax'>;
  },
): Rotation | Refused {
  const { secrets, pastSecrets = [] } = key;
  const all = [...secrets, ...pastSecrets];
  // The clock of another process that rotated a secret of this key may be ahead. Without `Math.max`, a second rotation with the same secret
  // would then be possible.
  const createdMs = Math.max(nowMs, ...secrets.map((one) => one.createdMs));
  const lost =
    requestDigest === undefined
      ? undefined
      : secrets.find((one) => one.issuedFrom === presented.digest && one.requestDigest === requestDigest);
  if (lost !== undefined && (expiryOf(lost) <= createdMs || descendantsOf(lost.digest, all).size > 0)) {
    const message = 'The secret that was issued for this Idempotency-Key has ended or was rotated.';
    return refusal('operation_not_allowed', message);
  }
  const oldEndsMs = lost === undefined ? createdMs + bounds.ownRotationOverlapMs : expiryOf(presented);
  if (lost === undefined && expiryOf(presented) <= oldEndsMs) {
    const message = `This secret ends at ${isoOf(presented.expiresMs)} and cannot be rotated.`;
    return refusal('operation_not_allowed', message);
  }
  const rotations = ancestorsOf([presented], all).length;
  if (rotations >= bounds.ownRotationsMax) {
    const message = `This secret is the result of ${rotations} rotations: ask the API team for a new secret.`;
    return refusal('operation_not_allowed', message);
  }
  const { expiresMs } = lost ?? presented;
  const digests = { issuedFrom: presented.digest, requestDigest };
  const issued: DirectorySecret = { digest: issuedDigest, createdMs, expiresMs, ...digests };
  const to = withNewSecret(key, issued, {
    endOf: (one) => (one === presented ? oldEndsMs : Number.POSITIVE_INFINITY),
    removes: lost,
    secretsMax: bounds.directorySecretsPerKeyMax,
  });
  return to === undefined
    ? tooManySecrets(key, createdMs)
    : { kind: 'rotation', to, issued, oldEndsMs, lost };
}

/** A change whose reply was lost. The next attempt reads whether the store has made the change. */
interface Unconfirmed {
  readonly change: KeyChange;
  readonly reason: string;
}

function rotated(secret: string, expiresMs: number | undefined, oldEndsMs: number): HolderData {
  return { kind: 'json', value: { secret, expiresAt: isoOf(expiresMs), oldEndsAt: isoOf(oldEndsMs) } };
}

function tooManySecrets({ secrets }: DirectoryKey, nowMs: number): Refused {
  const endMs = Math.min(...secrets.map((secret: DirectorySecret) => expiryOf(secret)));
  const many = `This key has ${secrets.length} valid secrets`;
  if (endMs === Number.POSITIVE_INFINITY) {
    return refusal('operation_not_allowed', `${many}: ask the API team to remove one.`);
  }
  const seconds = Math.max(1, Math.ceil((endMs - nowMs) / 1_000));
  return refusal('rate_limited', `${many}. The first ends in ${seconds} s: retry then.`, seconds);
}

/** @param isUnconfirmed whether the store may have made the change */
function storeFailed(isUnconfirmed: boolean): HolderData {
  const message = isUnconfirmed
    ? 'The store did not confirm the new secret. This secret stays valid for at least a day. Retry later with the same Idempotency-Key. Without one, ask the API team for a secret if the retry is refused.'
    : 'The new secret could not be stored, and this secret is unchanged. Retry later.';
  return refusal('store_unavailable', message, 1);
}

function refusal(code: Refusal['code'], message?: string, retryAfterSeconds?: number): Refused {
  const fields = retryAfterSeconds === undefined ? undefined : ['Retry-After', String(retryAfterSeconds)];
  return { kind: 'refused', refusal: { code, message, fields } };
}
