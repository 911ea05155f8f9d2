import { type Command, InvalidArgumentError } from 'commander';
import { planWindows } from '../../model.ts';
import { agePattern, parseDuration } from '../../shapes/dates-and-durations.ts';
import { type LimitsByField, limitFieldNames, limitFieldOf } from '../../shapes/limit-fields.ts';
import { configOption, requireConfig } from '../config-option.ts';
import { CommandError } from '../output/command-error.ts';
import { print, printJson, screenOf } from '../output/screen.ts';
import { loadKeys } from './edit-keys.ts';
import { createFileKeys, definitionOf, limitOption } from './file-keys.ts';
import { configuredTable, disabledText, issuedText } from './key-views.ts';
import type { IssuedKey, WritableKeys } from './writable-keys.ts';

/** What every command that changes keys can be told. */
interface Changing {
  readonly config?: string;
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
  const changing = (name: string) =>
    keys
      .command(name)
      .helpGroup('Issue and change:')
      .addOption(configOption())
      .option('--json', 'the key, in the form of the admin API');
  const ofKey = (name: string) => changing(name).argument('<key>', 'its id');
  const expires = ['--expires <date>', 'when the secret ends: 2027-01-31 or 2027-01-31T12:00:00Z'] as const;

  const create = changing('create')
    .argument('[key]', 'its id, which quota and ban belong to')
    .description('issue a key: its secret goes to standard output, once, and its digest into the keys file')
    .option('--id <id>', 'the same as the argument')
    .requiredOption('--plan <plan>', 'the name of a plan')
    .option('--name <name>', 'who it is for')
    .option(...expires)
    .action(async (argument: string | undefined, options: CreateOptions) => {
      const { plan, name, expires } = options;
      const limits = Object.fromEntries(
        limitFieldNames.filter((field) => field in options).map((field) => [field, options[field]]),
      );
      const key = { id: idOf(argument, options.id), plan, name, limits, expires };
      showSecret(await writable(options).create(key), options, { isNew: true });
    });
  for (const window of planWindows) {
    const description = `requests in a ${window}, on a custom plan`;
    create.option(`${limitOption(limitFieldOf[window])} <count>`, description, wholeNumber);
  }

  ofKey('rotate')
    .description('issue a new secret for a key, and let the older ones end a while later')
    .option(
      '--overlap <time>',
      'for how long the older ones stay valid: 24h, 30m, 7d; 0s ends them at once',
      age,
      '24h',
    )
    .option(...expires)
    .action(async (id: string, options: Changing & { overlap: string; expires?: string }) => {
      const { overlap, expires } = options;
      const secret = { id, overlapMs: parseDuration(overlap), expires };
      showSecret(await writable(options).addSecret(secret), options, { isNew: false });
    });

  changing('add-secret')
    .argument('[key]', 'its id')
    .description('issue one more secret for a key; the older ones stay')
    .option('--id <id>', 'the same as the argument')
    .option(...expires)
    .action(async (argument: string | undefined, options: Changing & { id?: string; expires?: string }) => {
      const secret = { id: idOf(argument, options.id), expires: options.expires };
      showSecret(await writable(options).addSecret(secret), options, { isNew: false });
    });

  ofKey('revoke')
    .description('refuse a key, with all its secrets, until it is restored')
    .action((id: string, options: Changing) => setDisabled(id, true, options));

  ofKey('restore')
    .description('let a key in again that was revoked')
    .action((id: string, options: Changing) => setDisabled(id, false, options));

  keys
    .command('configured')
    .helpGroup('Look:')
    .description('list the keys of a configuration with their limits, without asking the gateway')
    .addOption(configOption())
    .option('--json', 'one JSON document, each key in the form of the admin API')
    .action((options: Changing) => {
      const { settings, written } = loadKeys(configurationOf(options));
      if (options.json) {
        const file = settings.keysFile?.path;
        printJson({ keys: written.map(({ key, line }) => ({ ...definitionOf(key), file, line })) });
      } else print(configuredTable(settings, Date.now(), screenNow()));
    });
}

function writable(options: Changing): WritableKeys {
  return createFileKeys(configurationOf(options));
}

function configurationOf({ config }: Changing) {
  return { file: requireConfig(config), env: process.env };
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
  console.error(issuedText(issued, about, Date.now()));
  print([issued.secret]);
}

async function setDisabled(id: string, disabled: boolean, options: Changing): Promise<void> {
  const changed = await writable(options).setDisabled(id, disabled);
  if (options.json) printJson(changed.json);
  else print([disabledText(changed, Date.now())]);
}

function age(text: string): string {
  if (!agePattern.test(text))
    throw new InvalidArgumentError('It must be a duration such as 24h, 30m, 7d or 0s.');
  return text;
}

function wholeNumber(text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw new InvalidArgumentError('It must be a whole number.');
  return Number(text);
}

function screenNow() {
  return screenOf(process.stdout, process.env);
}
