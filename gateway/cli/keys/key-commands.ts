import { type Command, InvalidArgumentError } from 'commander';
import { type LimitsByField, limitFieldNames, limitFieldOf } from '../../keys/limit-fields.ts';
import { type PlanWindow, planWindows } from '../../shared/model.ts';
import { agePattern, parseDuration } from '../../shared/schema/dates-and-durations.ts';
import { printable } from '../../shared/terminal/printable.ts';
import type { AdminClient, Reply } from '../admin/admin-client.ts';
import type { GatewayOptions } from '../admin/find-gateway.ts';
import { grantPeriod } from '../admin/period.ts';
import { clientOf, examples, requireConfig, wholeNumber, withGateway } from '../command.ts';
import { CommandError } from '../output/command-error.ts';
import { print, printJson } from '../output/screen.ts';
import { grantKey, heldText, type NowHeld, unbanKey, ungrantKey, whyNow } from './ban-and-grant.ts';
import { createDirectoryKeys } from './directory-keys.ts';
import { createFileKeys, limitOption } from './file-keys.ts';
import { disabledText, issuedText } from './key-views.ts';
import { type ToldChange, tellChange, toldKey, toldSecret } from './tell-change.ts';
import {
  type ChangedKey,
  createKeysOfBoth,
  type IssuedKey,
  type NewSecret,
  type WritableKeys,
} from './writable-keys.ts';

/** What every command that changes keys can be told. */
interface Changing extends GatewayOptions {
  /** Of the directory, in place of the keys file. */
  readonly directory?: true;
  readonly json?: true;
}

type CreateOptions = Changing &
  LimitsByField & {
    readonly id?: string;
    readonly plan: string;
    readonly name?: string;
    readonly expires?: string;
  };

/**
 * The commands that issue and change keys.
 *
 * @param keys the command that they belong to
 */
export function addKeyCommands(keys: Command): void {
  const before = keys.commands.length;
  const changing = (name: string) =>
    keys
      .command(name)
      .helpGroup('Issue and change:')
      .option('--directory', 'in the directory, by the admin API, and not in the keys file')
      .option('--json', 'the key, in the form of the admin API');
  const ofKey = (name: string) => changing(name).argument('<key>', 'its id');
  const expires = ['--expires <date>', 'when the secret ends: 2027-01-31 or 2027-01-31T12:00:00Z'] as const;

  const create = changing('create')
    .argument('[key]', 'its id, which quota and ban belong to')
    .description('issue a key; its secret goes to standard output, this once')
    .addHelpText(
      'after',
      examples(
        'keys create acme --plan free --name "Acme Ltd" --expires 2027-01-31',
        'keys create big --plan enterprise --per-minute 5000 --directory',
      ),
    )
    .option('--id <id>', 'the same as the argument')
    .requiredOption('--plan <plan>', 'the name of a plan')
    .option('--name <name>', 'who it is for')
    .option(...expires)
    .action(async (argument: string | undefined, options: CreateOptions) => {
      const { plan, name, expires } = options;
      const key = { id: idOf(argument, options.id), plan, name, limits: limitsOf(options), expires };
      const issued = await writable(options).create(key);
      showSecret(issued, options, { isNew: true });
      await tell(options, issued, { action: 'create', key: key.id, after: toldKey(issued.key) });
    });
  addLimitOptions(create, (window) => `requests per ${window}, on a custom plan`);

  ofKey('rotate')
    .description('issue a new secret for a key, and let the older ones end a while later')
    .addHelpText('after', examples('keys rotate acme', 'keys rotate acme --overlap 0s'))
    .option(
      '--overlap <time>',
      'for how long the older ones stay valid: 24h, 30m, 7d; 0s ends them at once',
      age,
      '24h',
    )
    .option(...expires)
    .action(async (id: string, options: Changing & { overlap: string; expires?: string }) => {
      const { overlap, expires } = options;
      await addSecret({ id, overlap, expires }, options);
    });

  changing('add-secret')
    .argument('[key]', 'its id')
    .description('issue one more secret for a key; the older ones stay')
    .addHelpText('after', examples('keys add-secret acme --expires 2027-01-31'))
    .option('--id <id>', 'the same as the argument')
    .option(...expires)
    .action(async (argument: string | undefined, options: Changing & { id?: string; expires?: string }) => {
      await addSecret({ id: idOf(argument, options.id), expires: options.expires }, options);
    });

  ofKey('revoke')
    .description('refuse a key, with all its secrets, until it is restored')
    .addHelpText('after', examples('keys revoke acme'))
    .action((id: string, options: Changing) => setDisabled(id, true, options));

  ofKey('restore')
    .description('let a key in again that was revoked')
    .addHelpText('after', examples('keys restore acme'))
    .action((id: string, options: Changing) => setDisabled(id, false, options));

  addBanAndGrant(keys);
  // Behind the options of each command's own.
  for (const command of keys.commands.slice(before)) withGateway(command);
}

function writable(options: Changing): WritableKeys {
  const directory = () => createDirectoryKeys(clientOf(options));
  if (options.directory) return directory();
  return createKeysOfBoth(
    createFileKeys({ file: requireConfig(options.config), env: process.env }),
    directory,
  );
}

