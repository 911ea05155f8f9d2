import { readFileSync } from 'node:fs';
import { Argument, Command } from 'commander';
import { commandParts } from '../capabilities/lists/commands.ts';
import { printable } from '../shared/terminal/printable.ts';
import { addPlanCommands, addReadingCommands, addTokenCommand } from './admin/commands.ts';
import { type CommandParents, completeCommands, examples, helpGroups } from './command.ts';
import type { Shell } from './completion.ts';
import { addKeyCommands } from './keys/commands.ts';
import { addStartCommands } from './start/commands.ts';
import { addWhatIfCommands } from './what-if/commands.ts';

/**
 * The functions that declare the commands, in the order of the help. A declaration has the name, the options and the help of a command.
 * The action of a command imports the file that does the work, so a command loads only the code that it runs.
 */
const declarations: readonly ((parents: CommandParents) => void)[] = [
  addTokenCommand,
  addReadingCommands,
  addCapabilityCommands,
  addPlanCommands,
  addWhatIfCommands,
  addKeyCommands,
  addCompletionCommand,
];

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
  const keys = program
    .command('keys')
    .description('issue, change and list API keys')
    .helpGroup(helpGroups.keys);
  for (const declare of declarations) declare({ program, keys });
  completeCommands(program);
  sortByNeed(program);
  program.addHelpCommand(
    new Command('help')
      .argument('[command]')
      .description('show the help of a command')
      .helpGroup(helpGroups.set),
  );
  return program;
}

/** Sorts the commands by the order of their groups. */
function sortByNeed(program: Command): void {
  const order: readonly string[] = Object.values(helpGroups);
  const placeOf = (command: Command) => (order.indexOf(command.helpGroup()) + order.length) % order.length;
  (program.commands as Command[]).sort((a, b) => placeOf(a) - placeOf(b));
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

function addCapabilityCommands(parents: CommandParents): void {
  for (const part of commandParts) part.add?.(parents);
}

function addCompletionCommand({ program }: CommandParents): void {
  program
    .command('completion')
    .helpGroup(helpGroups.set)
    .description('print a script with which a shell completes commands, options and values')
    .addArgument(new Argument('<shell>', 'the shell that reads the script').choices(['bash', 'zsh', 'fish']))
    .addHelpText(
      'after',
      examples(
        'completion bash > ~/.local/share/bash-completion/completions/tollgate',
        'completion zsh > ~/.tollgate-completion.zsh',
        'completion fish > ~/.config/fish/completions/tollgate.fish',
      ),
    )
    .action(async (shell: Shell) => {
      const { printCompletion } = await import('./completion.ts');
      printCompletion(shell, program);
    });
}

function packageVersion(): string {
  return JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')).version;
}
