import type { Command } from 'commander';

/** The examples of a command, for `addHelpText('after', …)`: command lines without `tollgate` in front. */
export function examples(...lines: readonly string[]): string {
  return `\nExamples:\n${lines.map((line) => `  tollgate ${line}`).join('\n')}`;
}

/** The variables of the environment that commands read, in the order of the help. */
const variables: Readonly<Record<string, string>> = {
  TOLLGATE_CONFIG: 'the configuration file, in place of --config',
  TOLLGATE_ADMIN: 'the admin listener of the gateway, in place of --admin',
  TOLLGATE_ADMIN_TOKEN: 'a token of its admin API; "tollgate admin token" makes one',
  TOLLGATE_ADMIN_TOKEN_FILE: 'a file with that token, in place of TOLLGATE_ADMIN_TOKEN',
  COLUMNS: 'how wide a table may be, in place of the width of the terminal',
  NO_COLOR: 'no colours',
};

/** The help of every command lists the variables that the command reads, the help of the program all of them. */
export function describeEnvironment(program: Command): void {
  const describe = (command: Command, names: readonly string[]) => {
    if (names.length === 0) return;
    const width = Math.max(...names.map((name) => name.length));
    const lines = names.map((name) => `  ${name.padEnd(width)}  ${variables[name]}`);
    command.addHelpText('after', `\nEnvironment:\n${lines.join('\n')}`);
  };
  const visit = (command: Command) => {
    command.commands.forEach(visit);
    const names = command.options.flatMap(({ envVar }) => envVar ?? []);
    const asks = names.includes('TOLLGATE_ADMIN');
    describe(
      command,
      Object.keys(variables).filter(
        (name) => names.includes(name) || (asks && name.startsWith('TOLLGATE_ADMIN_TOKEN')),
      ),
    );
  };
  program.commands.forEach(visit);
  describe(program, Object.keys(variables));
}
