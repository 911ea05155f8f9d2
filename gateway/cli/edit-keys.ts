import { existsSync, readFileSync } from 'node:fs';
import { type LoadOptions, loadSettings, type ValidSettings } from '../config/load-settings.ts';
import { formatProblems } from '../config/problems/format-problems.ts';
import { appendEntry } from './append-entry.ts';
import { replaceFile } from './replace-file.ts';
import { withLock } from './with-lock.ts';

/** The outcome of an edit; a reason is for the person at the terminal. */
export type Edited = { readonly kind: 'edited'; readonly file: string } | Refused;

export interface Refused {
  readonly kind: 'refused';
  readonly reason: string;
}

/** An entry and the list that it is added to: the keys, or a list inside one of them. */
export interface Addition {
  readonly kind: 'addition';
  /** From the list of keys; empty for that list itself. */
  readonly path: readonly (string | number)[];
  readonly entry: Readonly<Record<string, unknown>>;
}

/**
 * Adds an entry to the keys of a configuration. The whole configuration is validated before and, with the edit, before
 * anything is written, so that a broken file is never left behind. A keys file that is missing is made.
 *
 * @throws when the keys file cannot be locked or written
 */
export async function editKeys(
  { file, env }: LoadOptions,
  choose: (loaded: ValidSettings) => Addition | Refused,
): Promise<Edited> {
  const options = { file, env, makesKeysFile: true };
  const found = loadSettings(options);
  if (found.kind === 'invalid') return { kind: 'refused', reason: formatProblems(found.problems) };
  const { keysFile } = found;
  if (keysFile === undefined) {
    return { kind: 'refused', reason: `${file} has no keys file; name one as keys.file, or use --directory` };
  }

  return withLock<Edited>(keysFile, () => {
    // Another process may have edited the file before this one got the lock.
    const before = loadSettings(options);
    if (before.kind === 'invalid') return { kind: 'refused', reason: formatProblems(before.problems) };
    const text = readText(keysFile);
    const addition = choose(before);
    if (addition.kind === 'refused') return addition;
    const root = keysFile === file ? ['keys'] : [];
    const edited = appendEntry({
      text: text ?? newFileText,
      path: [...root, ...addition.path],
      entry: addition.entry,
    });
    if (edited.kind === 'refused') return edited;
    const after = loadSettings({ ...options, drafts: new Map([[keysFile, edited.text]]) });
    if (after.kind === 'invalid') return { kind: 'refused', reason: formatProblems(after.problems) };
    if (readText(keysFile) !== text) {
      return { kind: 'refused', reason: `${keysFile} was changed in the meantime; try again` };
    }
    replaceFile(keysFile, edited.text);
    return { kind: 'edited', file: keysFile };
  });
}

const newFileText = '# The API keys: a list, one entry a key. Only SHA-256 digests of secrets stand here.\n';

/** Undefined when there is no file. */
function readText(file: string): string | undefined {
  return existsSync(file) ? readFileSync(file, 'utf8') : undefined;
}
