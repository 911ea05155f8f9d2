#!/usr/bin/env node
/** The command line: `tollgate run | check | schema | keys … | admin …`, and the commands that ask a running gateway. */
import { readFileSync } from 'node:fs';
import { relative } from 'node:path';
import { Argument, Command, InvalidArgumentError, Option } from 'commander';
import { loadSettings, type ValidSettings } from '../config/load-settings.ts';
import { formatProblems } from '../config/problems/format-problems.ts';
import { settingsJsonSchema } from '../config/schema/settings-json-schema.ts';
import { planWindows } from '../model.ts';
import { type LimitsByField, limitFieldNames, limitFieldOf } from '../shapes/limit-fields.ts';
import { addReadingCommands } from './admin/commands.ts';
import { createAdminToken } from './admin-token.ts';
import { checkUpstreamNames } from './check-upstream-names.ts';
import { addSecret, createKey, type Issued, limitOption, type NewKey } from './create-key.ts';
import { formatKeys } from './format-keys.ts';

const program = new Command('tollgate')
  .description('An API gateway and rate-limiting proxy.')
  .version(packageVersion(), '--version', 'print the version');

program
  .command('run')
  .description('run the gateway')
  .addOption(configOption())
  .action(async ({ config }: { config: string }) => {
    const { runGateway } = await import('../main.ts');
    await runGateway({ configFile: config });
  });

program
  .command('check')
  .description('check a configuration and print every problem')
  .addArgument(
    new Argument('[file]', 'a draft, in place of --config; its keys and api are relative to it').argParser(
      fromHere,
    ),
  )
  .addOption(configOption())
  .action(async (draft: string | undefined, options: { config: string }, command: Command) => {
    if (draft !== undefined && command.getOptionValueSource('config') === 'cli') {
      command.error('Which configuration? Say FILE or --config FILE, not both.');
    }
    const config = draft ?? options.config;
    const loaded = load(config);
    if (loaded === undefined) return;
    const { environment, plans, keys, operations, version } = loaded.settings;
    const warnings = [...loaded.warnings, ...(await checkUpstreamNames(loaded))];
    for (const warning of warnings) console.error(`warning: ${warning}`);
    const counts = [
      count(plans.size, 'plan'),
      count(keys.size, 'key'),
      count(operations.length, 'operation'),
    ];
    console.log(`${config}: OK (${environment}, ${counts.join(', ')}, version ${version})`);
    // A lookup that takes longer than anybody waits for it would keep the process alive.
    process.exit();
  });

program
  .command('schema')
  .description('print the JSON Schema of the configuration, for editors')
  .action(() => {
    process.stdout.write(settingsJsonSchema());
  });

const keys = program.command('keys').description('issue and list API keys');

const create = keys
  .command('create')
  .description('issue a key: its secret goes to standard output, once, and its digest into the keys file')
  .requiredOption('--id <id>', 'what quota and ban belong to')
  .requiredOption('--plan <plan>', 'the name of a plan')
  .option('--name <name>', 'who it is for')
  .option('--expires <date>', 'when the secret ends: 2027-01-31 or 2027-01-31T12:00:00Z')
  .addOption(configOption())
  .action(async ({ config, ...options }: CreateOptions) => {
    const limits = Object.fromEntries(
      limitFieldNames.filter((field) => field in options).map((field) => [field, options[field]]),
    );
    show(await createKey({ file: config, env: process.env }, { ...options, limits }));
  });
for (const window of planWindows) {
  const description = `requests in a ${window}, on a custom plan`;
  create.option(`${limitOption(limitFieldOf[window])} <count>`, description, wholeNumber);
}

keys
  .command('add-secret')
  .description('issue one more secret for a key, so that it can be rotated without a gap')
  .requiredOption('--id <id>', 'the key')
  .option('--expires <date>', 'when the secret ends: 2027-01-31 or 2027-01-31T12:00:00Z')
  .addOption(configOption())
  .action(async ({ config, ...key }: { config: string; id: string; expires?: string }) =>
    show(await addSecret({ file: config, env: process.env }, key)),
  );

keys
  .command('configured')
  .description('list the keys of a configuration with their limits, without asking the gateway')
  .addOption(configOption())
  .action(({ config }: { config: string }) => {
    const loaded = load(config);
    if (loaded) console.log(formatKeys(loaded.settings, Date.now()));
  });

program
  .command('admin')
  .description('the admin API')
  .command('token')
  .description(
    'make a token: its YAML line for `admin.tokens`, and last the token itself, which is shown once',
  )
  .requiredOption('--name <name>', 'whose it is')
  .addOption(new Option('--may <what>', 'what it allows').choices(['read', 'write']).default('read'))
  .option('--json', 'one JSON object: name, may, sha256, token')
  .action((options: { name: string; may: 'read' | 'write'; json?: true }) => {
    const made = createAdminToken(options);
    if (made.kind === 'refused') fail(made.reason);
    else if (options.json) console.log(JSON.stringify(made.token));
    else {
      console.error(
        'Add the first line to `admin: { tokens: … }`. This is the only time that the token is shown:',
      );
      console.log(`${made.yamlLine}\n${made.token.token}`);
    }
  });

addReadingCommands(program, { keys, configOption });

type CreateOptions = Omit<NewKey, 'limits'> & LimitsByField & { readonly config: string };

program.hook('preAction', (_, command) => {
  const takes = (option: string) => command.options.some(({ long }) => long === option);
  // Those that ask a gateway need its address, which may be told in another way.
  if (
    takes('--config') &&
    !takes('--admin') &&
    command.opts().config === undefined &&
    command.args.length === 0
  ) {
    program.error('Which configuration? Say --config FILE or set TOLLGATE_CONFIG.');
  }
});

// Whoever reads it has read enough, as `head` does.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
  process.exit();
});

try {
  await program.parseAsync();
} catch (error) {
  fail(error instanceof Error ? error.message : String(error));
}

function packageVersion(): string {
  return JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')).version;
}

function configOption(): Option {
  return new Option('--config <file>', 'the configuration file').env('TOLLGATE_CONFIG').argParser(fromHere);
}

/** Relative to the working directory for files inside it: in a container the full path means nothing to the operator. */
function fromHere(file: string): string {
  const path = relative('', file);
  return path === '' || path.startsWith('..') ? file : path;
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`;
}

function wholeNumber(text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw new InvalidArgumentError('It must be a whole number.');
  return Number(text);
}

function load(config: string): ValidSettings | undefined {
  const loaded = loadSettings({ file: config, env: process.env });
  if (loaded.kind === 'valid') return loaded;
  fail(formatProblems(loaded.problems));
  return undefined;
}

/** The secret alone goes to standard output, so that `SECRET=$(… keys create …)` works. */
function show(issued: Issued): void {
  if (issued.kind === 'refused') {
    fail(issued.reason);
    return;
  }
  console.error(`Added to ${issued.file}. This is the only time the secret is shown:`);
  console.log(issued.secret);
}

function fail(message: string): void {
  console.error(message);
  process.exitCode = 1;
}
