import { dirname, isAbsolute, join } from 'node:path';
import type { Operation, Settings } from '../model.ts';
import { buildSettings } from './build-settings.ts';
import { checkKeys } from './check-keys.ts';
import { isMapping } from './is-mapping.ts';
import type { YamlSource } from './parse-yaml.ts';
import { type Problem, wholeFile } from './problem.ts';
import { readOperations } from './read-operations.ts';
import { keyListSchema, type RawKey, type RawSettings, settingsSchema } from './settings-schema.ts';
import { shapeProblems } from './shape-problems.ts';
import { createSourceReader, type SourceReader } from './source-reader.ts';

export interface LoadOptions {
  /** The main configuration file; the other files are found through it. */
  readonly file: string;
  /** What `${NAME}` is filled from. */
  readonly env: Readonly<Record<string, string | undefined>>;
}

export type Loaded = ValidSettings | InvalidSettings;

export interface ValidSettings {
  readonly kind: 'valid';
  readonly settings: Settings;
  /** What works but is probably not meant, one sentence each. */
  readonly warnings: readonly string[];
  /** Every file that was read. */
  readonly files: readonly string[];
  /** A digest of all that was read; the same as `settings.version`. */
  readonly version: string;
}

export interface InvalidSettings {
  readonly kind: 'invalid';
  readonly problems: readonly Problem[];
  /** Every file that was read, those included that are missing. */
  readonly files: readonly string[];
  readonly version: string;
}

/** More problems than this help nobody; the last one then says how many are left out. */
const problemsMax = 100;

/**
 * Loads and validates the whole configuration: the main file, its keys, its OpenAPI document. Reports every problem it
 * can find at once. The result is plain data that can cross a thread.
 */
export function loadSettings({ file, env }: LoadOptions): Loaded {
  const reader = createSourceReader(env);
  const problems: Problem[] = [];

  const main = reader.read({ file, substitute: true, mentionedAt: wholeFile(file) });
  problems.push(...main.problems);
  const raw = main.source && parseShape(main.source, problems);
  const keys = main.source && readKeys(main.source, file, reader, problems);
  const operations = main.source && readApi(main.source, file, reader, problems);

  const files = reader.files();
  const version = reader.version();
  if (raw === undefined || keys === undefined || operations === undefined || problems.length > 0) {
    return { kind: 'invalid', problems: limitProblems(problems), files, version };
  }
  const settings = buildSettings({ raw, keys, operations, version });
  const warnings =
    settings.keys.size === 0 ? [`${file}: there is no key yet; every request is answered 401`] : [];
  return { kind: 'valid', settings, warnings, files, version };
}

function parseShape(source: YamlSource, problems: Problem[]): RawSettings | undefined {
  const parsed = settingsSchema.safeParse(source.value);
  if (!parsed.success) {
    problems.push(...shapeProblems(parsed.error, source));
    return undefined;
  }
  if (parsed.data.bans.max < parsed.data.bans.for) {
    problems.push({
      ...source.placeOf(['bans', 'max']),
      message: '`bans.max` must not be shorter than `bans.for`',
    });
  }
  return parsed.data;
}

/** The keys, from the main file or their own. The shape of an inline list was checked with the main file. */
function readKeys(
  main: YamlSource,
  mainFile: string,
  reader: SourceReader,
  problems: Problem[],
): readonly RawKey[] | undefined {
  const { keys, plans } = isMapping(main.value) ? main.value : {};
  if (Array.isArray(keys)) {
    problems.push(...checkKeys({ source: main, path: ['keys'], entries: keys }, plans));
    return keyListSchema.safeParse(keys).data;
  }
  if (typeof keys !== 'string') return undefined;

  const { source, problems: found } = reader.read({
    file: besideFile(mainFile, keys),
    substitute: true,
    mentionedAt: main.placeOf(['keys']),
  });
  problems.push(...found);
  if (source === undefined) return undefined;
  // A file of comments only is an empty list.
  const entries = source.value ?? [];
  const parsed = keyListSchema.safeParse(entries);
  if (!parsed.success) problems.push(...shapeProblems(parsed.error, source));
  if (Array.isArray(entries)) problems.push(...checkKeys({ source, path: [], entries }, plans));
  return parsed.data;
}

function readApi(
  main: YamlSource,
  mainFile: string,
  reader: SourceReader,
  problems: Problem[],
): readonly Operation[] | undefined {
  const api = isMapping(main.value) ? main.value.api : undefined;
  if (typeof api !== 'string') return undefined;
  // Its texts may show a `${…}` of somebody else's, so nothing is filled in here.
  const { source, problems: found } = reader.read({
    file: besideFile(mainFile, api),
    substitute: false,
    mentionedAt: main.placeOf(['api']),
  });
  problems.push(...found);
  if (source === undefined) return undefined;
  const read = readOperations(source);
  problems.push(...read.problems);
  return read.operations;
}

function besideFile(mainFile: string, path: string): string {
  return isAbsolute(path) ? path : join(dirname(mainFile), path);
}

/** One problem a place: what follows from an unset variable or a wrong type is no news. */
function limitProblems(problems: readonly Problem[]): Problem[] {
  const byPlace = new Map<string, Problem>();
  for (const problem of problems) {
    const place = `${problem.file}:${problem.line}:${problem.column}`;
    if (!byPlace.has(place)) byPlace.set(place, problem);
  }
  const distinct = [...byPlace.values()];
  const left = distinct.length - problemsMax;
  const last = distinct[problemsMax];
  if (last === undefined) return distinct;
  return [
    ...distinct.slice(0, problemsMax),
    { ...last, message: `… and ${left} more problems from here on` },
  ];
}
