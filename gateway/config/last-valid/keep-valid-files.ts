import { type Loaded, type LoadOptions, loadSettings, type ValidSettings } from '../load-settings.ts';
import type { Problem } from '../problems/problem.ts';
import {
  type Contents,
  type FileContent,
  type ReadFile,
  readConfigFile,
} from '../source/read-config-file.ts';
import { readStatedAccess, withoutRevoked } from './without-revoked.ts';

/** The files of the current settings. They replace files with an error when new settings are loaded. */
export interface LastValid extends Pick<ValidSettings, 'contents' | 'keysFile'> {
  readonly kept?: readonly KeptFile[] | undefined;
  readonly revoking?: Contents | undefined;
}

/** A file whose content on disk is rejected. Its last valid content stays in use. */
export interface KeptFile {
  readonly file: string;
  /** The digest of the rejected content, and of the main file on disk during the same load. */
  readonly digest: string;
  readonly mainDigest: string;
  /** Whether the file is invalid by itself, and does not just conflict with another file. */
  readonly isAlone: boolean;
  readonly problems: readonly Problem[];
  /** Whether the revocations in the rejected content take effect. */
  readonly revokes: boolean;
}

/** Some files may have their last valid content, not the content on disk. */
export interface KeepingSettings extends ValidSettings {
  /** Files whose content on disk is rejected. */
  readonly kept: readonly KeptFile[];
  /** New contents of the main file and the keys file that conflict with other files. Only their revocations apply. */
  readonly revoking: Contents;
  /** As `version`, but of the files on disk. */
  readonly versionOnDisk: string;
}

/**
 * Loads the configuration. If the files on disk are not valid together, some files keep their last valid content:
 *
 * 1. A file that is invalid by itself.
 * 2. If two files conflict, the file that has changed since the last valid configuration. If both have changed, the file that the problem
 *    names.
 * 3. If the settings are still invalid, every file except the keys file. If even that does not help, the keys file too.
 *
 * A rejected keys file or main file that is valid by itself still revokes access (`withoutRevoked`).
 *
 * @param lastValid absent at the start, when a broken file is an error. A rejected file is parsed again only after this file or the main
 * file has changed
 */
export function loadKeepingValid(
  options: Omit<LoadOptions, 'drafts' | 'inForce'>,
  lastValid: LastValid | undefined,
): Exclude<Loaded, ValidSettings> | KeepingSettings {
  const contents: Contents = lastValid?.contents ?? new Map();
  const inForce = new Map([...contents].map(([file, { digest }]) => [file, digest]));
  const read = new Map<string, ReadFile>();
  const kept = new Map<string, Fault[]>();

  /** All attempts use the same content. */
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

  /** The next files to reject, with their faults; empty when every changed file is already rejected. */
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
  /** The most likely file first. */
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
