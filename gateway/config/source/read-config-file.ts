import { hash } from 'node:crypto';
import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs';
import { configSizes } from '../config-sizes.ts';

/**
 * The text of a file, or the reason why there is none, in words that follow "the file …". Where the bytes were not read,
 * the reason stands in for their digest.
 */
export type ReadFile =
  | { readonly kind: 'read'; readonly text: string; readonly digest: string }
  | { readonly kind: 'unreadable'; readonly reason: string; readonly digest: string };

/** The digest of each file's content. */
export type Digests = ReadonlyMap<string, string>;

/** Reads one configuration file of at most `configSizes.fileBytesMax` as UTF-8; no other function makes text of one. */
export function readConfigFile(file: string): ReadFile {
  let descriptor: number;
  try {
    // To open a named pipe would wait for its writer for ever. Non-blocking, it opens, and is refused as no regular file.
    descriptor = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    return unread(reasonOf(error));
  }
  try {
    const unfit = unfitReason(fstatSync(descriptor));
    return unfit === undefined ? decode(readFileSync(descriptor)) : unread(unfit);
  } catch (error) {
    return unread(reasonOf(error));
  } finally {
    closeSync(descriptor);
  }
}

function unread(reason: string): ReadFile {
  return { kind: 'unreadable', reason, digest: reason };
}

function decode(bytes: Uint8Array): ReadFile {
  const digest = digestOfContent(bytes);
  try {
    return { kind: 'read', text: utf8.decode(bytes), digest };
  } catch {
    return { kind: 'unreadable', reason: 'is not UTF-8 text', digest };
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

export function digestOfContent(content: string | Uint8Array): string {
  return hash('sha256', content, 'hex');
}

/** Why a file that exists is not read, in words that follow "the file …"; undefined when it is. */
export function unfitReason(stats: {
  readonly isFile: () => boolean;
  readonly size: number | bigint;
}): string | undefined {
  if (!stats.isFile()) return 'is not a regular file';
  return stats.size > configSizes.fileBytesMax
    ? `is larger than ${configSizes.fileBytesMax} bytes`
    : undefined;
}

/** Why a file could not be read, in words that follow "the file …". */
export function reasonOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  switch (code) {
    case 'ENOENT':
    case 'ENOTDIR':
      return 'does not exist';
    case 'EACCES':
      return 'may not be read by this user';
    case 'EISDIR':
      return 'is a directory';
    default:
      return `cannot be read (${code ?? String(error)})`;
  }
}
