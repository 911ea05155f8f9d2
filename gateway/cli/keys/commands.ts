import { type Command, InvalidArgumentError, Option } from 'commander';
import { commandParts } from '../../capabilities/lists/commands.ts';
import { exemptions } from '../../capabilities/lists/words.js';
import { agePattern } from '../../shared/schema/dates-and-durations.ts';
import { keySorts, keyStates } from '../../shared/schema/query-words.ts';
import type { ListKeysOptions } from '../admin/list-keys.ts';
import {
  type Asking,
  type CommandParents,
  configOption,
  examples,
  withCsv,
  withGateway,
  withLimit,
  withReply,
} from '../command.ts';
import type { BanOptions, GrantOptions } from './ban-and-grant.ts';
import type {
  AddSecretOptions,
  ChangingOptions,
  CreateOptions,
  EditKeysOptions,
  RotateOptions,
} from './change-keys.ts';
import { addLimitOptions } from './limit-options.ts';
import type { SelectionOptions } from './many/select-keys.ts';
import type { MovingOptions } from './transfer/move-keys.ts';

/** Declares the commands about keys. */
export function addKeyCommands({ keys }: CommandParents): void {
  addReading(keys);
  addChanging(keys);
  addBansAndGrants(keys);
  for (const part of commandParts) part.addToKeys?.(keys);
  addMoving(keys);
}

function addReading(keys: Command): void {
  withCsv(withLimit(withReply(keys.command('list').helpGroup('Read:'))))
    .description('list keys with their states')
    .addHelpText(
      'after',
      examples(
        'keys list --state near,limited,banned',
        'keys list --plan free --sort offered --limit 20',
        'keys list --dead',
      ),
    )
    .addOption(
      new Option(
        '--state <states>',
        'only keys in these states, separated by commas; near: at least 80 % of a window is used at this moment',
      )
        .choices(keyStates)
        .argParser(statesIn),
    )
    .option('--plan <plan>', 'only keys on this plan')
    .option(
      '--q <text>',
      'only keys with this text in their id or name; directory keys without recent requests or with --sort id: only at the start of the id',
    )
    .option(
      '--older-than <time>',
      'only keys whose newest valid secret is older than this, or of unknown age: 90d',
      age,
    )
    .addOption(
      new Option(
        '--sort <by>',
        'the order: by refused or offered requests of the last 24 hours, last request, or id (default: refused)',
      ).choices(keySorts),
    )
    .option('--all', 'list all keys')
    .option('--dead', 'list invalid secrets that were used in the last 24 hours')
    .option('--not-moved', 'list valid secrets that were used after a newer one was issued')
    .action(async (options: ListKeysOptions) => {
      const { listKeys } = await import('../admin/list-keys.ts');
      await listKeys(options);
    });

  withReply(keys.command('show').helpGroup('Read:'))
    .argument('<key>', 'the id of the key')
    .description('show a key with its secrets, limits and requests')
    .addHelpText('after', examples('keys show acme'))
    .action(async (id: string, options: Asking) => {
      const { showKey } = await import('../admin/show-key.ts');
      await showKey(id, options);
    });

  withGateway(keys.command('whoami').helpGroup('Read:'))
    .description('find the key of a secret, and its state; exit code 2 if no key has the secret')
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      '\nThe secret is read from standard input. A gateway receives only its SHA-256 digest.',
    )
    .addHelpText('after', examples('keys whoami', 'keys whoami --json < secret.txt'))
    .allowExcessArguments()
    .action(async (options: Asking, { args }: Command) => {
      const { whoami } = await import('./whoami.ts');
      await whoami(args, options);
    });

  keys
    .command('configured')
    .helpGroup('Read:')
    .description('list the keys of a configuration, without a request to the gateway')
    .addHelpText('after', examples('keys configured --config config/production.yaml'))
    .addOption(configOption())
    .option('--json', 'print JSON')
    .action(async (options: Asking) => {
      const { listConfigured } = await import('./configured.ts');
      await listConfigured(options);
    });
}

