import { randomUUID } from 'node:crypto';
import {
  chmodSync,
  chownSync,
  closeSync,
  existsSync,
  fsyncSync,
  lstatSync,
  openSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, resolve } from 'node:path';

/**
 * Replaces a file's content atomically, so that a reader sees either the old text or the new text. The file keeps its mode and its owner.
 *
 * If the file cannot be replaced, the function writes the text into the existing file. A file cannot be replaced if it is a
 * single bind-mounted file (EBUSY), if its folder has no write permission, or if only root could restore its owner. If the file
 * is missing, the function creates the file.
 *
 * @throws when the file cannot be written at all, with a sentence that says what to do
 */
export function replaceFile(file: string, text: string): void {
  try {
    // A symbolic link stays, and the file that it refers to is replaced.
    const target = fileBehind(file);
    if (existsSync(target)) replaceExisting(target, text);
    else writeFileSync(target, text, { flag: 'wx' });
  } catch (error) {
    throw new Error(`${file} ${unwritableReason(error, file)}`);
  }
}

/** Resolves a path to the file behind symbolic links. The file may not exist yet. */
export function fileBehind(path: string): string {
  if (existsSync(path)) return realpathSync(path);
  const isLink = lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() ?? false;
  return isLink ? resolve(dirname(path), readlinkSync(path)) : path;
}

/** Returns the reason as the end of a sentence that begins with the file's name. */
function unwritableReason(error: unknown, file: string): string {
  const { code } = error as NodeJS.ErrnoException;
  if (code === 'EROFS') return 'is on a file system that is mounted read-only';
  if (code !== 'EACCES' && code !== 'EPERM') return `cannot be written (${code ?? String(error)})`;
  const closed = existsSync(file) ? file : dirname(file);
  const { uid, mode } = statSync(closed);
  const what = closed === file ? 'it' : `the folder ${closed}`;
  const owner = `${what} belongs to user ${uid} and has mode ${(mode & 0o7777).toString(8)}`;
  return `may not be written by this user: ${owner}; run this as user ${uid} (\`docker compose run --user ${uid} …\`)`;
}

function replaceExisting(target: string, text: string): void {
  const { mode, uid, gid } = statSync(target);
  const draft = join(dirname(target), `.${randomUUID()}.tmp`);
  try {
    const descriptor = openSync(draft, 'wx', mode & 0o777);
    try {
      writeFileSync(descriptor, text);
      fsyncSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
    chownSync(draft, uid, gid);
    chmodSync(draft, mode & 0o7777);
    renameSync(draft, target);
  } catch (error) {
    rmSync(draft, { force: true });
    // After an error such as a full disk, the old file is kept, because a write to the old file could fail in the middle.
    if (!cannotReplace.has((error as NodeJS.ErrnoException).code ?? '')) throw error;
    writeFileSync(target, text);
  }
}

const cannotReplace: ReadonlySet<string> = new Set(['EBUSY', 'EXDEV', 'EACCES', 'EPERM', 'EROFS']);
