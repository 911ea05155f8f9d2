import type { KeyChange } from '../fleet/changes.ts';
import { withNewSecret } from '../keys/directory/change-secrets.ts';
import { type DirectoryKey, type DirectorySecret, expiryOf } from '../keys/directory/directory-key.ts';
import { isoOf } from '../shared/schema/dates-and-durations.ts';
import { digestSecret, digestStart, issueSecret } from '../shared/secrets.ts';
import type { Authenticated } from './exchange.ts';
import type { HolderData } from './holder-answers.ts';
import type { Refusal } from './respond/refusal-response.ts';
import type { Stations } from './stations.ts';

/**
 * Issues a new secret for the holder of a directory key. The presented secret stays valid for `ownRotationOverlapMs`, and other secrets
 * of the key do not change. The new secret has the expiry of the presented secret, so a holder cannot extend temporary access. A secret
 * that expires within the overlap cannot be rotated. A leaked secret that was already rotated therefore gives a thief no new secret.
 */
export async function rotateOwnSecret(
  { key: { id, digestStart: presentedStart, generation } }: Authenticated,
  { directory, recordKeyChange, nowMs, bounds }: Stations,
): Promise<HolderData> {
  if (directory === undefined || generation === undefined) {
    return refusal(
      'operation_not_allowed',
      'The API team keeps this key in a file: ask the team for a new secret.',
    );
  }
  const secret = issueSecret();
  for (let attempt = 1; attempt <= bounds.directoryChangeAttemptsMax; attempt++) {
    const found = await directory.read(id);
    if (found.kind === 'away') return storeFailed();
    const presented =
      found.kind === 'found' && !found.key.disabled
        ? found.key.secrets.find(({ digest }) => digestStart(digest) === presentedStart)
        : undefined;
    if (found.kind === 'absent' || presented === undefined) return refusal('invalid_key');
    const createdMs = nowMs();
    const oldEndsMs = createdMs + bounds.ownRotationOverlapMs;
    if (expiryOf(presented) <= oldEndsMs) {
      return refusal(
        'operation_not_allowed',
        `This secret ends at ${isoOf(presented.expiresMs)} and cannot be rotated.`,
      );
    }
    const issued = { digest: digestSecret(secret), createdMs, expiresMs: presented.expiresMs };
    const to = withNewSecret(found.key, issued, {
      endOf: (one) => (one === presented ? oldEndsMs : Number.POSITIVE_INFINITY),
      secretsMax: bounds.directorySecretsPerKeyMax,
    });
    if (to === undefined) return tooManySecrets(found.key, createdMs);
    const change: KeyChange = {
      action: 'rotate',
      by: 'holder',
      key: id,
      before: { secret: presentedStart },
      after: { secret: digestStart(issued.digest), oldEndsAt: isoOf(oldEndsMs) },
    };
    const reply = await directory.replace(to, found.key);
    switch (reply.kind) {
      case 'written':
        recordKeyChange(change);
        return {
          kind: 'json',
          value: { secret, expiresAt: isoOf(presented.expiresMs), oldEndsAt: isoOf(oldEndsMs) },
        };
      case 'absent':
        return refusal('invalid_key');
      case 'away':
        if (reply.mayHaveRun) recordKeyChange({ ...change, error: reply.reason });
        return storeFailed();
      case 'changed':
      // The next attempt reads the key again.
    }
  }
  return refusal('rate_limited', 'Others are changing this key at the same time. Retry in 1 s.', 1);
}

function tooManySecrets({ secrets }: DirectoryKey, nowMs: number): HolderData {
  const endMs = Math.min(...secrets.map((secret: DirectorySecret) => expiryOf(secret)));
  const many = `This key has ${secrets.length} valid secrets`;
  if (endMs === Number.POSITIVE_INFINITY) {
    return refusal('operation_not_allowed', `${many}: ask the API team to remove one.`);
  }
  const seconds = Math.max(1, Math.ceil((endMs - nowMs) / 1_000));
  return refusal('rate_limited', `${many}. The first ends in ${seconds} s: retry then.`, seconds);
}

function storeFailed(): HolderData {
  const message =
    'The new secret could not be stored. This secret stays valid for at least a day: retry later.';
  return refusal('store_unavailable', message, 1);
}

function refusal(code: Refusal['code'], message?: string, retryAfterSeconds?: number): HolderData {
  const fields = retryAfterSeconds === undefined ? undefined : ['Retry-After', String(retryAfterSeconds)];
  return { kind: 'refused', refusal: { code, ...(message && { message }), ...(fields && { fields }) } };
}