function addChanging(keys: Command): void {
  const changing = (name: string) =>
    withGateway(keys.command(name))
      .helpGroup('Issue and change:')
      .option('--directory', 'change the key directory, and not the keys file')
      .option('--json', 'print JSON');
  const changingMany = (name: string) => withSelection(changing(name));
  const expires = [
    '--expires <date>',
    'when the secret expires: 2027-01-31 or 2027-01-31T12:00:00Z',
  ] as const;

  const create = changing('create')
    .argument('[key]', 'the id of the key')
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
      const { createKey } = await import('./change-keys.ts');
      await createKey(argument, options);
    });
  addLimitOptions(create, (window) => `the limit per ${window}, on a custom plan`);

  changingMany('rotate')
    .description('issue new secrets for keys; older ones expire after the overlap at the latest')
    .addHelpText(
      'after',
      examples(
        'keys rotate acme',
        'keys rotate acme --overlap 0s',
        'keys rotate --older-than 90d --overlap 14d --out secrets.csv',
      ),
    )
    .option(
      '--older-than <time>',
      'keys whose newest valid secret is older than this, or of unknown age: 90d',
      age,
    )
    .option(
      '--out <file>',
      'write the ids and new secrets to this file, which only you can read; the same command continues it',
    )
    .option(
      '--overlap <time>',
      'how long the older secrets stay valid: 24h, 30m, 7d, 0s (an immediate end), or until 2026-12-15 (the end of that day, in UTC), 18:00, 2026-12-01T18:00Z',
      '24h',
    )
    .option(...expires)
    .action(async (id: string | undefined, options: RotateOptions) => {
      const { rotateKeys } = await import('./change-keys.ts');
      await rotateKeys(id, options);
    });

  const edit = changingMany('edit')
    .description('change the plan, limits, addresses, name or expiry of keys')
    .addHelpText(
      'after',
      examples(
        'keys edit acme --plan pro',
        'keys edit acme --plan pro --from 2027-01-01',
        'keys edit --of-plan trial --expires 2027-01-31',
      ),
    )
    .option('--plan <plan>', 'the name of a plan')
    .option(
      '--from <date>',
      'when the plan changes: 2027-01-01 (00:00 UTC) or 2027-01-01T12:00:00Z (default: now)',
    )
    .option('--withdraw [date]', 'withdraw the later changes of the plan, or the one at this date')
    .option('--name <name>', 'the owner of the key; none removes the name')
    .option(
      '--address <range...>',
      'the only client addresses that may use the key; none allows every address',
    )
    .option(
      '--expires <date>',
      'when the newest secret expires, and older ones at the latest; none removes the end of the newest',
    )
    .option('--if-match <version>', 'change a directory key only if it still has this ETag')
    .action(async (id: string | undefined, options: EditKeysOptions) => {
      const { editKeys } = await import('./change-keys.ts');
      await editKeys(id, options);
    });
  addLimitOptions(edit, (window) => `the limit per ${window}, on a custom plan`);

  changing('add-secret')
    .argument('[key]', 'the id of the key')
    .description('issue one more secret for a key')
    .addHelpText('after', examples('keys add-secret acme --expires 2027-01-31'))
    .option('--id <id>', 'the id of the key, in place of the argument')
    .option(...expires)
    .action(async (argument: string | undefined, options: AddSecretOptions) => {
      const { addSecret } = await import('./change-keys.ts');
      await addSecret(argument, options);
    });

  changingMany('revoke')
    .alias('disable')
    .description('refuse keys until they are restored')
    .addHelpText('after', examples('keys revoke acme', 'keys revoke --file left.txt --dry-run'))
    .action(async (id: string | undefined, options: ChangingOptions) => {
      const { setDisabled } = await import('./change-keys.ts');
      await setDisabled(id, true, options);
    });

  changingMany('restore')
    .alias('enable')
    .description('admit revoked keys again')
    .addHelpText('after', examples('keys restore acme'))
    .action(async (id: string | undefined, options: ChangingOptions) => {
      const { setDisabled } = await import('./change-keys.ts');
      await setDisabled(id, false, options);
    });
}

/** Several states, separated by commas. */
function statesIn(text: string): string {
  if (text.split(',').every((state) => keyStates.some((known) => known === state))) return text;
  throw new InvalidArgumentError(`Allowed choices are ${keyStates.join(', ')}.`);
}

/** One key, or many keys by other options. */
function withSelection(command: Command): Command {
  return command
    .argument('[key]', 'the id of the key')
    .option('--of-plan <plan>', 'keys on this plan')
    .addOption(new Option('--state <state>', 'keys in this state').choices(keyStates))
    .option('--ids <ids>', 'these keys, separated by commas')
    .option(
      '--file <file>',
      'the keys in this file: an id a line, or the CSV of "keys list"; - means standard input',
    )
    .option('--dry-run', 'show what would change, and change nothing; exit code 1 if a key would fail')
    .option('--yes', 'ask no question');
}

