import { isDeepStrictEqual } from 'node:util';
import type * as z from 'zod';
import { type DirectoryKey, digestsOf } from '../../../keys/directory/directory-key.ts';
import type { KeyDefinition, KeyDirectory } from '../../../keys/directory/key-directory.ts';
import type { MovedKey } from '../../../keys/key-schema.ts';
import { endLine } from '../../../keys/leaks/end-line.ts';
import type { Away } from '../../../redis/redis-reply.ts';
import { type AdminResponse, jsonResponse } from '../../admin-response.ts';
import { defineRoute, type Route } from '../../api/route.ts';
import { newKeyId } from '../../wires/keys/definitions.ts';
import { importDirectoryWire, type imported } from '../../wires/keys/directory.ts';
import { type ChangeRequest, type KeyChangeSources, noDirectory, storeFailed } from './change-sources.ts';
import { movedView } from './export-route.ts';
import { termsFault } from './key-terms.ts';

type Outcome =
  | { readonly kind: 'created' | 'unchanged' }
  | { readonly kind: 'refused'; readonly reason: string }
  | Away;

/** `POST /directory` imports keys with their secrets, in the form of `GET /directory`. */
export function importRoute(sources: KeyChangeSources): Route {
  const { bounds } = sources;
  const { importBytesMax, importMembersMax } = bounds;
  return defineRoute({
    ...importDirectoryWire(bounds),
    needs: 'write',
    bodyBytesMax: importBytesMax,
    bodyMembersMax: importMembersMax,
    async respond({ body: { keys }, ...request }) {
      const { directory } = sources;
      return directory === undefined ? noDirectory().response : importKeys(sources, directory, keys, request);
    },
  });
}

/** Imports keys without changing existing keys. An interrupted import can therefore be repeated. */
async function importKeys(
  sources: KeyChangeSources,
  directory: KeyDirectory,
  keys: readonly MovedKey[],
  { author }: ChangeRequest,
): Promise<AdminResponse> {
  const { record, bounds } = sources;
  const counts = { created: 0, unchanged: 0 };
  const refused: { id: string; reason: string }[] = [];
  let failure: Away | undefined;
  /** For each digest, the id of the first imported key that has a secret with this digest. */
  const owners = new Map<string, string>();
  for (const { id, secrets, pastSecrets = [] } of keys) {
    for (const { sha256 } of [...secrets, ...pastSecrets]) if (!owners.has(sha256)) owners.set(sha256, id);
  }
  for (let from = 0; from < keys.length && failure === undefined; from += bounds.importKeysAtOnceMax) {
    const part = keys.slice(from, from + bounds.importKeysAtOnceMax);
    const outcomes = await Promise.all(part.map((key) => importOne(sources, directory, key, owners)));
    for (const [index, outcome] of outcomes.entries()) {
      switch (outcome.kind) {
        case 'created':
        case 'unchanged':
          counts[outcome.kind]++;
          break;
        case 'refused':
          refused.push({ id: part[index]?.id ?? '', reason: outcome.reason });
          break;
        case 'away':
          failure = outcome;
      }
    }
  }
  if (counts.created > 0) {
    record({ action: 'import', ...author, after: { ...counts, refused: refused.length } });
  }
  return failure
    ? storeFailed(failure).response
    : jsonResponse({ ...counts, refused } satisfies z.output<typeof imported>);
}

async function importOne(
  { settings, leakOf, nowMs, bounds }: KeyChangeSources,
  directory: KeyDirectory,
  { secrets, pastSecrets, ...stated }: MovedKey,
  owners: ReadonlyMap<string, string>,
): Promise<Outcome> {
  const { id } = stated;
  const moved = {
    ...stated,
    secrets: secrets.map(({ sha256: digest, createdAt = nowMs(), expiresAt, issuedFrom }) => {
      return { digest, createdMs: createdAt, expiresMs: expiresAt, ...(issuedFrom && { issuedFrom }) };
    }),
    ...(pastSecrets && {
      pastSecrets: pastSecrets.map(({ sha256: digest, issuedFrom }) => ({ digest, issuedFrom })),
    }),
  };
  const digests = digestsOf(moved);
  const fault = termsFault(stated, settings()) ?? keptFault(moved, digests, bounds);
  if (fault !== undefined) return { kind: 'refused', reason: fault };
  if (settings().keys.has(id))
    return { kind: 'refused', reason: 'The configuration has a key with this id.' };
  const read = await directory.read(id);
  if (read.kind === 'away') return read;
  // A leaked secret that moves from the keys file to the directory stays refused.
  let definition: KeyDefinition = moved;
  for (const digest of digests) {
    const leak = leakOf?.(digest);
    if (leak !== undefined) definition = endLine(definition, digest, leak);
  }
  if (read.kind === 'found') {
    if (!isDeepStrictEqual(likenessOf(read.key), likenessOf(definition)))
      return { kind: 'refused', reason: 'There is a key with this id already.' };
    return withIndex(directory, read.key);
  }
  for (const sha256 of digests) {
    const isElsewhere = settings().keys.find(sha256) !== undefined || owners.get(sha256) !== id;
    const found = isElsewhere ? undefined : await directory.find(sha256);
    if (found?.kind === 'away') return found;
    if (found?.kind !== 'absent') return { kind: 'refused', reason: 'Another key has one of its secrets.' };
  }
  const reply = await directory.createImported(definition);
  switch (reply.kind) {
    case 'written':
      return { kind: 'created' };
    case 'taken':
    case 'removed':
      return { kind: 'refused', reason: 'There is a key with this id already.' };
    case 'away':
      return reply;
  }
}

/**
 * Writes an existing key again if the index lacks an entry for one of its secrets. A failover of Redis may have lost
 * this entry.
 */
async function withIndex(directory: KeyDirectory, key: DirectoryKey): Promise<Outcome> {
  const found = await Promise.all(digestsOf(key).map(directory.find));
  if (found.some(({ kind }) => kind === 'absent')) {
    const { changedMs: _, revision: __, ...definition } = key;
    const reply = await directory.replace(definition, key);
    if (reply.kind === 'away') return reply;
  }
  return { kind: 'unchanged' };
}

/**
 * Checks a key by the rules that apply to the directory but not to a keys file. The import refuses only the key with
 * the fault.
 */
function keptFault(
  { id, secrets, pastSecrets = [] }: KeyDefinition,
  digests: readonly string[],
  { directorySecretsPerKeyMax: secretsMax, ownRotationsMax }: KeyChangeSources['bounds'],
): string | undefined {
  if (!newKeyId.safeParse(id).success)
    return 'The id of a key of the key directory must not consist of dots only.';
  if (new Set(digests).size < digests.length) return 'It has a secret twice.';
  if (pastSecrets.length > secretsMax * ownRotationsMax) return 'It has too many `pastSecrets`.';
  if (secrets.length <= secretsMax) return undefined;
  return `It has ${secrets.length} secrets, but a key of the key directory may have at most ${secretsMax}: omit the secrets that have expired.`;
}

/**
 * Returns the members of a definition by which two definitions are compared. The creation times of secrets are not
 * compared.
 */
function likenessOf(key: DirectoryKey | KeyDefinition): object {
  const { secrets, ...stated } = movedView(key);
  const ends = secrets.map(({ sha256, expiresAt }) => `${sha256} ${expiresAt}`).sort();
  return { ...stated, ends };
}
