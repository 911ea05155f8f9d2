import { basename, normalize } from 'node:path';
import { keyListSchema, type RawKey } from '../../keys/key-schema.ts';
import { tableOf } from '../../keys/key-table.ts';
import type { InForce } from '../../keys/plans/compile-key.ts';
import { isMapping } from '../../shared/structures/plain-data.ts';
import { checkKeys } from '../check/check-keys.ts';
import { shapeProblems } from '../schema/shape-problems.ts';
import type { ParsedYaml, YamlSource } from '../source/parse-yaml.ts';
import { textOf } from '../source/read-config-file.ts';
import type { LoadContext } from '../source/source-reader.ts';
import { fitPlans } from './key-uses.ts';
import { readPlainEntry } from './plain-entry.ts';
import { type ReadEntries, type ReadEntry, readEntries } from './read-entries.ts';
import { type SplitList, splitList } from './split-list.ts';
import { createSplitSource } from './split-source.ts';

/** A list whose keys are valid by themselves. */
export interface ReadKeyList {
  /** Undefined if all keys are in the key directory. */
  readonly file: string | undefined;
  /** Relative to the folder of the main file. */
  readonly shownAs?: string;
  /** The path of the list in its file. */
  readonly path: readonly PropertyKey[];
  readonly source: () => YamlSource;
  /** The keys as the file states them, in its order. */
  readonly written: () => readonly RawKey[];
  /** In the order of the file. */
  readonly lines: () => Uint32Array;
  /** All keys, and the indexes of their entries in the list, both sorted by id. @throws when there were problems */
  readonly table: (inForce: InForce) => Pick<ReadEntries, 'keys' | 'order'>;
  /** Reused after an edit; absent if the file was parsed as a whole. */
  readonly entries?: ReadEntries;
}

interface KeyListToRead extends LoadContext {
  /** Undefined if the main file is not valid. */
  readonly inForce: InForce | undefined;
  readonly before: ReadEntries | undefined;
}

/**
 * A keys file is split into entries, and only changed entries are read. The whole file is parsed if it cannot be split, or if it has a
 * problem in an entry or between entries.
 */
export function readKeyList({
  main,
  mainFile,
  fileOf,
  reader,
  problems,
  inForce,
  before,
}: KeyListToRead): ReadKeyList | undefined {
  const { keys, plans: definedPlans } = isMapping(main.value) ? main.value : {};
  if (Array.isArray(keys)) {
    // The schema of the main file has already checked these keys.
    problems.push(...checkKeys({ source: main, path: ['keys'], entries: keys }, definedPlans));
    const { data } = keyListSchema.safeParse(keys);
    const at = { file: mainFile, shownAs: basename(mainFile), path: ['keys'] };
    return data && wholeList(at, main, data);
  }
  const isMap = isMapping(keys);
  const path = isMap ? keys.file : keys;
  if (isMap && path === undefined && keys.directory === true)
    return wholeList({ file: undefined, path: ['keys'] }, main, []);
  if (typeof path !== 'string') return undefined;

  const at = { file: fileOf(path), shownAs: normalize(path), path: [] };
  const toParse = { file: at.file, kind: 'keys' } as const;
  const mentionedAt = main.placeOf(isMap ? ['keys', 'file'] : ['keys']);
  const bytes = reader.readBytes({ ...toParse, mentionedAt });
  if (bytes === undefined) return undefined;

  const parseEntry = (text: string) => reader.parsePart({ ...toParse, text });
  const readEntry: ReadEntry = (text) => readPlainEntry(text) ?? readOddEntry(text, parseEntry);
  const list = splitList(bytes);
  const source = () =>
    (list && createSplitSource(list, readEntry, parseEntry)) ??
    reader.parse({ ...toParse, text: textOf(bytes) });

  if (list !== undefined) {
    const isFixed = !hasVariables(list) && before !== undefined && !hasVariables(before.list);
    const known = isFixed ? before : undefined;
    // A half-written file usually lacks many entries.
    const onManyChanges = () => reader.requireSettled(at.file, bytes.length);
    const entries = readEntries(
      list,
      readEntry,
      inForce ?? { plans: new Map(), atMs: 0 },
      known,
      onManyChanges,
    );
    const areFit = entries && (!isMapping(definedPlans) || fitPlans(entries.uses, definedPlans));
    if (areFit) return splitKeyList(at, source, entries);
  }
  const whole = source();
  if (whole === undefined) return undefined;
  // A file of comments only is an empty list.
  const value = whole.value ?? [];
  const parsed = keyListSchema.safeParse(value);
  if (!parsed.success) problems.push(...shapeProblems(parsed.error, whole));
  if (Array.isArray(value))
    problems.push(...checkKeys({ source: whole, path: [], entries: value }, definedPlans));
  return parsed.data && wholeList(at, whole, parsed.data);
}

/** The values of variables may change, so equal bytes do not mean equal keys. */
function hasVariables({ bytes }: SplitList): boolean {
  return bytes.includes('${');
}

/** Undefined if the entry has a problem, may refer to other entries, or does not begin on its first line. */
function readOddEntry(text: string, parse: (text: string) => ParsedYaml): ReturnType<ReadEntry> {
  if (/^- +[#&*!\r\n]|[\s,[{]\*/.test(text)) return undefined;
  const parsed = parse(text);
  if (parsed.kind === 'invalid' || parsed.problems.length > 0) return undefined;
  const { value } = parsed.source;
  return Array.isArray(value) && value.length === 1 ? { value: value[0] } : undefined;
}

type ListPlace = Pick<ReadKeyList, 'file' | 'shownAs' | 'path'>;

function wholeList(at: ListPlace, source: YamlSource, keys: readonly RawKey[]): ReadKeyList {
  return {
    ...at,
    source: () => source,
    written: () => keys,
    lines: () => Uint32Array.from(keys, (_, index) => source.lineOf([...at.path, index])),
    table: (inForce) => tableOf(keys, inForce),
  };
}

function splitKeyList(
  at: ListPlace,
  source: () => YamlSource | undefined,
  entries: ReadEntries,
): ReadKeyList {
  const { list, keys, order } = entries;
  return {
    ...at,
    entries,
    source() {
      const read = source();
      if (read === undefined) throw new Error('a list that was read cannot be read again');
      return read;
    },
    written() {
      const written: RawKey[] = [];
      let rank = 0;
      for (const key of keys.stated()) {
        written[order[rank] ?? 0] = key;
        rank += 1;
      }
      return written;
    },
    lines: () => list.lines,
    table: () => entries,
  };
}
