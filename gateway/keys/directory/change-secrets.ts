import type { DirectoryKey, DirectorySecret } from './directory-key.ts';
import type { KeyDefinition } from './key-directory.ts';

/**
 * Adds a secret to a key, and sets an expiry for the older secrets. A secret that would expire earlier keeps its expiry. If the
 * key has no room for one more secret, the secrets that expired first are removed.
 *
 * @param options.endOf returns the new expiry of an older secret, epoch ms; Infinity when the secret keeps its expiry
 * @returns undefined if all `secretsMax` secrets of the key are valid
 */
export function withNewSecret(
  key: DirectoryKey,
  issued: DirectorySecret,
  { endOf, secretsMax }: { readonly endOf: (secret: DirectorySecret) => number; readonly secretsMax: number },
): KeyDefinition | undefined {
  const ending = key.secrets.map((secret) => endingBy(secret, endOf(secret)));
  const older = withRoomForOne(ending, issued.createdMs, secretsMax);
  return older.length >= secretsMax ? undefined : withSecrets(key, [...older, issued]);
}

export function withSecrets(
  { changedMs: _, revision: __, ...key }: DirectoryKey,
  secrets: readonly DirectorySecret[],
): KeyDefinition {
  return { ...key, secrets };
}

/** Removes the secrets that expired first, until there is room for one secret. */
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

/** Sets the expiry of a secret, unless the secret expires earlier. */
function endingBy(secret: DirectorySecret, endMs: number): DirectorySecret {
  const { expiresMs = Number.POSITIVE_INFINITY } = secret;
  return endMs < expiresMs ? { ...secret, expiresMs: endMs } : secret;
}
