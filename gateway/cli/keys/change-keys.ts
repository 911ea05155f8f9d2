import { differences } from '../../admin/keys/change/definition.ts';
import { manyWords } from '../../admin/words/many-keys.js';
import type { LimitsByField } from '../../keys/limits/limit-fields.ts';
import { isoOf } from '../../shared/schema/dates-and-durations.ts';
import { printable } from '../../shared/terminal/printable.ts';
import { clientOf } from '../admin/find-gateway.ts';
import { overlapOf } from '../admin/period.ts';
import { CommandError } from '../output/command-error.ts';
import { print, printJson } from '../output/screen.ts';
import { createDirectoryKeys } from './directory-keys.ts';
import { type EditOptions, editOf } from './edit-key.ts';
import { configurationOf } from './file/edit-keys.ts';
import {
  type ChangedKey,
  createKeysOfBoth,
  type IssuedKey,
  type KeyDefinition,
  type NewSecret,
  type WritableKeys,
} from './file/writable-keys.ts';
import { createFileKeys, disabling, editing, requireFutureDate, rotation } from './file-keys.ts';
import { disabledText, editedText, issuedText } from './key-views.ts';
import { limitsOf } from './limit-options.ts';
import { changeMany } from './many/change-many.ts';
import { foreseeDisabling, foreseeEdit, foreseeRotation } from './many/foresee.ts';
import { secretsFile, unstoredSecrets } from './many/secrets-file.ts';
import { onlyKey, type SelectionOptions, selectKeys } from './many/select-keys.ts';
import { editTerms, rotationTerms } from './many/terms.ts';
import { type ToldChange, tellChange, toldKey, toldSecret } from './tell-change.ts';

export interface ChangingOptions extends SelectionOptions {
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
  /** The file for the new secrets. */
  readonly out?: string;
}

export interface EditKeysOptions extends ChangingOptions, EditOptions {}

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

/** Issues a new secret for each key, whose older secrets expire after the overlap. */
export async function rotateKeys(argument: string | undefined, options: RotateOptions): Promise<void> {
  const { expires, out } = options;
  const overlap = overlapOf(options.overlap, Date.now());
  const only = onlyKey(argument, options);
  if (only !== undefined && out === undefined) return issueFor({ id: only, overlap, expires }, options);
  requireFutureDate(expires);
  const ids = await selectKeys(argument, options);
  if (out === undefined && !options.dryRun)
    throw new CommandError('Where to? Give --out FILE, which gets the new secrets; only you can read it.');
  const secrets = options.dryRun || out === undefined ? unstoredSecrets(out) : secretsFile(out);
  const secretFor = (id: string) => ({ id, overlap, expires, secret: secrets.secretOf(id) });
  try {
    await changeMany(
      ids,
      {
        words: manyWords.rotate,
        terms: rotationTerms(overlap, expires, Date.now()),
        foresee: foreseeRotation(secrets.secretOf),
        prepare: secrets.prepare,
        ask: (client, id) => createDirectoryKeys(client).addSecret(secretFor(id)),
        inFile: (id) => rotation(secretFor(id)),
        told: ({ key }) => rotationTold(key, overlap),
      },
      options,
    );
  } finally {
    secrets.close();
  }
}

export async function addSecret(argument: string | undefined, options: AddSecretOptions): Promise<void> {
  await issueFor({ id: idOf(argument, options.id), expires: options.expires }, options);
}

export async function setDisabled(
  argument: string | undefined,
  disabled: boolean,
  options: ChangingOptions,
): Promise<void> {
  const action = disabled ? 'revoke' : 'restore';
  const told = (key: string): ToldChange => {
    return { action, key, before: { disabled: !disabled }, after: { disabled } };
  };
  const only = onlyKey(argument, options);
  if (only === undefined) {
    return changeMany(
      await selectKeys(argument, options),
      {
        words: manyWords[action],
        foresee: foreseeDisabling(disabled),
        ask: (client, key) => createDirectoryKeys(client).setDisabled(key, disabled),
        inFile: (key) => disabling(key, disabled),
        told: ({ key }) => told(key.id),
      },
      options,
    );
  }
  const changed = await (await writable(options)).setDisabled(only, disabled);
  if (options.json) printJson(changed.json);
  else print([printable(disabledText(changed, Date.now()))]);
  if (changed.isChanged) await tellChange(options, told(only), changed);
}

export async function editKeys(argument: string | undefined, options: EditKeysOptions): Promise<void> {
  const edit = editOf(options);
  requireFutureDate(edit.expiresAt ?? undefined);
  const told = ({ key, before }: ChangedKey): ToldChange => ({
    action: 'update',
    key: key.id,
    ...differences(before ? toldMembers(before) : {}, toldMembers(key)),
  });
  const only = onlyKey(argument, options);
  if (only === undefined) {
    if (edit.ifMatch !== undefined) throw new CommandError('--if-match is for one key.');
    return changeMany(
      await selectKeys(argument, options),
      {
        words: manyWords.edit,
        terms: editTerms(edit),
        foresee: foreseeEdit(edit),
        ask: (client, key) => createDirectoryKeys(client).edit(key, edit),
        inFile: (key) => editing(key, edit),
        told,
      },
      options,
    );
  }
  const changed = await (await writable(options)).edit(only, edit);
  if (options.json) printJson(changed.json);
  else print([printable(editedText(changed, Date.now()))]);
  if (changed.isChanged) await tellChange(options, told(changed), changed);
}

async function issueFor(secret: NewSecret, options: ChangingOptions): Promise<void> {
  const issued = await (await writable(options)).addSecret(secret);
  showSecret(issued, options, { isNew: false });
  await tellChange(options, rotationTold(issued.key, secret.overlap), issued);
}

/** @param overlap undefined if the older secrets stay valid */
function rotationTold({ id: key, secrets }: KeyDefinition, overlap: string | undefined): ToldChange {
  const [newest, ...older] = secrets.toReversed();
  const endsMs = older
    .map(({ expiresAt = '' }) => Date.parse(expiresAt))
    .filter((endMs) => endMs > Date.now());
  const othersEndAt = overlap === undefined || endsMs.length === 0 ? undefined : isoOf(Math.max(...endsMs));
  const action = overlap === undefined ? 'secret' : 'rotate';
  return { action, key, after: { ...(newest && toldSecret(newest)), othersEndAt } };
}

/** The members that `keys edit` changes. */
function toldMembers({ plan, limits, changes, name, addresses, secrets }: KeyDefinition) {
  const later = changes?.map(({ from, plan }) => `${from} ${plan}`);
  return { plan, limits, changes: later, name, addresses, expiresAt: secrets.at(-1)?.expiresAt };
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
