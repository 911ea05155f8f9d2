import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs';
import { bounds } from '../bounds.ts';

/** The text of a file, or why there is none in words that follow "the file …". */
export type ReadFile =
  | { readonly kind: 'read'; readonly text: string }
  | { readonly kind: 'unreadable'; readonly reason: string };

/** Reads one configuration file of at most `bounds.configBytesMax` as UTF-8; the only place that reads one. */
export function readConfigFile(file: string): ReadFile {
  let descriptor: number;
  try {
    // A named pipe would wait for a writer for ever; non-blocking, it opens and is then refused as no regular file.
    descriptor = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    return { kind: 'unreadable', reason: reasonOf(error) };
  }
  try {
    const stats = fstatSync(descriptor);
    if (!stats.isFile()) return { kind: 'unreadable', reason: 'is not a regular file' };
    if (stats.size > bounds.configBytesMax) {
      return { kind: 'unreadable', reason: `is larger than ${bounds.configBytesMax} bytes` };
    }
    return { kind: 'read', text: utf8.decode(readFileSync(descriptor)) };
  } catch (error) {
    return { kind: 'unreadable', reason: reasonOf(error) };
  } finally {
    closeSync(descriptor);
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

function reasonOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  switch (code) {
    case 'ENOENT':
    case 'ENOTDIR':
      return 'does not exist';
    case 'EACCES':
      return 'may not be read by this user';
    case 'EISDIR':
      return 'is a directory';
    case 'ERR_ENCODING_INVALID_ENCODED_DATA':
      return 'is not UTF-8 text';
    default:
      return `cannot be read (${code ?? String(error)})`;
  }
}
