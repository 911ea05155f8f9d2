/** What the declarations of commands share. These files import no code that a command runs, so `--help` loads only them. */
import { relative } from 'node:path';
import { type Command, InvalidArgumentError, Option } from 'commander';

/** The commands below which a folder declares its own. */
export interface CommandParents {
  readonly program: Command;
  readonly keys: Command;
}

/** The options and variables that select a gateway. */
export interface GatewayOptions {
  /** The URL of an admin listener. */
  readonly admin?: string | undefined;
  /** A PEM file with the trusted certificate authorities for the admin listener. */
  readonly ca?: string | undefined;
  /** The configuration file of the gateway. The command reads this file if `admin` is absent. */
  readonly config?: string | undefined;
}

export interface Asking extends GatewayOptions {
  readonly json?: true;
}

/** Without these options, the period is the last 24 hours. */
export interface PeriodOptions {
  readonly from?: string | undefined;
  readonly to?: string | undefined;
}

/** The groups of commands in `--help`, by need, the most used first. */
export const helpGroups = {
  look: 'See what happens:',
  keys: 'Keys:',
  configuration: 'Plans and configuration:',
  run: 'Run a gateway:',
  set: 'Set up tools:',
} as const;

const asking = new WeakSet<Command>();

/** Gives a command the options that select a gateway. `completeCommands` adds these options after the command's own options. */
export function withGateway(command: Command): Command {
  asking.add(command);
  return command;
}

export function withReply(command: Command): Command {
  return withGateway(command).option('--json', 'print JSON');
}

export function withPeriod(command: Command): Command {
  return command
    .option(
      '--from <when>',
      'the start of the period: 2026-11-22, 2026-11-22T10:31:00Z, 14:03, today, yesterday, -7d, -12h, -30m, -12mo',
    )
    .option('--to <when>', 'the end of the period; a day is included (default: now)');
}

export function withLimit(command: Command): Command {
  return command.option('--limit <count>', 'the maximum number of rows', wholeNumber, 50);
}

export function withCsv(command: Command): Command {
  return command.option('--csv', 'print CSV');
}

/** The `--config` option, the same on all commands. */
export function configOption(): Option {
  return new Option('--config <file>', 'the configuration file').env('TOLLGATE_CONFIG').argParser(fromHere);
}

/** Makes a path relative if it is inside the working directory. An absolute path in a container would not help the operator. */
export function fromHere(file: string): string {
  const path = relative('', file);
  return path === '' || path.startsWith('..') ? file : path;
}

/** The name of the file that `init` writes. Commands read this file if no configuration is named. */
export const configName = 'tollgate.yaml';

export function wholeNumber(text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw new InvalidArgumentError('It must be a whole number.');
  return Number(text);
}

/**
 * Formats the examples of a command for `addHelpText('after', …)`. The given command lines do not begin with
 * `tollgate`.
 */
export function examples(...lines: readonly string[]): string {
  return `\nExamples:\n${lines.map((line) => `  tollgate ${line}`).join('\n')}`;
}

/** The environment variables that commands read, in the order of the help. */
const variables: Readonly<Record<string, string>> = {
  TOLLGATE_CONFIG: 'the configuration file, in place of ./tollgate.yaml',
  TOLLGATE_ADMIN: 'the URL of the admin listener',
  TOLLGATE_ADMIN_TOKEN: 'a token; "tollgate admin token" makes one',
  TOLLGATE_ADMIN_TOKEN_FILE: 'a file with the token',
  COLUMNS: 'the width of tables, at least 40; not of a live top',
  NO_COLOR: 'no colours',
};

/** Adds the options that select a gateway. The help of each command also lists the environment variables that the command reads. */
export function completeCommands(program: Command): void {
  const describe = (command: Command, names: readonly string[]) => {
    if (names.length === 0) return;
    const width = Math.max(...names.map((name) => name.length));
    const lines = names.map((name) => `  ${name.padEnd(width)}  ${variables[name]}`);
    command.addHelpText('after', `\nEnvironment:\n${lines.join('\n')}`);
  };
  const visit = (command: Command) => {
    command.commands.forEach(visit);
    if (asking.has(command)) {
      command
        .addOption(new Option('--admin <url>', 'the URL of the admin listener').env('TOLLGATE_ADMIN'))
        .option('--ca <file>', "a PEM file with the authority of the listener's certificate")
        .addOption(configOption());
    }
    const read = new Set(command.options.flatMap(({ envVar }) => envVar ?? []));
    const needsToken = read.has('TOLLGATE_ADMIN');
    const names = Object.keys(variables).filter(
      (name) => read.has(name) || (needsToken && name.startsWith('TOLLGATE_ADMIN_TOKEN')),
    );
    describe(command, names);
  };
  program.commands.forEach(visit);
  describe(program, Object.keys(variables));
}
