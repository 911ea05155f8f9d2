import type { Key, Operation } from '../shared/model.ts';

/**
 * The members of the access line that depend only on a key and its secret. Made once in a snapshot.
 *
 * @param digestStart the first digits of the digest of the presented secret
 */
export function keyMembers({ id, plan }: Pick<Key, 'id' | 'plan'>, digestStart: string): string {
  // Joined, because V8 keeps the parts of a template as a tree, which takes three times the memory.
  return [',"keyId":', quoted(id), ',"plan":', quoted(plan), ',"secret":"', digestStart, '"'].join('');
}

/** The member that depends only on an operation. Made once in a snapshot. */
export function operationMember({ id }: Pick<Operation, 'id'>): string {
  return `,"operation":${quoted(id)}`;
}

/** Text that needs no escapes in JSON: ASCII without control characters, quotes and backslashes. */
const plain = /^[\x20\x21\x23-\x5b\x5d-\x7e]*$/;

/** Foreign text as a JSON string. The gateway's own words and addresses need no escapes. */
export function quoted(text: string): string {
  return plain.test(text) ? `"${text}"` : JSON.stringify(text);
}
