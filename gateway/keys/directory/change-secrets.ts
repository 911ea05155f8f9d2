import type { DirectoryKey, DirectorySecret, PastSecret } from './directory-key.ts';
import type { KeyDefinition } from './key-directory.ts';
import { ancestorsOf } from './lineage.ts';

/**
 * Adds a secret, and sets an expiry for the older secrets that do not expire earlier. If the key has no room, the secrets that expired
 * first are removed.
 *
 * @param options.endOf returns the new expiry of an older secret, epoch ms; Infinity when it keeps its expiry
 * @param options.removes a secret that the new secret replaces at once
 * @returns undefined if all `secretsMax` secrets of the key are valid
 */
export function withNewSecret(
  key: DirectoryKey,
  issued: DirectorySecret,
  {
    endOf,
    removes,
    secretsMax,
  }: {
    readonly endOf: (secret: DirectorySecret) => number;
    readonly removes?: DirectorySecret | undefined;
    readonly secretsMax: number;
  },
): KeyDefinition | undefined {
  const kept = key.secrets.filter((secret) => secret !== removes);
  const ending = kept.map((secret) => endingBy(secret, endOf(secret)));
  const older = withRoomForOne(ending, issued.createdMs, secretsMax);
  return older.length >= secretsMax ? undefined : withSecrets(key, [...older, issued]);
}

/** A removed secret stays in `pastSecrets` while a secret of the key descends from it. */
export function withSecrets(
  { changedMs: _, revision: __, pastSecrets: before = [], ...key }: DirectoryKey,
  secrets: readonly DirectorySecret[],
): KeyDefinition {
  const present = new Set(secrets.map(({ digest }) => digest));
  const removed = key.secrets.filter(({ digest }) => !present.has(digest)).map(pastSecret);
  const pastSecrets = ancestorsOf(secrets, [...before, ...removed]);
  return pastSecrets.length === 0 ? { ...key, secrets } : { ...key, secrets, pastSecrets };
}

function pastSecret({ digest, issuedFrom, leak }: DirectorySecret): PastSecret {
  return { digest, issuedFrom, leak };
}

/** Removes the secrets that expired first. */
function withRoomForOne(
  secrets: readonly DirectorySecret[],
  nowMs: number,
  secretsMax: number,
): readonly DirectorySecret[] {
  const ended = secrets
    .filter(({ expiresMs = Number.POSITIVE_INFINITY }) => expiresMs <= nowMs)
    .sort((a, b) => (a.expiresMs ?? 0) - (b.expiresMs ?? 0));
  const dropped = new Set(ended.slice(0, Math.max(0, secrets.length - secretsMax + 1)));
  return secrets.filter((secret) => !dropped.has(secret));
}

/** With an earlier expiry, epoch ms; unchanged if it expires sooner. */
export function endingBy(secret: DirectorySecret, endMs: number): DirectorySecret {
  const { expiresMs = Number.POSITIVE_INFINITY } = secret;
  return endMs < expiresMs ? { ...secret, expiresMs: endMs } : secret;
}
