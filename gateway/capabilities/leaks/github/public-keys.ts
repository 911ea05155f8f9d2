import * as z from 'zod';
import type { GithubKey } from '../schema.ts';
import { publicKeyOf } from './public-key-of.ts';

/** The maximum number of public keys in one list. GitHub publishes two or three. */
const keysMax = 100;

/** The form of GitHub's public keys API. Other members, such as `is_current`, are ignored, because GitHub lists only keys that it uses. */
const publicKeys = z.object({
  public_keys: z
    .array(z.object({ key_identifier: z.string().min(1).max(200), key: z.string().max(4_000) }))
    .min(1)
    .max(keysMax),
});

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
  const parsed = publicKeys.safeParse(value);
  if (!parsed.success) return form;
  const keys = parsed.data.public_keys.map(({ key_identifier, key }) => ({
    identifier: key_identifier,
    pem: key,
  }));
  const usable = keys.filter(({ pem }) => publicKeyOf(pem) !== undefined);
  if (usable.length === keys.length || (others === 'skipped' && usable.length > 0)) return usable;
  const wrong = keys.findIndex((key) => !usable.includes(key));
  return `has an entry ${wrong + 1} whose \`key\` is not a public key on the curve P-256 in PEM`;
}
