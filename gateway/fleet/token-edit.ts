import type { AdminToken } from '../shared/model.ts';
import { digestStart } from '../shared/secrets.ts';
import type { ChangedMembers } from './changes.ts';

/** What a reload did to the tokens of the admin API: those that differ, by name; undefined where it left them as they were. */
export function tokenEdit(
  before: readonly AdminToken[],
  after: readonly AdminToken[],
): { readonly before: ChangedMembers; readonly after: ChangedMembers } | undefined {
  const [from, to] = [textsOf(before), textsOf(after)];
  const names = [...new Set([...from.keys(), ...to.keys()])].filter(
    (name) => from.get(name) !== to.get(name),
  );
  if (names.length === 0) return undefined;
  const only = (texts: ReadonlyMap<string, string>) =>
    Object.fromEntries(names.flatMap((name) => (texts.has(name) ? [[name, texts.get(name)]] : [])));
  return { before: only(from), after: only(to) };
}

/** "write, 1a2b3c4d" */
function textsOf(tokens: readonly AdminToken[]): ReadonlyMap<string, string> {
  return new Map(tokens.map(({ name, may, sha256 }) => [name, `${may}, ${digestStart(sha256)}`]));
}
