import * as z from 'zod';
import type { LimitsByField } from '../../keys/limit-fields.ts';
import { printable } from '../../shared/terminal/printable.ts';
import { keyItem } from '../admin/api-shapes.ts';
import { CommandError } from '../output/command-error.ts';
import { NotInFile } from './edit-keys.ts';

/** A key as it is defined, in the words of the admin API. It also has the other members that are stated of it. */
export const keyDefinition = z.looseObject({
  id: z.string(),
  disabled: z.boolean(),
  source: z.string(),
  secrets: z.array(
    z.object({
      digestStart: z.string(),
      createdAt: z.string().optional(),
      expiresAt: z.string().optional(),
    }),
  ),
});

/** The same in the one response that has a new secret of it. */
export const issuedDefinition = keyDefinition.extend({
  secret: z.string(),
  /** What a new key has from an earlier one with its id. */
  kept: z
    .object({
      windows: z.array(z.object({ name: z.string(), used: z.number() })).default([]),
      ban: keyItem.shape.ban,
      grant: keyItem.shape.grant,
    })
    .optional(),
});

export type KeyDefinition = z.output<typeof keyDefinition>;

export interface NewKey {
  readonly id: string;
  readonly plan: string;
  readonly name?: string | undefined;
  /** For a custom plan. */
  readonly limits: LimitsByField;
  /** When its secret ends, a date or date-time. */
  readonly expires?: string | undefined;
}

export interface NewSecret {
  readonly id: string;
  /** So much later the older secrets end (`24h`, `0s`), those that do not end before; absent: they stay. */
  readonly overlap?: string | undefined;
  readonly expires?: string | undefined;
}

/** What a command made of a key. */
export interface ChangedKey {
  readonly key: KeyDefinition;
  /** The key for programs, in the form of the admin API; with `secret` where one was issued. */
  readonly json: unknown;
  /** Where it is written: a file and a line, or the directory. */
  readonly where: string;
  /** False: it was like that before. */
  readonly isChanged: boolean;
}

/** The secret is only seen here: what is kept has its digest. */
export interface IssuedKey extends ChangedKey {
  readonly secret: string;
  readonly kept?: z.output<typeof issuedDefinition>['kept'];
}

/**
 * Keys that commands can change: those of a keys file, or those of the directory behind the admin API. Each function throws a
 * CommandError that says why nothing was changed.
 */
export interface WritableKeys {
  create(key: NewKey): Promise<IssuedKey>;
  addSecret(secret: NewSecret): Promise<IssuedKey>;
  setDisabled(id: string, disabled: boolean): Promise<ChangedKey>;
}

/**
 * The keys of both places, where no option says which one is meant: a key that the file does not have is changed in the
 * directory. No other id is ever suggested for a change, since it could be the id of another customer.
 *
 * @param directory throws a CommandError where no gateway can be asked
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
    try {
      return await run(file);
    } catch (error) {
      if (!(error instanceof NotInFile)) throw error;
      return await inDirectory(error, id, run);
    }
  }

  async function inDirectory<Changed>(
    notInFile: NotInFile,
    id: string,
    run: (keys: WritableKeys) => Promise<Changed>,
  ): Promise<Changed> {
    try {
      return await run(directory());
    } catch (error) {
      if (!(error instanceof CommandError)) throw error;
      const { kind, mayBeDone } = error;
      if (kind === 'not_found') {
        throw new CommandError(
          printable(`There is no key ${id}, neither in ${notInFile.file} nor in the directory.`),
          kind,
        );
      }
      const message = `${printable(notInFile.message)} In the directory: ${error.message}`;
      throw new CommandError(message, kind, { mayBeDone });
    }
  }
}
