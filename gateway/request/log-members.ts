import type { Key, Operation } from '../shared/model.ts';

/**
 * Makes the members of the access line that depend only on a key and its secret. The function is called once per snapshot and secret.
 *
 * @param digestStart the first digits of the digest of the presented secret
 */
export function keyMembers({ id, plan }: Pick<Key, 'id' | 'plan'>, digestStart: string): string {
  // V8 would keep the parts of a template string as a tree with three times the memory. `join` makes a flat string.
  return [',"keyId":', quoted(id), ',"plan":', quoted(plan), ',"secret":"', digestStart, '"'].join('');
}

/** Makes the member `operation` of the access line. The function is called once per snapshot and operation. */
export function operationMember({ id }: Pick<Operation, 'id'>): string {
  return `,"operation":${quoted(id)}`;
}

/** Matches text that needs no escapes in JSON: ASCII without control characters, quotes and backslashes. */
const plain = /^[\x20\x21\x23-\x5b\x5d-\x7e]*$/;

/** Returns text of a client or an operator as a JSON string. The gateway's own texts need no escapes. */
export function quoted(text: string): string {
  return plain.test(text) ? `"${text}"` : JSON.stringify(text);
}
