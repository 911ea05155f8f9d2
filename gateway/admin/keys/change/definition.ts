import type { IncomingHttpHeaders } from 'node:http';
import type * as z from 'zod';
import type { ChangedMembers } from '../../../fleet/changes.ts';
import { type DirectoryKey, type KeyVersion, statedOf } from '../../../keys/directory/directory-key.ts';
import type { StatedKey } from '../../../keys/key-schema.ts';
import { isoOf } from '../../../shared/schema/dates-and-durations.ts';
import { digestStart } from '../../../shared/secrets.ts';
import type { AdminResponse } from '../../admin-response.ts';
import type { KeptOfId, keyDefinition, statedKeyShown } from '../../wires/keys/definitions.ts';
import type { SecretView } from '../key-sources.ts';

export function statedKeyView(
  stated: StatedKey,
  secrets: readonly SecretView[],
): z.output<typeof statedKeyShown> {
  return {
    ...stated,
    secrets: secrets.map(({ digestStart, createdMs, statedExpiresMs }) => ({
      digestStart,
      createdAt: isoOf(createdMs),
      expiresAt: isoOf(statedExpiresMs),
    })),
  };
}

/** The version of the definition is the `ETag`. */
export function definitionResponse(
  key: DirectoryKey,
  status: 200 | 201 = 200,
  more?: { readonly secret?: string; readonly kept?: KeptOfId | undefined; readonly isUnchanged?: boolean },
): AdminResponse {
  const { revision, createdMs, changedMs, secrets } = key;
  const body: z.output<typeof keyDefinition> = {
    ...statedOf(key),
    source: 'directory',
    revision,
    createdAt: isoOf(createdMs),
    changedAt: isoOf(changedMs),
    secrets: secrets.map((secret) => ({
      digestStart: digestStart(secret.digest),
      createdAt: isoOf(secret.createdMs),
      expiresAt: isoOf(secret.expiresMs),
    })),
    ...more,
  };
  return { status, body: JSON.stringify(body), fields: { ETag: entityTag(key) } };
}

/** The response to an edit. `isUnchanged` is only present if nothing was changed. */
export function editedResponse({
  key,
  isUnchanged,
}: {
  readonly key: DirectoryKey;
  readonly isUnchanged: boolean;
}): AdminResponse {
  return definitionResponse(key, 200, isUnchanged ? { isUnchanged } : {});
}

export function entityTag({ revision, changedMs }: KeyVersion): string {
  return `"${revision}-${changedMs}"`;
}

/**
 * Whether the request may change the key: `If-Match` is absent, is `*`, or names the key's version (RFC 9110
 * §13.1.1).
 */
export function isMatch({ 'if-match': condition }: IncomingHttpHeaders, key: DirectoryKey): boolean {
  if (condition === undefined || condition.trim() === '*') return true;
  return condition.split(',').some((tag) => tag.trim() === entityTag(key));
}

/** Returns the changed members with their old and new values; undefined when no member changed. */
export function differences(
  before: ChangedMembers,
  after: ChangedMembers,
): { readonly before: ChangedMembers; readonly after: ChangedMembers } | undefined {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  const differing = names.filter((name) => JSON.stringify(before[name]) !== JSON.stringify(after[name]));
  if (differing.length === 0) return undefined;
  const only = (of: ChangedMembers) =>
    Object.fromEntries(differing.flatMap((name) => (of[name] === undefined ? [] : [[name, of[name]]])));
  return { before: only(before), after: only(after) };
}
