import { existsSync, readFileSync } from 'node:fs';
import { type LoadOptions, loadSettings, type WrittenKey } from '../../config/load-settings.ts';
import { formatProblems } from '../../config/problems/format-problems.ts';
import { digestOfContent } from '../../config/source/read-config-file.ts';
import type { Settings } from '../../model.ts';
import { CommandError } from '../output/command-error.ts';
import { editYaml, type YamlEdit } from './edit-yaml.ts';
import { replaceFile } from './replace-file.ts';
import { withLock } from './with-lock.ts';

/** The configuration that a command works on. */
export type Configuration = Pick<LoadOptions, 'file' | 'env'>;

/** The keys of a valid configuration. */
export interface LoadedKeys {
  readonly settings: Settings;
  /** As they are written, in the order of the file. */
  readonly written: readonly WrittenKey[];
  /** The file that has them: their own, or the main file; undefined where all are in the directory. */
  readonly file: string | undefined;
  /** The digest of that file's content. */
  readonly digest: string | undefined;
}

/** @throws a CommandError with every problem of the configuration */
export function loadKeys(options: LoadOptions): LoadedKeys {
  let written: readonly WrittenKey[] = [];
  const loaded = loadSettings({
    ...options,
    onKeys(keys) {
      written = keys;
    },
  });
  if (loaded.kind === 'invalid') throw new CommandError(formatProblems(loaded.problems));
  const { settings, keysFile: file, digests } = loaded;
  return { settings, written, file, digest: file === undefined ? undefined : digests.get(file) };
}

/** The keys before an edit and after it, and their file. Both are the same where nothing was to be changed. */
export interface EditedKeys {
  readonly file: string;
  readonly before: LoadedKeys;
  readonly after: LoadedKeys;
}

/**
 * Edits the keys of a configuration. The whole configuration is validated before and, with the edits, before anything is
 * written, so that a broken file is never left behind. A keys file that is missing is made.
 *
 * @param choose the edits, with paths from the list of keys; it throws a CommandError where the keys do not allow it
 * @throws a CommandError that says why nothing was written; an Error when the file cannot be locked or written
 */
export async function editKeys(
  { file, env }: Configuration,
  choose: (before: LoadedKeys) => readonly YamlEdit[],
): Promise<EditedKeys> {
  const options = { file, env, makesKeysFile: true };
  const found = loadKeys(options);
  const keysFile = found.file;
  if (keysFile === undefined) {
    throw new CommandError(
      `${file} has no keys file; name one as \`keys.file\`, or say --directory for a key of the directory.`,
    );
  }
  return withLock<EditedKeys>(keysFile, () => {
    const text = readText(keysFile);
    // Another process may have edited the file before this one got the lock.
    const isAsFound = text !== undefined && digestOfContent(text) === found.digest;
    const before = isAsFound ? found : loadKeys(options);
    const root = keysFile === file ? ['keys'] : [];
    const edits = choose(before).map((edit) => ({ ...edit, path: [...root, ...edit.path] }));
    if (edits.length === 0) return { file: keysFile, before, after: before };
    const edited = editYaml(text ?? newFileText, edits);
    if (edited.kind === 'refused') {
      throw new CommandError(`${keysFile} stays as it is: ${edited.reason}. Edit it by hand.`);
    }
    const after = loadKeys({ ...options, drafts: new Map([[keysFile, edited.text]]) });
    if (readText(keysFile) !== text) {
      throw new CommandError(`${keysFile} was changed in the meantime; try again.`, 'passing');
    }
    replaceFile(keysFile, edited.text);
    return { file: keysFile, before, after };
  });
}

const newFileText = '# The API keys: a list, one entry a key. Only SHA-256 digests of secrets stand here.\n';

/** Undefined when there is no file. */
function readText(file: string): string | undefined {
  return existsSync(file) ? readFileSync(file, 'utf8') : undefined;
}
