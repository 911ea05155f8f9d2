#!/usr/bin/env node
/** The command line: `tollgate run | check | schema | keys … | admin …`, and the commands that ask a running gateway. */
import { readFileSync } from 'node:fs';
import { Argument, Command, CommanderError, Option } from 'commander';
import { loadSettings, type ValidSettings } from '../config/load-settings.ts';
import { formatProblems } from '../config/problems/format-problems.ts';
import { settingsJsonSchema } from '../config/schema/settings-json-schema.ts';
import { printable } from '../terminal/printable.ts';
import { addReadingCommands } from './admin/commands.ts';
import { createAdminToken } from './admin-token.ts';
import { checkUpstreamNames } from './check-upstream-names.ts';
import { configOption, fromHere, requireConfig } from './config-option.ts';
import { addKeyCommands } from './keys/key-commands.ts';
import { addLookingCommands, addMovingCommands } from './keys/key-file-commands.ts';
import { addWhatIfCommands } from './what-if/commands.ts';

const program = new Command('tollgate')
  .description('An API gateway and rate-limiting proxy.')
  .version(packageVersion(), '--version', 'print the version')
  .configureOutput({ writeErr: (text) => process.stderr.write(printable(text)) })
  // Commander would end the process behind a help text before it is known whether that could be written.
  .exitOverride();

program
  .command('run')
  .description('run the gateway')
  .addOption(configOption())
  .action(async ({ config }: { config?: string }) => {
    const configFile = requireConfig(config);
    const { runGateway } = await import('../main.ts');
    await runGateway({ configFile });
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
  .action(async (draft: string | undefined, options: { config?: string }, command: Command) => {
    if (draft !== undefined && command.getOptionValueSource('config') === 'cli') {
      command.error('Which configuration? Say FILE or --config FILE, not both.');
    }
    const config = draft ?? requireConfig(options.config);
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
    // A lookup that takes longer than anybody waits for it would keep the process alive. Whether the line could be written
    // is known one turn later.
    setImmediate(() => process.exit());
  });

program
  .command('schema')
  .description('print the JSON Schema of the configuration, for editors')
  .action(() => {
    process.stdout.write(settingsJsonSchema());
  });

const keys = program.command('keys').description('issue, change and list API keys');

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
    if (options.json) console.log(JSON.stringify(made.token));
    else {
      console.error(
        'Add the first line to `admin: { tokens: [ … ] }`, with a comma between two of them; in a list with one entry a line, put "- " before it. This is the only time that the token is shown:',
      );
      console.log(`${made.yamlLine}\n${made.token.token}`);
    }
  });

addReadingCommands(program, keys);
addWhatIfCommands(program);
addLookingCommands(keys);
addKeyCommands(keys);
addMovingCommands(keys);

// With a closed pipe whoever reads it has read enough, as `head` does.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') fail(`Standard output cannot be written: ${error.message}.`);
  process.exit();
});

try {
  await program.parseAsync();
} catch (error) {
  // What a CommanderError says is written already.
  if (error instanceof CommanderError) process.exitCode = error.exitCode;
  else fail(error instanceof Error ? error.message : String(error));
}

function packageVersion(): string {
  return JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')).version;
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`;
}

function load(config: string): ValidSettings | undefined {
  const loaded = loadSettings({ file: config, env: process.env });
  if (loaded.kind === 'valid') return loaded;
  fail(formatProblems(loaded.problems));
  return undefined;
}

/** A message may repeat what somebody else wrote: the line of a file, an argument, what a gateway said. */
function fail(message: string): void {
  console.error(printable(message));
  process.exitCode = 1;
}
