/** The options, help texts and output that commands share. */
import { existsSync } from 'node:fs';
import { relative } from 'node:path';
import { type Command, InvalidArgumentError, Option } from 'commander';
import type { Asked, List, Timeline } from '../admin/words/list.js';
import { defaultBounds } from '../shared/timeouts-and-sizes.ts';
import { type AdminClient, createAdminClient, type Reply } from './admin/admin-client.ts';
import { findGateway, type GatewayOptions } from './admin/find-gateway.ts';
import { CommandError } from './output/command-error.ts';
import { listCsv, listLines } from './output/list.ts';
import { print, printJson, type Screen, screenOf } from './output/screen.ts';
import { timelineCsv, timelineLines } from './output/time-list.ts';

/** The options of a command that queries a gateway and has `--json`. */
export interface Asking extends GatewayOptions {
  readonly json?: true;
}

const asking = new WeakSet<Command>();

/** Gives a command the options that select a gateway. `completeCommands` adds these options after the command's own options. */
export function withGateway(command: Command): Command {
  asking.add(command);
  return command;
}

/** Gives a command that queries a gateway the option `--json`. */
export function withJson(command: Command): Command {
  return withGateway(command).option('--json', 'print the response of the admin API as one JSON document');
}

/** Adds the options `--from` and `--to`. */
export function withPeriod(command: Command): Command {
  return command
    .option(
      '--from <when>',
      'the start of the period: 2026-11-22, 2026-11-22T10:31:00Z, today, yesterday, -7d, -12h, -30m',
    )
    .option(
      '--to <when>',
      'the end of the period, in the same form; the period includes the whole minute, hour or day (default: now)',
    );
}

/** @throws a CommandError that says what to set, where no gateway or no token is named */
export function clientOf(options: GatewayOptions): AdminClient {
  return createAdminClient(
    findGateway({ ...options, config: configOr(options.config) }, process.env),
    defaultBounds,
  );
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

/**
 * Returns the named configuration, or the configuration of the current folder. An empty name means that no configuration is used, so
 * with an empty TOLLGATE_CONFIG a command ignores the `tollgate.yaml` of the current folder.
 */
function configOr(config: string | undefined): string | undefined {
  return config ?? (existsSync(configName) ? configName : undefined);
}

/** @throws a CommandError if no configuration was named and this folder has none */
export function requireConfig(named: string | undefined): string {
  const config = configOr(named);
  if (config !== undefined && config !== '') return config;
  throw new CommandError('Which configuration? Give --config FILE or set TOLLGATE_CONFIG.');
}

/** Parses the value of an option that is a whole number. */
export function wholeNumber(text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw new InvalidArgumentError('It must be a whole number.');
  return Number(text);
}

/** Prints a response: its JSON with `--json`, and otherwise the lines that `view` makes of its body. */
export function show<Body>(
  { json: asJson }: Pick<Asking, 'json'>,
  { json, body }: Reply<Body>,
  view: (body: Body, screen: Screen, nowMs: number) => readonly string[],
): void {
  if (asJson) printJson(json);
  else print(view(body, screenNow(), Date.now()));
}

/**
 * Prints a list: its JSON with `--json`, comma-separated values with `--csv`, and otherwise its table.
 *
 * @param title the line above the list @param more the lines below the table, which go to standard error with `--csv`
 */
export function showList<Page, Row>(
  { csv, ...options }: Pick<Asking, 'json'> & { readonly csv?: true },
  reply: Reply<Page>,
  list: List<Page, Row>,
  {
    asked,
    title,
    more = () => [],
  }: {
    readonly asked: Asked;
    readonly title?: (page: Page) => string;
    readonly more?: (page: Page) => readonly string[];
  },
): void {
  if (csv && !options.json) for (const line of more(reply.body)) process.stderr.write(`${line}\n`);
  show(options, reply, (page, screen, nowMs) =>
    csv
      ? listCsv(list, page, nowMs)
      : [...(title ? [title(page)] : []), ...listLines(list, page, asked, screen, nowMs), ...more(page)],
  );
}

/** Prints a list that is sorted by time, as `showList` prints other lists. */
export function showTimeline<Page extends { readonly isComplete: boolean }, Item>(
  { csv, ...options }: Pick<Asking, 'json'> & { readonly csv?: true },
  reply: Reply<Page>,
  timeline: Timeline<Page, Item>,
): void {
  show(options, reply, (page, screen, nowMs) =>
    csv ? timelineCsv(timeline, page) : timelineLines(timeline, page, screen, nowMs),
  );
}

/** Adds the option `--csv` to a command that prints a list. */
export function withCsv(command: Command): Command {
  return command.option('--csv', 'print comma-separated values');
}

/** Standard output, with the terminal's current width. */
export function screenNow(): Screen {
  return screenOf(process.stdout, process.env);
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
  TOLLGATE_CONFIG: 'the configuration file, in place of --config and of the tollgate.yaml in this folder',
  TOLLGATE_ADMIN: 'the admin listener of the gateway, in place of --admin',
  TOLLGATE_ADMIN_TOKEN: 'a token for the admin API; "tollgate admin token" makes one',
  TOLLGATE_ADMIN_TOKEN_FILE: 'a file with the token, in place of TOLLGATE_ADMIN_TOKEN',
  COLUMNS: 'the width of tables, in place of the width of the terminal',
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
        .addOption(new Option('--admin <url>', 'the admin listener of the gateway').env('TOLLGATE_ADMIN'))
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
