import type { Command } from 'commander';
import { expect, it } from 'vitest';
import { createProgram } from '../../gateway/cli/program.ts';

it.each(leaves().map((command) => [pathOf(command), command] as const))(
  '%s has one to three examples in its help, each a valid command line',
  async (path, command) => {
    const lines = /\nExamples:\n((?: {2}.+\n)+)/.exec(helpOf(command))?.[1]?.trimEnd().split('\n') ?? [];
    expect(lines.length).toBeGreaterThanOrEqual(1);
    expect(lines.length).toBeLessThanOrEqual(3);
    for (const line of lines) {
      const program = createProgram();
      const ran: string[] = [];
      for (const leaf of leaves(program)) leaf.action(() => void ran.push(pathOf(leaf)));
      const words = line.replace(/ [<>].*/, '').match(/"[^"]*"|\S+/g) ?? [];
      await program.parseAsync(words.slice(1), { from: 'user' });
      expect([line, ran]).toEqual([line, [path]]);
    }
  },
);

it('the help of a command that uses a gateway names the variables for its address and its token', () => {
  const namesIn = (help: string) => [...help.matchAll(/^ {2}([A-Z_]+) {2}/gm)].map(([, name]) => name);
  const asking = ['TOLLGATE_CONFIG', 'TOLLGATE_ADMIN', 'TOLLGATE_ADMIN_TOKEN', 'TOLLGATE_ADMIN_TOKEN_FILE'];
  const named = new Map(leaves().map((command) => [pathOf(command), namesIn(helpOf(command))]));
  expect(named.get('tollgate keys grant')).toEqual(asking);
  expect(named.get('tollgate why')).toEqual(asking);
  expect(named.get('tollgate check')).toEqual(asking);
  expect(named.get('tollgate schema')).toEqual([]);
  expect(namesIn(helpOf(createProgram()))).toEqual([...asking, 'COLUMNS', 'NO_COLOR']);
});

it.each([
  ['keys rotat acme', 'rotate'],
  ['keys grnt acme', 'grant'],
  ['keys unrevoke acme', ''],
  ['keys unbn acme', 'unban'],
  ['keys revok acme', 'revoke'],
  ['chek', 'check'],
])('%s suggests %j, and never the opposite', (line, suggested) => {
  const parts: string[] = [];
  const program = createProgram();
  for (const command of [program, ...program.commands, ...leaves(program)]) {
    command.configureOutput({ writeErr: (part) => void parts.push(part) });
  }
  expect(() => program.parse(line.split(' '), { from: 'user' })).toThrow();
  expect(parts.join('')).toContain('error: unknown');
  expect(/Did you mean (.*)\?/.exec(parts.join(''))?.[1] ?? '').toBe(suggested);
});

/** The commands that a user can run. A command with subcommands can be run if it has options of its own. */
function leaves(command: Command = createProgram()): Command[] {
  const isLeaf = command.commands.length === 0 || (command.parent !== null && command.options.length > 0);
  return [...(isLeaf ? [command] : []), ...command.commands.flatMap((one) => leaves(one))];
}

function pathOf(command: Command): string {
  return command.parent === null ? command.name() : `${pathOf(command.parent)} ${command.name()}`;
}

function helpOf(command: Command): string {
  const parts: string[] = [];
  command.configureOutput({ writeOut: (part) => void parts.push(part) }).outputHelp();
  return parts.join('');
}
