import type { GithubKey } from '../schema.ts';
import { publicKeyOf } from './public-key-of.ts';

/** The maximum number of public keys in one list. GitHub publishes two or three. */
const keysMax = 100;

/** The maximum lengths of an identifier and of a key in PEM, in UTF-16 units. */
const [identifierMax, pemMax] = [200, 4_000];

/**
 * Reads a list of public keys. Returns the keys, or the reason why the list is refused.
 *
 * @param others what happens with keys of other kinds. A list from GitHub may contain such keys one day, and its other keys must stay usable.
 *   In a file, such a key is a mistake.
 */
export function parsePublicKeys(text: string, others: 'skipped' | 'refused'): readonly GithubKey[] | string {
  const form =
    'has no list of public keys in the form of GitHub: { "public_keys": [ { "key_identifier", "key" } ] }';
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return form;
  }
  const keys = keysIn(value);
  if (keys === undefined) return form;
  const usable = keys.filter(({ pem }) => publicKeyOf(pem) !== undefined);
  if (usable.length === keys.length || (others === 'skipped' && usable.length > 0)) return usable;
  const wrong = keys.findIndex((key) => !usable.includes(key));
  return `has an entry ${wrong + 1} whose \`key\` is not a public key on the curve P-256 in PEM`;
}

/**
 * Returns the entries of a list in the form of GitHub's public keys API; undefined if the list has another form. Other members, such as
 * `is_current`, are ignored, because GitHub lists only keys that it uses.
 */
function keysIn(value: unknown): readonly GithubKey[] | undefined {
  const list: unknown = Object(value).public_keys;
  if (!Array.isArray(list) || list.length === 0 || list.length > keysMax) return undefined;
  const keys = list.map((entry) => ({ identifier: Object(entry).key_identifier, pem: Object(entry).key }));
  const isSound = ({ identifier, pem }: Readonly<Record<string, unknown>>) =>
    isText(identifier, identifierMax) && identifier !== '' && isText(pem, pemMax);
  return keys.every(isSound) ? keys : undefined;
}

function isText(value: unknown, lengthMax: number): value is string {
  return typeof value === 'string' && value.length <= lengthMax;
}