function age(text: string): string {
  if (!agePattern.test(text))
    throw new InvalidArgumentError('It must be a duration such as 24h, 30m, 7d or 0s.');
  return text;
}

/** Bans and grants are not part of the configuration, so these commands send requests to a gateway even for keys of the keys file. */
function addBansAndGrants(keys: Command): void {
  const onKey = (name: string) =>
    withSelection(withGateway(keys.command(name)))
      .helpGroup('Bans and grants:')
      .option('--json', 'print JSON');

  onKey('ban')
    .description('ban keys for a while: their requests to the API get 429')
    .addHelpText(
      'after',
      examples('keys ban acme --for 2h --reason "asked by mail"', 'keys ban acme --until tomorrow'),
    )
    .addOption(
      new Option('--for <time>', 'how long the key is banned: 2h, 30m or 7d')
        .argParser(age)
        .conflicts('until'),
    )
    .option(
      '--until <when>',
      'when the ban ends, in UTC: tomorrow or 2026-12-01 (the end of that day), 18:00, 2026-12-01T18:00Z',
    )
    .option('--reason <text>', 'for operators, and with the setting bans.showReason also for the client')
    .action(async (id: string | undefined, options: BanOptions) => {
      const { banKeys } = await import('./ban-and-grant.ts');
      await banKeys(id, options);
    });

  onKey('unban')
    .description('end the bans of keys')
    .addHelpText('after', examples('keys unban acme'))
    .action(async (id: string | undefined, options: SelectionOptions) => {
      const { unbanKeys } = await import('./ban-and-grant.ts');
      await unbanKeys(id, options);
    });

  const grant = onKey('grant')
    .description('give keys other limits for a while')
    .addHelpText(
      'after',
      examples(
        'keys grant acme --per-day 5000 --until tomorrow',
        'keys grant --of-plan free --per-day 5000 --until +6h',
        ...exemptions.slice(0, 1).map(({ option }) => `keys grant acme ${option} --until 2026-11-29`),
      ),
    )
    .requiredOption(
      '--until <when>',
      'when the grant ends, in UTC: tomorrow or 2026-12-01 (the end of that day), 18:00, +6h, 2026-12-01T18:00Z',
    )
    .option('--from <when>', 'when the grant begins, in the same form; a day means 00:00 UTC (default: now)')
    .option('--group <name>', 'the group of operations whose limits the grant changes')
    .action(async (id: string | undefined, options: Omit<GrantOptions, 'exempt'>) => {
      const { grantKeys } = await import('./ban-and-grant.ts');
      await grantKeys(id, { ...options, exempt: given.filter(isGiven).map(({ name }) => name) });
    });
  const given = exemptions.map(({ name, option, aboutOption }) => ({
    name,
    option: new Option(option, aboutOption),
  }));
  for (const { option } of given) grant.addOption(option);
  const isGiven = ({ option }: { readonly option: Option }) =>
    grant.getOptionValueSource(option.attributeName()) === 'cli';
  addLimitOptions(grant, (window) => `the limit per ${window}, in place of the one that the key has`);

  onKey('ungrant')
    .description('end the grants of keys')
    .addHelpText('after', examples('keys ungrant acme'))
    .action(async (id: string | undefined, options: SelectionOptions) => {
      const { ungrantKeys } = await import('./ban-and-grant.ts');
      await ungrantKeys(id, options);
    });
}

function addMoving(keys: Command): void {
  withGateway(keys.command('export').helpGroup('Export and import:'))
    .description('print the keys of the keys file, with the digests of their secrets, for "keys import"')
    .addHelpText('after', examples('keys export > keys.json', 'keys export --directory > directory.json'))
    .option('--directory', 'print the keys of the key directory, and not those of the keys file')
    .option('--json', 'without effect: the output is always JSON')
    .action(async (options: MovingOptions) => {
      const { exportKeys } = await import('./transfer/move-keys.ts');
      await exportKeys(options);
    });

  withGateway(keys.command('import').helpGroup('Export and import:'))
    .argument('<file>', 'the output of "keys export"; - means standard input')
    .description('add keys to the keys file; existing keys stay as they are')
    .addHelpText('after', examples('keys import keys.json', 'keys import --directory directory.json'))
    .option('--directory', 'import into the key directory, and not into the keys file')
    .option('--json', 'print JSON')
    .action(async (file: string, options: MovingOptions) => {
      const { importKeys } = await import('./transfer/move-keys.ts');
      await importKeys(file, options);
    });
}
