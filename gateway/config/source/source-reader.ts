import { hash } from 'node:crypto';
import { dirname, isAbsolute, join, relative } from 'node:path';
import { nameOf } from '../../shared/schema/schema-faults.ts';
import { configSizes } from '../config-sizes.ts';
import type { Place, Problem } from '../problems/problem.ts';
import type { FileKind } from '../problems/show-line.ts';
import { type ParsedYaml, parseYaml, type YamlSource } from './parse-yaml.ts';
import {
  type Contents,
  type Digests,
  digestOfContent,
  type FileContent,
  missing,
  type ReadFile,
  readConfigFile,
  textOf,
  UnsettledContent,
} from './read-config-file.ts';
import { substituteVariables, type Variable } from './substitute-variables.ts';

interface FileToRead {
  readonly file: string;
  readonly kind: FileKind;
  readonly mentionedAt: Place;
}

interface NamedFile {
  readonly file: string;
  readonly main: YamlSource;
  /** The path of the setting that names the file. */
  readonly path: readonly PropertyKey[];
}

interface TextToParse {
  readonly file: string;
  readonly kind: FileKind;
  readonly text: string;
}

type SourceReader = ReturnType<typeof createSourceReader>;

/** Shared by all steps of a load: the main file, the reader of the other files, and the problems found so far. */
export interface LoadContext {
  readonly main: YamlSource;
  readonly mainFile: string;
  readonly fileOf: (path: string) => string;
  readonly reader: SourceReader;
  readonly problems: Problem[];
}

export function besideFile(mainFile: string, path: string): string {
  return isAbsolute(path) ? path : join(dirname(mainFile), path);
}

/**
 * Reads the files of a configuration once, and records every file and variable that the settings depend on.
 *
 * @param drafts contents to use instead of the files on disk
 * @param makesKeysFile treats a missing keys file as empty
 * @param onRead called before a file is parsed, with the digest of its content; not called for drafts
 * @param settled digests of complete contents, by default all; `parse` and `requireSettled` throw for a long text of another content
 */
