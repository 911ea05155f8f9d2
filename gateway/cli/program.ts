import { readFileSync } from 'node:fs';
import { Argument, Command, Option } from 'commander';
import { commandParts } from '../capabilities/lists/commands.ts';
import { loadSettings, type ValidSettings } from '../config/load-settings.ts';
import { formatProblems } from '../config/problems/format-problems.ts';
import { settingsJsonSchema } from '../config/schema/settings-json-schema.ts';
import { adminTokenSchema } from '../config/schema/settings-schema.ts';
import type { Settings } from '../shared/model.ts';
import { digestSecret, issueAdminToken } from '../shared/secrets.ts';
import { printable } from '../shared/terminal/printable.ts';
import { defaultBounds } from '../shared/timeouts-and-sizes.ts';
import { counted } from '../shared/words/figures.js';
import { addReadingCommands } from './admin/commands.ts';
import { adminUrlOf, type GatewayOptions, hasToken } from './admin/find-gateway.ts';
import { gatewayWarnings } from './admin/gateway-warnings.ts';
import { leakedCountWarnings } from './admin/leaked-warnings.ts';
import { addPlanCommands } from './admin/plan-commands.ts';
import {
  clientOf,
  completeCommands,
  configOption,
  examples,
  fromHere,
  requireConfig,
  withGateway,
} from './command.ts';
import { addCompletionCommand } from './completion.ts';
import { addKeyCommands } from './keys/key-commands.ts';
import { addLookingCommands, addMovingCommands } from './keys/key-file-commands.ts';
import { addLeakedCommand } from './keys/leaked.ts';
import { CommandError } from './output/command-error.ts';
import { checkUpstreamNames } from './start/check-upstream-names.ts';
import { addStartCommands } from './start/commands.ts';
import { addWhatIfCommands } from './what-if/commands.ts';

/**
 * The command line: `tollgate init | start | run | check | schema | keys … | admin …`, and the commands that query a running
 * gateway.
 */
export function createProgram(): Command {
  const program = new Command('tollgate')
    .description('An API gateway and rate-limiting proxy.')
    .version(packageVersion(), '--version', 'print the version')
    .configureOutput({
      writeErr: (text) => process.stderr.write(printable(text)),
      outputError: (text, write) => write(withoutOpposites(text)),
    })
    .showHelpAfterError('(--help lists the options, with examples)')
    // A command and its subcommands may have options with the same names.
    .enablePositionalOptions()
    // By default, commander exits the process before a write error of standard output is reported.
    .exitOverride();

  addStartCommands(program);
  addConfigurationCommands(program);
  const keys = program.command('keys').description('issue, change and list API keys');
  addTokenCommand(program);
  addReadingCommands(program, keys);
  for (const part of commandParts) part.add?.(program);
  addPlanCommands(program);
  addWhatIfCommands(program);
  addLookingCommands(keys);
  addKeyCommands(keys);
  addLeakedCommand(keys);
  addMovingCommands(keys);
  addCompletionCommand(program);
  completeCommands(program);
  return program;
}

/** Removes suggestions that do the opposite of the written command or option, such as `unban` for `ban`. */
function withoutOpposites(error: string): string {
  const [, written = ''] = /^error: unknown (?:command|option) '(.*)'/.exec(error) ?? [];
  const affirmed = (name: string) => name.replace(/^(--)?(?:un|no-)/, '$1');
  return error.replace(/\n\(Did you mean (?:one of )?(.*)\?\)/, (suggestion, names: string) => {
    const isOpposite = names
      .split(', ')
      .some((name) => name !== written && (affirmed(name) === written || affirmed(written) === name));
    return isOpposite ? '' : suggestion;
  });
}

