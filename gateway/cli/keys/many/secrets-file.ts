import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  readFileSync,
  writeSync,
} from 'node:fs';
import { keyIdPattern } from '../../../shared/model.ts';
import { issueSecret } from '../../../shared/secrets.ts';
import { CommandError } from '../../output/command-error.ts';

/** New secrets in a file with one line for each key. The file is the only place that has them. */
export interface SecretsFile {
  /**
   * Gives each of these keys a secret, unless an earlier run did. The secrets are on the disk when the function returns. The first call
   * creates the file with mode 0600, or opens the file of an earlier run, which it continues.
   *
   * @throws a CommandError if the file exists and is no such list, or if other users can read it. It is then left as it is
   */
  prepare(ids: readonly string[]): void;
  /** Of a prepared key. */
  secretOf(id: string): string;
  close(): void;
}

const title = 'id,secret';

/**
 * A secret is written before any gateway or keys file gets its digest. After a crash, the same command therefore finds each secret that may be
 * in use.
 */
export function secretsFile(path: string): SecretsFile {
  let handle: number | undefined;
  let written = new Map<string, string>();
  return {
    prepare(ids) {
      if (handle === undefined) {
        handle = open(path);
        written = readRows(path, handle);
        if (fstatSync(handle).size === 0) append(handle, `${title}\n`);
      }
      const missing = ids.filter((id) => !written.has(id)).map((id) => [id, issueSecret()] as const);
      append(handle, missing.map((row) => `${row.join(',')}\n`).join(''));
      for (const [id, secret] of missing) written.set(id, secret);
    },
    secretOf: secretIn(() => written),
    close() {
      if (handle !== undefined) closeSync(handle);
    },
  };
}

/**
 * For `--dry-run`: the secrets of an earlier run from its file, which stays as it is, and new ones that are not stored.
 *
 * @param path absent if no file is named
 */
export function unstoredSecrets(path: string | undefined): SecretsFile {
  const isThere = path !== undefined && existsSync(path);
  const written = isThere ? rowsIn(path, readFileSync(path, 'utf8')) : new Map<string, string>();
  return {
    prepare(ids) {
      for (const id of ids) if (!written.has(id)) written.set(id, issueSecret());
    },
    secretOf: secretIn(() => written),
    close() {},
  };
}

function secretIn(written: () => ReadonlyMap<string, string>): SecretsFile['secretOf'] {
  return (id) => {
    const secret = written().get(id);
    if (secret === undefined) throw new Error('a key got no secret before its change');
    return secret;
  };
}

function append(handle: number, text: string): void {
  if (text === '') return;
  writeSync(handle, text);
  fsyncSync(handle);
}

function open(path: string): number {
  const { O_CREAT, O_RDWR, O_APPEND, O_NOFOLLOW } = constants;
  try {
    const handle = openSync(path, O_CREAT | O_RDWR | O_APPEND | O_NOFOLLOW, 0o600);
    const stats = fstatSync(handle);
    if (stats.isFile() && (stats.mode & 0o077) === 0) return handle;
    closeSync(handle);
  } catch (error) {
    throw new CommandError(`${path} cannot be written (${error instanceof Error ? error.message : error}).`);
  }
  throw new CommandError(
    `${path} is no file that only you can read: give a new file, or "chmod 600" this one.`,
  );
}

/** Removes a last line that is not whole. */
function readRows(path: string, handle: number): Map<string, string> {
  const text = readFileSync(handle, 'utf8');
  const rows = rowsIn(path, text);
  const whole = wholeLines(text);
  if (whole !== text) ftruncateSync(handle, Buffer.byteLength(whole));
  return rows;
}

/** A last line without a line break was cut off by a crash. Nobody uses its secret. */
function wholeLines(text: string): string {
  return text.slice(0, text.lastIndexOf('\n') + 1);
}

/** @throws a CommandError if the text is no list of secrets */
function rowsIn(path: string, text: string): Map<string, string> {
  const [first, ...lines] = wholeLines(text).split('\n').slice(0, -1);
  const rows = lines.map((line): [string, string] => [line.split(',')[0] ?? '', line.split(',')[1] ?? '']);
  const isOurs =
    first === title && rows.every(([id, secret]) => keyIdPattern.test(id) && secret.length >= 20);
  if (text !== '' && !isOurs)
    throw new CommandError(`${path} exists, and is no list of secrets of this command: give a new file.`);
  return new Map(rows);
}
