import type { IncomingHttpHeaders } from 'node:http';
import type { ChangedMembers } from '../../../fleet/changes.ts';
import {
  type DirectoryKey,
  type DirectorySecret,
  type KeyVersion,
  statedOf,
} from '../../../keys/directory/directory-key.ts';
import { digestStart } from '../../../shared/secrets.ts';
import type { AdminResponse } from '../../admin-response.ts';
import type { KeptOfId } from './kept-of-id.ts';

/**
 * A key of the directory, as it was stated, with its version as entity tag.
 *
 * @param issued.secret one that was just issued: it is shown once @param issued.kept what a new key has from one before
 */
export function definitionResponse(
  key: DirectoryKey,
  status: 200 | 201 = 200,
  issued: { readonly secret?: string; readonly kept?: KeptOfId | undefined } = {},
): AdminResponse {
  const { revision, createdMs, changedMs, secrets } = key;
  const body = {
    ...statedOf(key),
    source: 'directory',
    revision,
    createdAt: instantOf(createdMs),
    changedAt: instantOf(changedMs),
    secrets: secrets.map(secretView),
    ...issued,
  };
  return { status, body: JSON.stringify(body), fields: { ETag: entityTag(key) } };
}

function secretView({ digest, createdMs, expiresMs }: DirectorySecret): object {
  return {
    digestStart: digestStart(digest),
    createdAt: instantOf(createdMs),
    ...(expiresMs !== undefined && { expiresAt: instantOf(expiresMs) }),
  };
}

export function entityTag({ revision, changedMs }: KeyVersion): string {
  return `"${revision}-${changedMs}"`;
}

/** Whether `If-Match` allows a change of the key: it is absent, `*`, or names this version (RFC 9110 §13.1.1). */
export function isMatch({ 'if-match': condition }: IncomingHttpHeaders, key: DirectoryKey): boolean {
  if (condition === undefined || condition.trim() === '*') return true;
  return condition.split(',').some((tag) => tag.trim() === entityTag(key));
}

/** The changed members with their earlier and their new value; undefined when no member changed. */
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

export function instantOf(epochMs: number): string {
  return new Date(epochMs).toISOString();
}
