import { isUtf8 } from 'node:buffer';
import { hash } from 'node:crypto';
import { accessSync, closeSync, constants, fstatSync, openSync, readFileSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { configSizes } from '../config-sizes.ts';

/**
 * The content of a file, which is UTF-8, or the reason why there is none, in words that follow "the file …". Where the bytes were not read,
 * the reason stands in for their digest.
 */
export type ReadFile =
  | ({ readonly kind: 'read' } & FileContent)
  | { readonly kind: 'unreadable'; readonly reason: string; readonly digest: string };

export interface FileContent {
  readonly bytes: Buffer;
  readonly digest: string;
}

/** The content of each file that could be read. */
export type Contents = ReadonlyMap<string, FileContent>;

/** The digest of each file's content. */
export type Digests = ReadonlyMap<string, string>;

/** Reads one configuration file of at most `configSizes.fileBytesMax`; `textOf` makes text of it. */
export function readConfigFile(file: string): ReadFile {
  let descriptor: number;
  try {
    // To open a named pipe would wait for its writer for ever. Non-blocking, it opens, and is refused as no regular file.
    descriptor = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    return unread(reasonOf(error, file));
  }
  try {
    const unfit = unfitReason(fstatSync(descriptor));
    return unfit === undefined ? decode(readFileSync(descriptor)) : unread(unfit);
  } catch (error) {
    return unread(reasonOf(error, file));
  } finally {
    closeSync(descriptor);
  }
}

function unread(reason: string): ReadFile {
  return { kind: 'unreadable', reason, digest: reason };
}

function decode(bytes: Buffer): ReadFile {
  const digest = digestOfContent(bytes);
  if (!isUtf8(bytes)) return { kind: 'unreadable', reason: 'is not UTF-8 text', digest };
  return { kind: 'read', bytes, digest };
}

/** Without a byte order mark. */
export function textOf(bytes: Uint8Array): string {
  return utf8.decode(bytes);
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

export function digestOfContent(content: string | Uint8Array): string {
  return hash('sha256', content, 'hex');
}

/** Why a file that exists is not read, in words that follow "the file …"; undefined when it is. */
export function unfitReason(stats: {
  readonly isFile: () => boolean;
  readonly isDirectory: () => boolean;
  readonly size: number | bigint;
}): string | undefined {
  if (stats.isDirectory()) {
    return 'is a directory; Docker makes one where a file to mount is missing: remove it and write the file';
  }
  if (!stats.isFile()) return 'is not a regular file';
  return stats.size > configSizes.fileBytesMax
    ? `is larger than ${configSizes.fileBytesMax} bytes`
    : undefined;
}

/** The reason of a file that is not there. */
export const missing = 'does not exist';

/** Why a file could not be read, in words that follow "the file …". */
export function reasonOf(error: unknown, file: string): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  switch (code) {
    case 'ENOENT':
    case 'ENOTDIR':
      return missing;
    case 'EACCES':
      return `may not be read by this user${denial(file)}`;
    default:
      return `cannot be read (${code ?? String(error)})`;
  }
}

/**
 * Which part of the path is closed to this process, and what opens it. A clone made under umask 077 is closed to the
 * unprivileged user of a container.
 */
function denial(file: string): string {
  try {
    const folder = foldersOf(file).find((path) => !isOpen(path, constants.X_OK));
    if (folder !== undefined)
      return `: the folder ${folder} ${ownerOf(folder)}; \`chmod a+rX ${folder} ${folder}/*\` opens it`;
    if (!isOpen(file, constants.R_OK)) {
      return `: it ${ownerOf(file)}; \`chmod a+r ${file}\` opens it to everybody, \`chown\` to the user who runs this`;
    }
    return ', though owner and mode allow it; SELinux, for one, wants a mount with `:z`';
  } catch {
    // It changed in the meantime.
    return '';
  }
}

/** The folders above a file, from the outermost. */
function foldersOf(file: string): string[] {
  const folder = dirname(file);
  return folder === file || folder === '.' ? [folder] : [...foldersOf(folder), folder];
}

function isOpen(path: string, mode: number): boolean {
  try {
    accessSync(path, mode);
    return true;
  } catch {
    return false;
  }
}

function ownerOf(path: string): string {
  const { uid, mode } = statSync(path);
  return `belongs to user ${uid} and has mode ${(mode & 0o7777).toString(8)}`;
}
