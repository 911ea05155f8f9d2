import type * as z from 'zod';
import { list, words } from '../../admin/api/response-parts.ts';
import { definedSecret, type issuedKey, keyDefinition } from '../../admin/keys/change/definition.ts';
import type { LimitsByField } from '../../keys/limit-fields.ts';
import { printable } from '../../shared/terminal/printable.ts';
import { CommandError } from '../output/command-error.ts';
import { NotInFile } from './edit-keys.ts';

/** A key of the file or the directory, in the form of the admin API. Other members are kept as they are. */
export const changedDefinition = keyDefinition
  .partial({ revision: true, createdAt: true, changedAt: true })
  .extend({ source: words('file', 'directory'), secrets: list(definedSecret.partial({ createdAt: true })) })
  .loose();

export type KeyDefinition = z.output<typeof changedDefinition>;

export interface NewKey {
  readonly id: string;
  readonly plan: string;
  readonly name: string | undefined;
  /** For a custom plan. */
  readonly limits: LimitsByField | undefined;
  /** The addresses and ranges from which the key may be used; absent: every address. */
  readonly addresses?: readonly string[] | undefined;
  /** The end of its secret, a date or date-time. */
  readonly expires: string | undefined;
}

export interface NewSecret {
  readonly id: string;
  /** The older secrets end after this time (`24h`, `0s`), if they do not end earlier. Absent: they stay. */
  readonly overlap?: string | undefined;
  readonly expires: string | undefined;
}

/** A key after a command has changed it. */
export interface ChangedKey {
  readonly key: KeyDefinition;
  /** The key for programs, in the form of the admin API, with its new `secret` if it has one. */
  readonly json: unknown;
  /** A file and a line, or the directory. */
  readonly where: string;
  /** False where the key already was as the command wanted it. */
  readonly isChanged: boolean;
}

/** The only object with the secret: file and directory keep its digest. */
export interface IssuedKey extends ChangedKey {
  readonly secret: string;
  readonly kept?: z.output<typeof issuedKey>['kept'];
}

/** Keys that commands can change. Each function throws a CommandError with the reason where it changes nothing. */
export interface WritableKeys {
  create(key: NewKey): Promise<IssuedKey>;
  addSecret(secret: NewSecret): Promise<IssuedKey>;
  setDisabled(id: string, disabled: boolean): Promise<ChangedKey>;
}

/**
 * The keys of file and directory, for a command whose options name neither. A key that is not in the file is changed in the directory.
 *
 * @param directory throws a CommandError where no gateway is known
 */
export function createKeysOfBoth(file: WritableKeys, directory: () => WritableKeys): WritableKeys {
  return {
    create: (key) => file.create(key),
    addSecret: (secret) => change(secret.id, (keys) => keys.addSecret(secret)),
    setDisabled: (id, disabled) => change(id, (keys) => keys.setDisabled(id, disabled)),
  };

  async function change<Changed extends ChangedKey>(
    id: string,
    run: (keys: WritableKeys) => Promise<Changed>,
  ): Promise<Changed> {
    const inFile = await run(file).catch((error: unknown) => {
      if (error instanceof NotInFile) return error;
      throw error;
    });
    if (!(inFile instanceof NotInFile)) return inFile;
    try {
      return await run(directory());
    } catch (error) {
      if (!(error instanceof CommandError)) throw error;
      const message =
        error.kind === 'not_found'
          ? `There is no key ${id}, neither in ${inFile.file} nor in the directory.`
          : `${inFile.message} In the directory: ${error.message}`;
      throw new CommandError(printable(message), error.kind, error);
    }
  }
}
