import type { IncomingHttpHeaders } from 'node:http';
import type { ChangedMembers } from '../../../fleet/changes.ts';
import type { DirectoryKey, DirectorySecret, KeyVersion } from '../../../keys/directory/directory-key.ts';
import type { KeyDefinition } from '../../../keys/directory/key-directory.ts';
import { type LimitsByField, toLimitFields, toLimits } from '../../../keys/limit-fields.ts';
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
  const { id, disabled, revision, createdMs, changedMs, secrets } = key;
  const body = {
    id,
    ...statedOf(key),
    disabled,
    source: 'directory',
    revision,
    createdAt: instantOf(createdMs),
    changedAt: instantOf(changedMs),
    secrets: secrets.map(secretView),
    ...issued,
  };
  return { status, body: JSON.stringify(body), fields: { ETag: entityTag(key) } };
}

/** A definition out of what a request states. */
export function toDefinition({
  name,
  limits,
  operations,
  ...key
}: Pick<KeyDefinition, 'id' | 'plan' | 'disabled' | 'createdMs' | 'secrets'> & {
  readonly name?: string | undefined;
  readonly limits?: LimitsByField | undefined;
  readonly operations?: readonly string[] | undefined;
}): KeyDefinition {
  return {
    ...key,
    ...(name !== undefined && { name }),
    ...(limits && { limits: toLimits(limits) }),
    ...(operations && { operations }),
  };
}

/** What somebody states of a key, as in a request. */
export function statedOf({
  plan,
  name,
  limits,
  operations,
}: Pick<KeyDefinition, 'plan' | 'name' | 'limits' | 'operations'>) {
  return {
    plan,
    ...(name !== undefined && { name }),
    ...(limits && { limits: toLimitFields(limits) }),
    ...(operations && { operations }),
  };
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

/** The members that differ, each as it was and as it is; undefined where none does. */
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
