import { isUtf8 } from 'node:buffer';
import { hash } from 'node:crypto';
import { accessSync, closeSync, constants, fstatSync, openSync, readFileSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { configSizes } from '../config-sizes.ts';

/** Thrown because a long text may be half written. */
export class UnsettledContent extends Error {}

/**
 * The UTF-8 content, or the reason why it could not be read, which completes a sentence that begins with "the file". If the bytes could not
 * be read, the reason also serves as the digest.
 */
export type ReadFile =
  | ({ readonly kind: 'read' } & FileContent)
  | { readonly kind: 'unreadable'; readonly reason: string; readonly digest: string };

export interface FileContent {
  /** In shared memory: threads need no copy of a file of 32 MiB. */
  readonly bytes: Buffer;
  readonly digest: string;
}

export type Contents = ReadonlyMap<string, FileContent>;

export type Digests = ReadonlyMap<string, string>;

/** At most `configSizes.fileBytesMax`. `textOf` decodes the content. */
export function readConfigFile(file: string): ReadFile {
  let descriptor: number;
  try {
    // A blocking open of a named pipe could wait forever. `unfitReason` refuses the pipe.
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
  const shared = Buffer.from(new SharedArrayBuffer(bytes.length));
  bytes.copy(shared);
  return { kind: 'read', bytes: shared, digest };
}

/** Removes a byte order mark. */
export function textOf(bytes: Uint8Array): string {
  return utf8.decode(bytes);
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

export function digestOfContent(content: string | Uint8Array): string {
  return hash('sha256', content, 'hex');
}

/** Why an existing file is refused, as the end of a sentence that begins with "the file"; undefined if it is accepted. */
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

export const missing = 'does not exist';

/** Completes a sentence that begins with "the file". */
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
 * The part of the path that this process may not read, and a command that grants access. For example, the unprivileged user of a container
 * cannot read a clone that was made with umask 077.
 */
function denial(file: string): string {
  try {
    const folder = foldersOf(file).find((path) => !isOpen(path, constants.X_OK));
    if (folder !== undefined)
      return `: the folder ${folder} ${ownerOf(folder)}; \`chmod a+rX ${folder} ${folder}/*\` opens it`;
    if (!isOpen(file, constants.R_OK)) {
      return `: it ${ownerOf(file)}; \`chmod a+r ${file}\` opens it to everybody, \`chown\` to the user who runs this`;
    }
    return ', though owner and mode allow it; with SELinux, add `:z` to the mount of its folder';
  } catch {
    // The path has changed since the failed read.
    return '';
  }
}

/** Outermost first. */
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