function addConfigurationCommands(program: Command): void {
  program
    .command('run')
    .description('run the gateway')
    .addHelpText('after', examples('run --config config/production.yaml'))
    .addOption(configOption())
    .action(async ({ config }: { config?: string }) => {
      const configFile = requireConfig(config);
      const { runGateway } = await import('../main.ts');
      await runGateway({ configFile });
    });

  withGateway(program.command('check'))
    .description(
      'check a configuration and print every problem; also ask a running gateway which secrets of the configuration have leaked, and which plans become smaller without a guard',
    )
    .addHelpText('after', examples('check', 'check config/draft.yaml'))
    .addArgument(
      new Argument('[file]', 'a draft, in place of --config; its paths are relative to this file').argParser(
        fromHere,
      ),
    )
    .action(async (draft: string | undefined, options: GatewayOptions, command: Command) => {
      if (draft !== undefined && command.getOptionValueSource('config') === 'cli') {
        command.error('Which configuration? Give FILE or --config FILE, not both.');
      }
      const config = draft ?? requireConfig(options.config);
      const loaded = load(config);
      const { environment, plans, keys, operations, version } = loaded.settings;
      const [ofNames, ofGateway] = await Promise.all([
        checkUpstreamNames(loaded),
        warningsOfGateway(loaded.settings, { ...options, config }),
      ]);
      const warnings = [...loaded.warnings, ...ofNames, ...ofGateway];
      for (const warning of warnings) console.error(`warning: ${warning}`);
      const counts = [
        counted(plans.size, 'plan'),
        counted(keys.size, 'key'),
        counted(operations.length, 'operation'),
      ];
      console.log(`${config}: OK (${environment}, ${counts.join(', ')}, version ${version})`);
      // The process exits explicitly, because a slow DNS lookup would keep it alive. `setImmediate` delays the exit until a write error of
      // standard output is reported.
      setImmediate(() => process.exit());
    });

  program
    .command('schema')
    .description('print the JSON Schema of the configuration, for editors')
    .addHelpText('after', examples('schema > tollgate.schema.json'))
    .action(() => {
      process.stdout.write(settingsJsonSchema());
    });
}

function addTokenCommand(program: Command): void {
  program
    .command('admin')
    .description('make tokens for the admin API')
    .command('token')
    .description(
      'make a token; the first line of output is its entry for `admin.tokens`, and the second line is the token, which is shown only once',
    )
    .requiredOption('--name <name>', 'the owner of the token')
    .addOption(
      new Option('--may <what>', 'the permission of the token').choices(['read', 'write']).default('read'),
    )
    .option('--json', 'print one JSON object with name, may, sha256 and token')
    .addHelpText('after', examples('admin token --name alice', 'admin token --name deploy --may write'))
    .action((options: { name: string; may: 'read' | 'write'; json?: true }) => {
      const token = issueAdminToken();
      const entry = { name: options.name, sha256: digestSecret(token), may: options.may };
      const issue = adminTokenSchema.safeParse(entry).error?.issues[0];
      if (issue !== undefined) throw new CommandError(`--${issue.path.join('.')} ${issue.message}.`);
      if (options.json) console.log(JSON.stringify({ ...entry, token }));
      else {
        console.error(
          'Add the first line to `admin: { tokens: [ … ] }` of the configuration (in a list with one entry a line, after "- "). The second line is the token, which is shown only now:',
        );
        // Without quotes, YAML would read a name such as 1234 or true as another type.
        console.log(`{ name: "${entry.name}", may: ${entry.may}, sha256: ${entry.sha256} }\n${token}`);
      }
    });
}

function packageVersion(): string {
  return JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')).version;
}

/** Returns warnings of a running gateway. Without a token, only the number of leaked secrets is known. */
async function warningsOfGateway(
  settings: Settings,
  options: GatewayOptions & { readonly config: string },
): Promise<readonly string[]> {
  if (hasToken(process.env)) {
    const asked = { settings, file: options.config, nowMs: Date.now() };
    return gatewayWarnings(asked, () => clientOf(options));
  }
  const url = adminUrlOf(options, settings);
  return url === undefined ? [] : leakedCountWarnings(url, settings, defaultBounds.checkLookupTimeoutMs);
}

/** @throws a CommandError with every problem */
function load(config: string): ValidSettings {
  const loaded = loadSettings({ file: config, env: process.env });
  if (loaded.kind === 'valid') return loaded;
  throw new CommandError(formatProblems(loaded.problems));
}
