import type { AdminToken } from '../shared/model.ts';
import { digestStart } from '../shared/secrets.ts';
import type { ChangedMembers } from './changes.ts';

/** The tokens of the admin API that a reload changed, by name. Undefined when no token changed. */
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
