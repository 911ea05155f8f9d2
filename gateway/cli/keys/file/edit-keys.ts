import { existsSync, readFileSync } from 'node:fs';
import { readPlainEntry } from '../../../config/keys/plain-entry.ts';
import { entryText, splitList } from '../../../config/keys/split-list.ts';
import {
  type LoadOptions,
  loadSettings,
  type ValidSettings,
  type WrittenKey,
} from '../../../config/load-settings.ts';
import { formatProblems } from '../../../config/problems/format-problems.ts';
import { digestOfContent } from '../../../config/source/read-config-file.ts';
import type { Settings } from '../../../shared/model.ts';
import { CommandError } from '../../output/command-error.ts';
import { requireConfig } from '../../start/named-config.ts';
import { type EditedYaml, editYaml, type YamlEdit } from './edit-yaml.ts';
import { fileBehind, replaceFile } from './replace-file.ts';
import { withLock } from './with-lock.ts';

export type Configuration = Pick<LoadOptions, 'file' | 'env'>;

/** @throws a CommandError if no configuration was named and this folder has none */
export function configurationOf(named: string | undefined): Configuration {
  return { file: requireConfig(named), env: process.env };
}

export interface LoadedKeys {
  readonly settings: Settings;
  /** The keys as the file states them, in the order of the file. */
  readonly written: readonly WrittenKey[];
  /** The keys file or the main configuration file; undefined if all keys are in the key directory. */
  readonly file: string | undefined;
  /** The digest of the content of `file`. */
  readonly digest: string | undefined;
  /** The parsed entries. If a later call gets these entries as its option `before`, only changed entries are parsed. */
  readonly entries: ValidSettings['entries'];
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
  const { settings, keysFile: file, digests, entries } = loaded;
  return { settings, written, file, digest: file === undefined ? undefined : digests.get(file), entries };
}

/** The keys before and after an edit, and their file. If the edit was empty, `after` is the same object as `before`. */
export interface EditedKeys {
  readonly file: string;
  readonly before: LoadedKeys;
  readonly after: LoadedKeys;
}

/** Thrown if no file contains the key, but the configuration has a key directory that may contain the key. */
export class NotInFile extends CommandError {
  readonly file: string;

  constructor(message: string, file: string) {
    super(message);
    this.file = file;
  }
}

/**
 * Edits the keys of a configuration. Before the function writes the file, it validates the whole configuration, first without and then with
 * the edits. The function therefore never writes an invalid file. If the keys file is missing, the function creates the file.
 *
 * @param choose returns the edits, with paths from the list of keys, or throws a CommandError
 * @param onlyKeys for edits that need no operations: a broken API document or certificate does not prevent them
 * @param prepare runs before the file is locked
 * @param dryRun checks the edits in the same way, but does not write the file
 * @throws a CommandError if nothing was written; an Error when the file cannot be locked or written
 */
export async function editKeys(
  { file, env }: Configuration,
  choose: (before: LoadedKeys & { readonly file: string }) => readonly YamlEdit[],
  {
    onlyKeys = false,
    prepare = () => {},
    dryRun = false,
  }: {
    readonly onlyKeys?: boolean;
    readonly prepare?: (found: LoadedKeys) => Promise<void> | void;
    readonly dryRun?: boolean;
  } = {},
): Promise<EditedKeys> {
  const options = { file, env, makesKeysFile: true, onlyKeys };
  const found = loadKeys(options);
  await prepare(found);
  const keysFile = found.file;
  if (keysFile === undefined) {
    throw new NotInFile(
      `${file} names no keys file: set \`keys.file\`, or use --directory for a key of the key directory.`,
      file,
    );
  }
  const edit = (): EditedKeys => {
    const text = readText(keysFile);
    // Another process may have edited the file while this process waited for the lock.
    const isAsFound = text !== undefined && digestOfContent(text) === found.digest;
    const before = isAsFound ? found : loadKeys(options);
    const root = keysFile === file ? ['keys'] : [];
    const edits = choose({ ...before, file: keysFile }).map((edit) => ({
      ...edit,
      path: [...root, ...edit.path],
    }));
    if (edits.length === 0) return { file: keysFile, before, after: before };
    const edited = editByEntry(text ?? newFileText, edits) ?? editYaml(text ?? newFileText, edits);
    if (edited.kind === 'refused') {
      throw new CommandError(`${keysFile} stays as it is: ${edited.reason}. Edit it by hand.`);
    }
    const drafts = new Map([[keysFile, edited.text]]);
    const after = loadKeys({ ...options, drafts, before: before.entries });
    if (readText(keysFile) !== text) {
      throw new CommandError(`${keysFile} was changed in the meantime; try again.`, 'passing');
    }
    if (!dryRun) replaceFile(keysFile, edited.text);
    return { file: keysFile, before, after };
  };
  // Another process may open the file through a symbolic link. The lock is therefore next to the file itself, and not next to the link.
  return dryRun ? edit() : withLock(fileBehind(keysFile), edit);
}

/**
 * Edits a list of keys like `editYaml`, but parses only the edited entries. Returns undefined if the text cannot be split into entries, or
 * if an edited entry may depend on other entries. New entries are added after the last entry.
 */
function editByEntry(text: string, edits: readonly YamlEdit[]): EditedYaml | undefined {
  const list = splitList(Buffer.from(text));
  if (list === undefined) return undefined;
  const { bytes, starts, lines } = list;
  const editsOf = Map.groupBy(edits, ({ path: [index] }) => index ?? lines.length - 1);
  const parts: Buffer[] = [];
  let copied = 0;
  for (const [index, ofEntry] of [...editsOf].sort(([a], [b]) => Number(a) - Number(b))) {
    if (typeof index !== 'number' || index >= lines.length) return undefined;
    const entry = entryText(list, index);
    if (readPlainEntry(entry) === undefined) return undefined;
    const edited = editYaml(
      entry,
      ofEntry.map((edit) => ({ ...edit, path: edit.path.length === 0 ? [] : [0, ...edit.path.slice(1)] })),
    );
    if (edited.kind === 'refused') return edited;
    parts.push(bytes.subarray(copied, starts[index]), Buffer.from(edited.text));
    copied = starts[index + 1] ?? bytes.length;
  }
  return { kind: 'edited', text: Buffer.concat([...parts, bytes.subarray(copied)]).toString() };
}

const newFileText =
  '# The list of API keys, with one entry for each key. The list contains only SHA-256 digests of secrets.\n';

function readText(file: string): string | undefined {
  return existsSync(file) ? readFileSync(file, 'utf8') : undefined;
}
