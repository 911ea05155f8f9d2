import type { Key, Operation } from '../shared/model.ts';

/**
 * The members of the access line that depend on a key and its secret alone: made once in a snapshot.
 *
 * @param digestStart the first digits of the digest of the secret that was presented
 */
export function keyMembers({ id, plan }: Pick<Key, 'id' | 'plan'>, digestStart: string): string {
  // Joined, since V8 keeps the parts of a template as a tree, which takes three times the memory.
  return [',"keyId":', quoted(id), ',"plan":', quoted(plan), ',"secret":"', digestStart, '"'].join('');
}

/** The member that depends on an operation alone: likewise made once. */
export function operationMember({ id }: Pick<Operation, 'id'>): string {
  return `,"operation":${quoted(id)}`;
}

/** Text that needs no escape in JSON: ASCII without control characters, quote and backslash. */
const plain = /^[\x20\x21\x23-\x5b\x5d-\x7e]*$/;

/** Text that somebody else wrote, as a JSON string. The gateway's own words and addresses need no escaping. */
export function quoted(text: string): string {
  return plain.test(text) ? `"${text}"` : JSON.stringify(text);
}
