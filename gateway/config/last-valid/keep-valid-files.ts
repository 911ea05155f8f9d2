import { type Loaded, type LoadOptions, loadSettings, type ValidSettings } from '../load-settings.ts';
import type { Problem } from '../problems/problem.ts';
import {
  type Contents,
  type FileContent,
  type ReadFile,
  readConfigFile,
} from '../source/read-config-file.ts';
import { readStatedAccess, withoutRevoked } from './without-revoked.ts';

/** What a load falls back on: what the settings in force were made of. */
export type LastValid = Pick<ValidSettings, 'contents' | 'keysFile'> &
  Partial<Pick<KeepingSettings, 'kept' | 'revoking'>>;

/** A file whose content on disk is not in force. */
export interface KeptFile {
  readonly file: string;
  /** Of the content on disk, and of that of the main file. */
  readonly digest: string;
  readonly mainDigest: string;
  /** Whether no other file than these two can be at fault. */
  readonly isAlone: boolean;
  /** Why that content is not in force. */
  readonly problems: readonly Problem[];
  /** Whether the keys and tokens that it disables or leaves out are refused all the same. */
  readonly revokes: boolean;
}

/** Valid settings, some of whose files may have kept their last valid content. */
export interface KeepingSettings extends ValidSettings {
  /** None where everything on disk is in force. */
  readonly kept: readonly KeptFile[];
  /** Newer contents of the main file and the keys file that do not fit the others. Only what they revoke is in force. */
  readonly revoking: Contents;
  /** As `version`, of what is on disk, as far as it was read. */
  readonly versionOnDisk: string;
}

/**
 * Loads the configuration. When it is not valid, files at fault keep the content that they have in the settings in force, and all
 * others are loaded as they are on disk:
 *
 * 1. A file that is broken by itself is kept, as a whole.
 * 2. Of files that do not fit together, the one that has the problem is kept; if it has not changed, the file that it does not fit.
 * 3. If that does not lead to valid settings, every file is kept but the keys file, and at last the keys file too.
 *
 * A kept keys file or main file that is valid by itself still revokes: `withoutRevoked`.
 *
 * @param lastValid absent at the start: then a broken file is an error. A file that it has kept is not parsed again while that file
 *   and the main file stay the same
 */
export function loadKeepingValid(
  options: Omit<LoadOptions, 'drafts' | 'inForce'>,
  lastValid: LastValid | undefined,
): Exclude<Loaded, ValidSettings> | KeepingSettings {
  const contents: Contents = lastValid?.contents ?? new Map();
  const inForce = new Map([...contents].map(([file, { digest }]) => [file, digest]));
  const read = new Map<string, ReadFile>();
  const onDisk = new Map<string, string>();
  const kept = new Map<string, Fault[]>();

  /** All attempts of one load use the same content. An edit between two attempts would otherwise seem to be loaded. */
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
    const loaded = loadSettings({ ...options, drafts, inForce, readFile: readOnce });
    for (const [file, digest] of loaded.digests) if (!drafts.has(file)) onDisk.set(file, digest);
    return loaded;
  }

  function digestOnDisk(file: string): string {
    const digest = onDisk.get(file) ?? readOnce(file).digest;
    onDisk.set(file, digest);
    return digest;
  }

  const canKeep = (file: string) =>
    !kept.has(file) && inForce.has(file) && inForce.get(file) !== digestOnDisk(file);

  /** The further files that are kept because of these faults, each with its own; none when nothing is left. */
  function filesToKeep(faults: readonly Fault[]): ReadonlyMap<string, Fault[]> {
    // The main file names the others, so it may always be at fault.
    const byFile = Map.groupBy(faults, ({ suspects }) => [...suspects, options.file].find(canKeep) ?? '');
    byFile.delete('');
    if (byFile.size > 0) return byFile;
    const left = [...contents.keys()].filter(canKeep);
    const others = left.filter((file) => file !== lastValid?.keysFile);
    return new Map((others.length > 0 ? others : left).map((file) => [file, faults.slice(0, 1)]));
  }

  for (const { file, digest, mainDigest, isAlone, problems } of lastValid?.kept ?? []) {
    const isSame = digestOnDisk(file) === digest && digestOnDisk(options.file) === mainDigest;
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
    if (further.size === 0) return first.kind === 'invalid' ? { ...first, digests: onDisk } : loaded;
    for (const [file, its] of further) kept.set(file, its);
    loaded = load();
  }
  return {
    ...withKept(loaded, { options, lastValid, kept, onDisk, readOnce }),
    versionOnDisk: first.version,
  };
}

interface Fault {
  readonly problem: Problem;
  /** The files that may be at fault, the likeliest first. */
  readonly suspects: readonly string[];
}

function withKept(
  loaded: ValidSettings,
  {
    options: { file: mainFile, env },
    lastValid,
    kept,
    onDisk,
    readOnce,
  }: {
    readonly options: Pick<LoadOptions, 'file' | 'env'>;
    readonly lastValid: LastValid | undefined;
    readonly kept: ReadonlyMap<string, readonly Fault[]>;
    readonly onDisk: ReadonlyMap<string, string>;
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
    digests: onDisk,
    kept: [...kept].map(([file, faults]) => ({
      file,
      digest: onDisk.get(file) ?? '',
      mainDigest: onDisk.get(mainFile) ?? '',
      isAlone: faults.every(({ suspects }) => suspects.every((suspect) => suspect === file)),
      problems: faults.map(({ problem }) => problem),
      revokes: revoking.has(file),
    })),
    revoking,
  };
}
