import { type Loaded, type LoadOptions, loadSettings, type ValidSettings } from '../load-settings.ts';
import type { Problem } from '../problems/problem.ts';
import {
  type Contents,
  type FileContent,
  type ReadFile,
  readConfigFile,
} from '../source/read-config-file.ts';
import { readStatedAccess, withoutRevoked } from './without-revoked.ts';

/** The files of the current settings. When new settings are loaded, these files replace files with an error. */
export interface LastValid extends Pick<ValidSettings, 'contents' | 'keysFile'> {
  readonly kept?: readonly KeptFile[] | undefined;
  readonly revoking?: Contents | undefined;
}

/** A file whose content on disk is rejected. The gateway continues to use the last valid content of this file. */
export interface KeptFile {
  readonly file: string;
  /** The digest of this file's rejected content, and the digest that the main file on disk had during the same load. */
  readonly digest: string;
  readonly mainDigest: string;
  /** Whether the file is invalid by itself. The value is false if the file conflicts with another file. */
  readonly isAlone: boolean;
  /** Why the content on disk is rejected. */
  readonly problems: readonly Problem[];
  /** Whether the revocations in the rejected content take effect. */
  readonly revokes: boolean;
}

/** Valid settings. For some files, the settings may come from the last valid content and not from the content on disk. */
export interface KeepingSettings extends ValidSettings {
  /** The files whose content on disk is rejected. The list is empty when every file on disk is in use. */
  readonly kept: readonly KeptFile[];
  /**
   * New contents of the main file and the keys file that conflict with other files. The gateway applies only the revocations in these
   * contents.
   */
  readonly revoking: Contents;
  /** The same digest as `version`, but computed from the files on disk. */
  readonly versionOnDisk: string;
}

/**
 * Loads the configuration. If the files on disk are not valid together, the last valid content of some files is used. All other files are
 * read from disk. The following rules select the files whose last valid content is used:
 *
 * 1. The last valid content of a file is used if the file is invalid by itself.
 *
 * 2. If two files conflict, at least one of them has changed since the last valid configuration. The last valid content of the changed file
 *    is used. If both files have changed, the last valid content of the file that the problem names is used.
 *
 * 3. If the settings are still invalid, the last valid content of every file except the keys file is used. If the settings are invalid even
 *    with these contents, the last valid content of the keys file is used too.
 *
 * A rejected keys file or main file that is valid by itself still revokes access (`withoutRevoked`).
 *
 * @param lastValid absent at the start, when a broken file is an error. A rejected file is parsed again
 *   only after this file or the main file has changed
 */
export function loadKeepingValid(
  options: Omit<LoadOptions, 'drafts' | 'inForce'>,
  lastValid: LastValid | undefined,
): Exclude<Loaded, ValidSettings> | KeepingSettings {
  const contents: Contents = lastValid?.contents ?? new Map();
  const inForce = new Map([...contents].map(([file, { digest }]) => [file, digest]));
  const read = new Map<string, ReadFile>();
  const kept = new Map<string, Fault[]>();

  /** Reads each file once, so that all attempts use the same content. */
  function readOnce(file: string): ReadFile {
    const result = read.get(file) ?? readConfigFile(file);
    read.set(file, result);
    return result;
  }

  function load(): Loaded {
    const drafts = new Map<string, FileContent>();
    for (const file of kept.keys()) {
      const content = contents.get(file);
      if (content !== undefined) drafts.set(file, content);
    }
    return loadSettings({ ...options, drafts, inForce, readFile: readOnce });
  }

  const digestsOnDisk = () => new Map([...read].map(([file, { digest }]) => [file, digest]));

  const canKeep = (file: string) =>
    !kept.has(file) && inForce.has(file) && inForce.get(file) !== readOnce(file).digest;

  /**
   * Selects the next files to reject, each with its faults. Returns an empty map when every changed file is already rejected.
   */
  function filesToKeep(faults: readonly Fault[]): ReadonlyMap<string, Fault[]> {
    // Any fault may come from the main file, because it names the other files.
    const byFile = Map.groupBy(faults, ({ suspects }) => [...suspects, options.file].find(canKeep) ?? '');
    byFile.delete('');
    if (byFile.size > 0) return byFile;
    const left = [...contents.keys()].filter(canKeep);
    const others = left.filter((file) => file !== lastValid?.keysFile);
    return new Map((others.length > 0 ? others : left).map((file) => [file, faults.slice(0, 1)]));
  }

  for (const { file, digest, mainDigest, isAlone, problems } of lastValid?.kept ?? []) {
    const isSame = readOnce(file).digest === digest && readOnce(options.file).digest === mainDigest;
    if (isSame && isAlone && canKeep(file))
      kept.set(
        file,
        problems.map((problem) => ({ problem, suspects: [file] })),
      );
  }
  const first = load();
  let loaded = first;
  while (loaded.kind === 'invalid') {
    const { problems, suspects } = loaded;
    const faults = problems.map((problem, index) => ({ problem, suspects: suspects[index] ?? [] }));
    const further = filesToKeep(faults);
    if (further.size === 0) return first.kind === 'invalid' ? { ...first, digests: digestsOnDisk() } : loaded;
    for (const [file, its] of further) kept.set(file, its);
    loaded = load();
  }
  return {
    ...withKept(loaded, { options, lastValid, kept, readOnce }),
    digests: digestsOnDisk(),
    versionOnDisk: first.version,
  };
}

interface Fault {
  readonly problem: Problem;
  /** The files that may be at fault, the most likely file first. */
  readonly suspects: readonly string[];
}

function withKept(
  loaded: ValidSettings,
  {
    options: { file: mainFile, env },
    lastValid,
    kept,
    readOnce,
  }: {
    readonly options: Pick<LoadOptions, 'file' | 'env'>;
    readonly lastValid: LastValid | undefined;
    readonly kept: ReadonlyMap<string, readonly Fault[]>;
    readonly readOnce: (file: string) => ReadFile;
  },
): Omit<KeepingSettings, 'versionOnDisk'> {
  const { keysFile, entries } = loaded;
  const revoking = new Map<string, FileContent>();
  let { settings } = loaded;
  for (const file of new Set([mainFile, keysFile])) {
    if (file === undefined || !kept.has(file)) continue;
    const now = readOnce(file);
    const before = lastValid?.revoking?.get(file);
    for (const content of [now.kind === 'read' ? now : undefined, before]) {
      const access = content && readStatedAccess({ file, content, mainFile, env, before: entries });
      if (content === undefined || access === undefined) continue;
      revoking.set(file, content);
      settings = withoutRevoked(settings, access, content.digest);
      break;
    }
  }
  return {
    ...loaded,
    settings,
    version: settings.version,
    kept: [...kept].map(([file, faults]) => ({
      file,
      digest: readOnce(file).digest,
      mainDigest: readOnce(mainFile).digest,
      isAlone: faults.every(({ suspects }) => suspects.every((suspect) => suspect === file)),
      problems: faults.map(({ problem }) => problem),
      revokes: revoking.has(file),
    })),
    revoking,
  };
}
