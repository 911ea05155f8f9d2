import { type Command, InvalidArgumentError } from 'commander';
import type { LimitsByField } from '../../keys/limit-fields.ts';
import { agePattern, isoOf, parseDuration } from '../../shared/schema/dates-and-durations.ts';
import { printable } from '../../shared/terminal/printable.ts';
import { type Asking, clientOf, examples, requireConfig, withGateway } from '../command.ts';
import { CommandError } from '../output/command-error.ts';
import { print, printJson } from '../output/screen.ts';
import { addBanAndGrantCommands } from './ban-and-grant.ts';
import { createDirectoryKeys } from './directory-keys.ts';
import { createKeysOfBoth, type IssuedKey, type NewSecret, type WritableKeys } from './file/writable-keys.ts';
import { createFileKeys } from './file-keys.ts';
import { disabledText, issuedText } from './key-views.ts';
import { addLimitOptions, limitsOf } from './limit-options.ts';
import { tellChange, toldKey, toldSecret } from './tell-change.ts';

/** The options of every command that changes keys. */
interface Changing extends Asking {
  /** Whether the command changes the key directory and not the keys file. */
  readonly directory?: true;
}

interface CreateOptions extends Changing, LimitsByField {
  readonly id?: string;
  readonly plan: string;
  readonly name?: string;
  readonly address?: readonly string[];
  readonly expires?: string;
}

/**
 * Adds the commands that issue and change keys.
 *
 * @param keys their parent
 */
export function addKeyCommands(keys: Command): void {
  const changing = (name: string) =>
    withGateway(keys.command(name))
      .helpGroup('Issue and change:')
      .option('--directory', 'change the key directory through the admin API, and not the keys file')
      .option('--json', 'print the key in the form of the admin API');
  const expires = [
    '--expires <date>',
    'when the secret expires: 2027-01-31 or 2027-01-31T12:00:00Z',
  ] as const;

  const create = changing('create')
    .argument('[key]', 'the id of the key; quota and ban belong to this id')
    .description('issue a key and print its secret, which is shown only once')
    .addHelpText(
      'after',
      examples(
        'keys create acme --plan free --name "Acme Ltd" --expires 2027-01-31',
        'keys create big --plan enterprise --per-minute 5000 --directory',
        'keys create office --plan pro --address 203.0.113.0/24 2001:db8::/32',
      ),
    )
    .option('--id <id>', 'the id of the key, in place of the argument')
    .requiredOption('--plan <plan>', 'the name of a plan')
    .option('--name <name>', 'the owner of the key')
    .option('--address <range...>', 'the client addresses that may use the key, such as 203.0.113.0/24')
    .option(...expires)
    .action(async (argument: string | undefined, options: CreateOptions) => {
      const { plan, name, address: addresses, expires } = options;
      const id = idOf(argument, options.id);
      const limits = limitsOf(options);
      const issued = await writable(options).create({ id, plan, name, limits, addresses, expires });
      showSecret(issued, options, { isNew: true });
      await tellChange(options, { action: 'create', key: id, after: toldKey(issued.key) }, issued);
    });
  addLimitOptions(create, (window) => `requests per ${window}, for a key on a custom plan`);

  changing('rotate')
    .argument('<key>', 'the id of the key')
    .description('issue a new secret for a key; its older secrets expire after the overlap')
    .addHelpText('after', examples('keys rotate acme', 'keys rotate acme --overlap 0s'))
    .option(
      '--overlap <time>',
      'how long the older secrets stay valid: 24h, 30m, 7d, or 0s for an immediate end',
      age,
      '24h',
    )
    .option(...expires)
    .action((id: string, options: Changing & { overlap: string; expires?: string }) => {
      return addSecret({ id, overlap: options.overlap, expires: options.expires }, options);
    });

  changing('add-secret')
    .argument('[key]', 'the id of the key')
    .description('issue one more secret for a key; its older secrets stay valid')
    .addHelpText('after', examples('keys add-secret acme --expires 2027-01-31'))
    .option('--id <id>', 'the id of the key, in place of the argument')
    .option(...expires)
    .action((argument: string | undefined, options: Changing & { id?: string; expires?: string }) => {
      return addSecret({ id: idOf(argument, options.id), expires: options.expires }, options);
    });

  changing('revoke')
    .argument('<key>', 'the id of the key')
    .description('refuse a key, with all its secrets, until it is restored')
    .addHelpText('after', examples('keys revoke acme'))
    .action((id: string, options: Changing) => setDisabled(id, true, options));

  changing('restore')
    .argument('<key>', 'the id of the key')
    .description('admit a revoked key again')
    .addHelpText('after', examples('keys restore acme'))
    .action((id: string, options: Changing) => setDisabled(id, false, options));

  addBanAndGrantCommands(keys);
}

function writable(options: Changing): WritableKeys {
  const client = () => clientOf(options);
  const directory = () => createDirectoryKeys(client());
  if (options.directory) return directory();
  const configuration = { file: requireConfig(options.config), env: process.env };
  return createKeysOfBoth(createFileKeys(configuration, client), directory);
}

/** Returns the id of a new key. Earlier versions accepted the id only as the option `--id`. */
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
function showSecret(issued: IssuedKey, { json }: Changing, about: { readonly isNew: boolean }): void {
  if (json) printJson(issued.json);
  else {
    console.error(printable(issuedText(issued, about, Date.now())));
    print([issued.secret]);
  }
}

async function addSecret(secret: NewSecret, options: Changing): Promise<void> {
  const issued = await writable(options).addSecret(secret);
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

async function setDisabled(id: string, disabled: boolean, options: Changing): Promise<void> {
  const changed = await writable(options).setDisabled(id, disabled);
  if (options.json) printJson(changed.json);
  else print([printable(disabledText(changed, Date.now()))]);
  if (!changed.isChanged) return;
  const action = disabled ? 'revoke' : 'restore';
  const change = { action, key: id, before: { disabled: !disabled }, after: { disabled } } as const;
  await tellChange(options, change, changed);
}

function age(text: string): string {
  if (!agePattern.test(text))
    throw new InvalidArgumentError('It must be a duration such as 24h, 30m, 7d or 0s.');
  return text;
}