/** The id of a key was an option before it was an argument. */
function idOf(argument: string | undefined, option: string | undefined): string {
  if (argument !== undefined && option !== undefined && argument !== option) {
    throw new CommandError(`Which key, ${argument} or ${option}? Say its id once.`);
  }
  const id = argument ?? option;
  if (id === undefined)
    throw new CommandError('Which key? Say its id, as in "keys create acme --plan free".');
  return id;
}

/** The secret alone goes to standard output, so that `SECRET=$(… keys create …)` works. */
function showSecret(issued: IssuedKey, { json }: Changing, about: { readonly isNew: boolean }): void {
  if (json) {
    printJson(issued.json);
    return;
  }
  console.error(printable(issuedText(issued, about, Date.now())));
  print([issued.secret]);
}

/** What a gateway did is in its record already. */
async function tell(options: Changing, { key }: ChangedKey, change: ToldChange): Promise<void> {
  if (key.source === 'file') await tellChange(options, change);
}

/** Bans and grants are no part of the configuration: a gateway is asked, for keys of both kinds. */
function addBanAndGrant(keys: Command): void {
  const asking = (name: string) =>
    keys
      .command(name)
      .helpGroup('Let through:')
      .argument('<key>', 'its id')
      .option('--json', 'what holds for the key now, as the admin API says');

  asking('unban')
    .description('lift the ban of a key: it may call again, on every process within a second')
    .addHelpText('after', examples('keys unban acme'))
    .action(async (id: string, options: Changing) => {
      const client = clientOf(options);
      await showHeld(client, await unbanKey(client, id), options, 'ban');
    });

  const grant = asking('grant')
    .description('give a key other limits for a while, in place of those of its plan')
    .addHelpText(
      'after',
      examples(
        'keys grant acme --per-day 5000 --until tomorrow',
        'keys grant acme --per-day 5000 --from 2026-11-27 --until 2026-11-29',
      ),
    )
    .requiredOption(
      '--until <when>',
      'when it ends: tomorrow or 2026-12-01 (the end of that day), 18:00, +6h, 2026-12-01T18:00Z; times are UTC',
    )
    .option('--from <when>', 'when it begins, in the same words: a day is its first instant (default: now)')
    .action(async (id: string, options: Changing & LimitsByField & { from?: string; until: string }) => {
      const limits = limitsOf(options);
      if (Object.keys(limits).length === 0) {
        const all = limitFieldNames.map(limitOption).join(', ');
        throw new CommandError(`Which limits? Say at least one of ${all}.`);
      }
      const client = clientOf(options);
      const body = { limits, ...grantPeriod(options, Date.now()) };
      await showHeld(client, await grantKey(client, id, body), options, 'grant');
    });
  addLimitOptions(grant, (window) => `requests per ${window}, if its plan limits that`);

  asking('ungrant')
    .description('end the grant of a key: the limits of its plan hold again')
    .addHelpText('after', examples('keys ungrant acme'))
    .action(async (id: string, options: Changing) => {
      const client = clientOf(options);
      await showHeld(client, await ungrantKey(client, id), options, 'grant');
    });
}

async function showHeld(
  client: AdminClient,
  { json, body }: Reply<NowHeld>,
  options: Changing,
  what: 'ban' | 'grant',
): Promise<void> {
  if (options.json) return printJson(json);
  print([heldText(body, what, Date.now())]);
  print([await whyNow(client, body.id)]);
}

function addLimitOptions(command: Command, describe: (window: PlanWindow) => string): void {
  for (const window of planWindows) {
    command.option(`${limitOption(limitFieldOf[window])} <count>`, describe(window), wholeNumber);
  }
}

function limitsOf(options: LimitsByField): LimitsByField {
  return Object.fromEntries(
    limitFieldNames.filter((field) => field in options).map((field) => [field, options[field]]),
  );
}

async function addSecret(secret: NewSecret, options: Changing): Promise<void> {
  const issued = await writable(options).addSecret(secret);
  showSecret(issued, options, { isNew: false });
  const newest = issued.key.secrets.at(-1);
  const { id: key, overlap } = secret;
  const endMs = overlap === undefined ? undefined : Date.now() + parseDuration(overlap);
  await tell(options, issued, {
    action: endMs === undefined ? 'secret' : 'rotate',
    key,
    after: {
      ...(newest && toldSecret(newest)),
      ...(endMs !== undefined && { othersEndAt: new Date(endMs).toISOString() }),
    },
  });
}

async function setDisabled(id: string, disabled: boolean, options: Changing): Promise<void> {
  const changed = await writable(options).setDisabled(id, disabled);
  if (options.json) printJson(changed.json);
  else print([printable(disabledText(changed, Date.now()))]);
  if (!changed.isChanged) return;
  const action = disabled ? 'revoke' : 'restore';
  await tell(options, changed, { action, key: id, before: { disabled: !disabled }, after: { disabled } });
}

function age(text: string): string {
  if (!agePattern.test(text))
    throw new InvalidArgumentError('It must be a duration such as 24h, 30m, 7d or 0s.');
  return text;
}