export function createSourceReader(options: {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly drafts: ReadonlyMap<string, string | FileContent> | undefined;
  readonly makesKeysFile: boolean;
  readonly onRead: ((file: string, digest: string) => void) | undefined;
  readonly readFile?: ((file: string) => ReadFile) | undefined;
  readonly settled?: ReadonlySet<string> | undefined;
}) {
  const { env, drafts, makesKeysFile, onRead, readFile = readConfigFile, settled } = options;
  const problems: Problem[] = [];
  const digests = new Map<string, string>();
  const contents = new Map<string, FileContent>();
  const variables = new Map<string, Variable>();
  /** Environment variables whose values are part of the configuration's version. */
  const versioned = new Set<string>();

  function readContent(file: string): ReadFile {
    const draft = drafts?.get(file);
    const result = draft === undefined ? readFile(file) : contentOf(draft);
    digests.set(file, result.digest);
    if (result.kind === 'read') contents.set(file, result);
    return result;
  }

  function readNamed(file: string): ReadFile {
    const result = readContent(file);
    if (!drafts?.has(file)) onRead?.(file, result.digest);
    return result;
  }

  /** For files that are not YAML. */
  function readText({ file, main, path }: NamedFile): string | undefined {
    const result = readNamed(file);
    if (result.kind === 'read') return textOf(result.bytes);
    const message = `${nameOf(path)}: this file ${result.reason}`;
    problems.push({ ...main.placeOf(path), message, files: [file] });
    return undefined;
  }

  /** An environment variable, or the content of the file that `NAME_FILE` names. @param isAddress whether the version ignores the value */
  function lookUp(name: string, isAddress: boolean): Variable {
    if (!isAddress) versioned.add(name);
    const known = variables.get(name);
    if (known !== undefined) return known;
    const variable = lookUpVariable(name);
    variables.set(name, variable);
    return variable;
  }

  function lookUpVariable(name: string): Variable {
    const value = ownValue(env, name);
    if (value !== undefined) return { kind: 'set', value };
    const secretFile = ownValue(env, `${name}_FILE`);
    if (!secretFile) return { kind: 'unset' };
    const result = readContent(secretFile);
    if (result.kind === 'unreadable') {
      return {
        kind: 'unreadable',
        file: secretFile,
        reason: `the file that ${name}_FILE names ${result.reason}`,
      };
    }
    // The final line break, which editors and `echo` add, is not part of the secret.
    return { kind: 'set', value: textOf(result.bytes).replace(/\r?\n$/, '') };
  }

  function readBytes({ file, kind, mentionedAt }: FileToRead): Buffer | undefined {
    const result = readNamed(file);
    if (result.kind === 'read') return result.bytes;
    const lacksKeys = kind === 'keys' && result.reason === missing;
    if (lacksKeys && makesKeysFile) return Buffer.alloc(0);
    const advice = lacksKeys ? adviceForKeys : '';
    problems.push({ ...mentionedAt, message: `this file ${result.reason}${advice}`, files: [file] });
    return undefined;
  }

  /**
   * A part of the content from `readBytes`. `problems()` does not include its problems, because their line numbers are relative to the
   * part.
   */
  function parsePart(options: TextToParse): ParsedYaml {
    const { kind } = options;
    const substitute = (text: string, path: readonly unknown[]) => {
      const isAddress = kind === 'settings' && addressPaths.has(path.join('.'));
      return substituteVariables(text, (name) => lookUp(name, isAddress));
    };
    return parseYaml({ ...options, ...(kind !== 'api' && { substitute }) });
  }

  /** @throws UnsettledContent when the content of the file is long and may be half written */
  function requireSettled(file: string, length: number): void {
    const isSettled = !settled || drafts?.has(file) || settled.has(digests.get(file) ?? '');
    if (!isSettled && length > configSizes.parsedAtOnceCharsMax) throw new UnsettledContent(file);
  }

  /** The whole content from `readBytes`. */
  function parse(options: TextToParse): YamlSource | undefined {
    requireSettled(options.file, options.text.length);
    const parsed = parsePart(options);
    problems.push(...parsed.problems);
    return parsed.kind === 'parsed' ? parsed.source : undefined;
  }

  return {
    /**
     * Undefined if reading fails; `problems()` then has the reasons.
     *
     * @param options.kind `${NAME}` is filled in except in the API document, whose texts may contain it as an example
     * @param options.mentionedAt the place that names the file, where a missing file is reported
     */
    read(options: FileToRead): YamlSource | undefined {
      const bytes = readBytes(options);
      return bytes && parse({ ...options, text: textOf(bytes) });
    },
    readBytes,
    parse,
    parsePart,
    requireSettled,
    readText,
    lookUp,
    /** From reading files, parsing them and filling in variables. */
    problems: (): readonly Problem[] => problems,
    /** Every requested file, including missing files and files that a `NAME_FILE` variable names. */
    digests: (): Digests => digests,
    contents: (): Contents => contents,
    /**
     * A digest (12 hex digits) of the files' names, their contents and the variables that were filled in. Variables in the addresses of the
     * listeners are left out, because gateways on one host have different ports.
     */
    version() {
      // Relative to the main file, so that replicas in different folders get the same version.
      const [mainFile = ''] = digests.keys();
      const named = [...digests].map(([file, digest]) => [relative(dirname(mainFile), file), digest]);
      const filledIn = [...variables].filter(([name]) => versioned.has(name));
      return hash('sha256', JSON.stringify([named, filledIn]), 'hex').slice(0, 12);
    },
  };
}

/** Addresses of listeners. */
const addressPaths: ReadonlySet<string> = new Set(['listen.host', 'listen.port', 'admin.host', 'admin.port']);

function contentOf(draft: string | FileContent): ReadFile {
  if (typeof draft !== 'string') return { kind: 'read', ...draft };
  return { kind: 'read', bytes: Buffer.from(draft), digest: digestOfContent(draft) };
}

/**
 * An operator must create the keys file. If the repository contained one, operators would commit their keys. The message does not repeat
 * the path, because an operator may have written a secret in its place.
 */
const adviceForKeys = ': the command `keys create` makes it with the first key; an empty file will also do';

function ownValue(env: Readonly<Record<string, string | undefined>>, name: string): string | undefined {
  return Object.hasOwn(env, name) ? env[name] : undefined;
}
