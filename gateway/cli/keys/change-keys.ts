import type { LimitsByField } from '../../keys/limits/limit-fields.ts';
import { isoOf, parseDuration } from '../../shared/schema/dates-and-durations.ts';
import { printable } from '../../shared/terminal/printable.ts';
import { clientOf } from '../admin/find-gateway.ts';
import type { Asking } from '../command.ts';
import { CommandError } from '../output/command-error.ts';
import { print, printJson } from '../output/screen.ts';
import { createDirectoryKeys } from './directory-keys.ts';
import { configurationOf } from './file/edit-keys.ts';
import { createKeysOfBoth, type IssuedKey, type NewSecret, type WritableKeys } from './file/writable-keys.ts';
import { createFileKeys } from './file-keys.ts';
import { disabledText, issuedText } from './key-views.ts';
import { limitsOf } from './limit-options.ts';
import { tellChange, toldKey, toldSecret } from './tell-change.ts';

export interface ChangingOptions extends Asking {
  /** Whether the command changes the key directory and not the keys file. */
  readonly directory?: true;
}

export interface CreateOptions extends ChangingOptions, LimitsByField {
  readonly id?: string;
  readonly plan: string;
  readonly name?: string;
  readonly address?: readonly string[];
  readonly expires?: string;
}

export interface RotateOptions extends ChangingOptions {
  readonly overlap: string;
  readonly expires?: string;
}

export interface AddSecretOptions extends ChangingOptions {
  readonly id?: string;
  readonly expires?: string;
}

export async function createKey(argument: string | undefined, options: CreateOptions): Promise<void> {
  const { plan, name, address: addresses, expires } = options;
  const id = idOf(argument, options.id);
  const limits = limitsOf(options);
  const issued = await (await writable(options)).create({ id, plan, name, limits, addresses, expires });
  showSecret(issued, options, { isNew: true });
  await tellChange(options, { action: 'create', key: id, after: toldKey(issued.key) }, issued);
}

/** Issues a new secret for a key, whose older secrets expire after the overlap. */
export async function rotateKey(id: string, options: RotateOptions): Promise<void> {
  await issueFor({ id, overlap: options.overlap, expires: options.expires }, options);
}

export async function addSecret(argument: string | undefined, options: AddSecretOptions): Promise<void> {
  await issueFor({ id: idOf(argument, options.id), expires: options.expires }, options);
}

export async function setDisabled(id: string, disabled: boolean, options: ChangingOptions): Promise<void> {
  const changed = await (await writable(options)).setDisabled(id, disabled);
  if (options.json) printJson(changed.json);
  else print([printable(disabledText(changed, Date.now()))]);
  if (!changed.isChanged) return;
  const action = disabled ? 'revoke' : 'restore';
  const change = { action, key: id, before: { disabled: !disabled }, after: { disabled } } as const;
  await tellChange(options, change, changed);
}

async function issueFor(secret: NewSecret, options: ChangingOptions): Promise<void> {
  const issued = await (await writable(options)).addSecret(secret);
  showSecret(issued, options, { isNew: false });
  const newest = issued.key.secrets.at(-1);
  const { id: key, overlap } = secret;
  const othersEndAt = overlap === undefined ? undefined : isoOf(Date.now() + parseDuration(overlap));
  const action = overlap === undefined ? 'secret' : 'rotate';
  await tellChange(
    options,
    { action, key, after: { ...(newest && toldSecret(newest)), othersEndAt } },
    issued,
  );
}

async function writable(options: ChangingOptions): Promise<WritableKeys> {
  const client = () => clientOf(options);
  const directory = async () => createDirectoryKeys(await client());
  if (options.directory) return directory();
  return createKeysOfBoth(createFileKeys(configurationOf(options.config), client), directory);
}

/** Earlier versions accepted the id only as the option `--id`. */
function idOf(argument: string | undefined, option: string | undefined): string {
  if (argument !== undefined && option !== undefined && argument !== option) {
    throw new CommandError(`Which key, ${argument} or ${option}? Give its id once.`);
  }
  const id = argument ?? option;
  if (id === undefined)
    throw new CommandError('Which key? Give its id, as in "keys create acme --plan free".');
  return id;
}

/** Prints only the secret to standard output, so that `SECRET=$(… keys create …)` works. */
function showSecret(issued: IssuedKey, { json }: ChangingOptions, about: { readonly isNew: boolean }): void {
  if (json) printJson(issued.json);
  else {
    console.error(printable(issuedText(issued, about, Date.now())));
    print([issued.secret]);
  }
}
