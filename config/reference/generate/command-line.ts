import type { Command } from 'commander';
import { createProgram } from '../../../gateway/cli/program.ts';
import { codeBlock, page, pageHead } from './markdown.ts';

const columns = 110;

/** The help of each command, in the order of `tollgate --help`. Options that select a gateway are described once, before the commands. */
export function commandLinePage(): string {
  const program = createProgram();
  const all = commandsOf(program, 'tollgate').map(({ name, command }) => ({ name, ...textOf(command) }));
  const { variables } = textOf(program);
  const gatewayOptions = all.find(({ gatewayOptions }) => gatewayOptions !== undefined)?.gatewayOptions ?? '';
  return page([
    pageHead('The command line', 'the help of the commands'),
    'In a clone, run a command by `npx tollgate COMMAND`, and with Docker Compose by `docker compose run --rm cli COMMAND`. [What commands share](../guide/command-line.md) describes times and `--json`. The exit code is 0 after success and 1 after a failure, unless a command states another.',
    codeBlock(`Options that select a gateway:\n${gatewayOptions}\n\n${variables}`),
    ...all.flatMap(({ name, help }) => [`## ${name}`, codeBlock(help)]),
  ]);
}

/** The commands that do something, without those that only have subcommands. A command that only has subcommands has no options. */
function commandsOf(command: Command, name: string): readonly { name: string; command: Command }[] {
  return command.commands
    .filter((one) => one.name() !== 'help')
    .flatMap((one) => {
      const own = `${name} ${one.name()}`;
      const doesSomething = one.commands.length === 0 || one.options.length > 0;
      return [...(doesSomething ? [{ name: own, command: one }] : []), ...commandsOf(one, own)];
    });
}

interface HelpText {
  /** Without the descriptions of `gatewayOptions`. */
  readonly help: string;
  /** The lines of the options that select a gateway; undefined for a command without them. */
  readonly gatewayOptions: string | undefined;
  /** The environment variables at the end of the help, which are the same for many commands. */
  readonly variables: string;
}

const gatewayLines = /^ +--admin <url> .*\n +--ca <file> .*\n +--config <file> .*$/m;

function textOf(command: Command): HelpText {
  let text = '';
  command.configureHelp({ helpWidth: columns });
  command.configureOutput({ writeOut: (part) => (text += part), getOutHelpWidth: () => columns });
  command.outputHelp();
  const [help = '', variables = ''] = text.split(/\n(?=Environment:\n)/);
  return {
    help: help.replace(/^ +-h, --help .*\n/m, '').replace(gatewayLines, '  --admin, --ca, --config'),
    gatewayOptions: gatewayLines.exec(help)?.[0],
    variables,
  };
}
