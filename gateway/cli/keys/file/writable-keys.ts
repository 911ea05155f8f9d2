import type * as z from 'zod';
import { definedSecret, type issuedKey, keyDefinition } from '../../../admin/wires/keys/definitions.ts';
import type { LimitsByField } from '../../../keys/limits/limit-fields.ts';
import { list, words } from '../../../keys/response-parts.ts';
import { printable } from '../../../shared/terminal/printable.ts';
import { NoSuchKey } from '../../admin/read/read-key.ts';
import { CommandError } from '../../output/command-error.ts';
import { NotInFile } from './edit-keys.ts';

/** A key of the keys file or the key directory, in the form of the admin API. Members that this schema does not list are kept unchanged. */
const changedDefinition = keyDefinition
  .partial({ revision: true, createdAt: true, changedAt: true })
  .extend({ source: words('file', 'directory'), secrets: list(definedSecret.partial({ createdAt: true })) })
  .loose();

export type KeyDefinition = z.output<typeof changedDefinition>;

export interface NewKey {
  readonly id: string;
  readonly plan: string;
  readonly name: string | undefined;
  /** The limits of a key on a custom plan. */
  readonly limits: LimitsByField | undefined;
  /** The client addresses and ranges from which the key may be used. Without this list, every client address is allowed. */
  readonly addresses?: readonly string[] | undefined;
  /** The expiry of the key's secret, a date or date-time. */
  readonly expires: string | undefined;
}

export interface NewSecret {
  readonly id: string;
  /** A secret that the command has made and stored already. */
  readonly secret?: string | undefined;
  /** The time after which older secrets expire (`24h`, `0s`), unless they expire earlier. */
  readonly overlap?: string | undefined;
  readonly expires: string | undefined;
}

/** Absent members stay. */
export interface KeyEdit {
  readonly plan?: string | undefined;
  /** Null: none, because the plan has limits. */
  readonly limits?: LimitsByField | null | undefined;
  readonly name?: string | null | undefined;
  readonly addresses?: readonly string[] | null | undefined;
  /** A date or date-time at which the newest secret expires, and older ones at the latest; null: the newest never expires. */
  readonly expiresAt?: string | null | undefined;
  /** A later plan of the key. It replaces a change at the same time. */
  readonly later?:
    | { readonly from: string; readonly plan: string; readonly limits?: LimitsByField | undefined }
    | undefined;
  /** Withdraws all later changes, or the change at this time. */
  readonly withdraw?: true | string | undefined;
  /** The version of a directory key that the edit was made for, as in its ETag. */
  readonly ifMatch?: string | undefined;
}

export interface ChangedKey {
  readonly key: KeyDefinition;
  /** The key before the change, of a key of the keys file that existed. */
  readonly before?: KeyDefinition | undefined;
  /** The key in the form of the admin API, for programs, with the new secret if the command issued one. */
  readonly json: unknown;
  /** Where the key is stored: a file and a line, or the key directory. */
  readonly where: string;
  /** False if the key already had the requested state. */
  readonly isChanged: boolean;
}

/** The new secret. Only this object contains the secret, because the keys file and the key directory store only its digest. */
export interface IssuedKey extends ChangedKey {
  readonly secret: string;
  readonly kept?: z.output<typeof issuedKey>['kept'];
}

/** Changes keys of the keys file or the key directory. Each function throws a CommandError with the reason if it changes nothing. */
export interface WritableKeys {
  create(key: NewKey): Promise<IssuedKey>;
  addSecret(secret: NewSecret): Promise<IssuedKey>;
  setDisabled(id: string, disabled: boolean): Promise<ChangedKey>;
  edit(id: string, edit: KeyEdit): Promise<ChangedKey>;
}

/**
 * Changes keys for commands without the option `--directory`. If the keys file does not contain a key, the key is changed in the key
 * directory.
 *
 * @param directory rejects with a CommandError where no gateway is known
 */
export function createKeysOfBoth(file: WritableKeys, directory: () => Promise<WritableKeys>): WritableKeys {
  return {
    create: (key) => file.create(key),
    addSecret: (secret) => change(secret.id, (keys) => keys.addSecret(secret)),
    setDisabled: (id, disabled) => change(id, (keys) => keys.setDisabled(id, disabled)),
    edit: (id, edit) => change(id, (keys) => keys.edit(id, edit)),
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
      return await run(await directory());
    } catch (error) {
      if (!(error instanceof CommandError)) throw error;
      const message =
        error.kind === 'not_found'
          ? `There is no key ${id}, neither in ${inFile.file} nor in the key directory.${error instanceof NoSuchKey ? ` ${error.removal}` : ''}`.trimEnd()
          : `${inFile.message} In the key directory: ${error.message}`;
      throw new CommandError(printable(message), error.kind, error);
    }
  }
}
