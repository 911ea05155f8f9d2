import type { Command } from 'commander';
import { createProgram } from '../../../gateway/cli/program.ts';
import { codeBlock, page, pageHead } from './markdown.ts';

const columns = 110;

/** The help of each command, in the order of `tollgate --help`. */
export function commandLinePage(): string {
  const program = createProgram();
  const all = commandsOf(program, 'tollgate');
  const { variables } = textOf(program);
  return page([
    pageHead('The command line', 'the help of the commands'),
    'In a clone, run a command by `npx tollgate COMMAND`, and with Docker Compose by `docker compose run --rm cli COMMAND`. The exit code is 0 after success and 1 after a failure, unless a command states another.',
    codeBlock(variables),
    ...all.flatMap(({ name, command }) => [`## ${name}`, codeBlock(textOf(command).help)]),
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

/** The help, and the environment variables at its end, which are the same for many commands. */
function textOf(command: Command): { readonly help: string; readonly variables: string } {
  let text = '';
  command.configureHelp({ helpWidth: columns });
  command.configureOutput({ writeOut: (part) => (text += part), getOutHelpWidth: () => columns });
  command.outputHelp();
  const [help = '', variables = ''] = text.split(/\n(?=Environment:\n)/);
  return { help: help.replace(/^ +-h, --help .*\n/m, ''), variables };
}
