import { type Command, Option } from 'commander';
import { commandParts } from '../../capabilities/lists/commands.ts';
import { usageNotes } from '../../capabilities/lists/words.js';
import { usageSteps } from '../../shared/schema/query-words.ts';
import {
  type Asking,
  type CommandParents,
  examples,
  helpGroups,
  wholeNumber,
  withCsv,
  withGateway,
  withLimit,
  withPeriod,
  withReply,
} from '../command.ts';
import type { WhyOptions } from '../request/why.ts';
import type { TokenOptions } from '../start/token.ts';
import type { TopOptions } from '../top/show-top.ts';
import type { ChangesOptions, EventsOptions } from './history.ts';
import type { CallersOptions, OperationsOptions } from './operations.ts';
import type { UsageOptions } from './usage/usage.ts';

/** Declares the command that makes tokens. */
export function addTokenCommand({ program }: CommandParents): void {
  program
    .command('admin')
    .helpGroup(helpGroups.set)
    .description('make tokens for the admin API')
    .command('token')
    .description(
      'make a token, and print its entry for `admin.tokens` and then the token, which is shown only once',
    )
    .requiredOption('--name <name>', 'the owner of the token')
    .addOption(new Option('--may <what>', 'what the token may do').choices(['read', 'write']).default('read'))
    .option('--json', 'print JSON')
    .addHelpText('after', examples('admin token --name alice', 'admin token --name deploy --may write'))
    .action(async (options: TokenOptions) => {
      const { makeToken } = await import('../start/token.ts');
      makeToken(options);
    });
}

/** Declares the commands that only read data: each prints a response of the admin API as a table, a sentence or JSON. */
export function addReadingCommands({ program }: CommandParents): void {
  addTop(program);
  addWhy(program);
  addOperations(program);
  addUsage(program);
  addFleet(program);
}

function addTop(program: Command): void {
  withReply(program.command('top').helpGroup(helpGroups.look))
    .description('show the live state of the gateway, and the busiest and most refused keys')
    .option('--once', 'print the state once and end')
    .addHelpText('after', examples('top', 'top --once --admin http://127.0.0.1:9090'))
    .action(async (options: TopOptions) => {
      const { showTop } = await import('../top/show-top.ts');
      await showTop(options);
    });
}

function addWhy(program: Command): void {
  withGateway(program.command('why').helpGroup(helpGroups.look))
    .argument('[key or request]', 'the id of a key, or with --log the id of a request')
    .description('explain the responses of a key, its refusals in a minute, or what happened to a request')
    .addHelpText('after', examples('why acme', 'why acme --at 14:03', 'why 6f1f2f3a --log gateway.log'))
    .option(
      '--at <when>',
      'explain the refusals of the key in this minute: 14:03 (the last one, in UTC), "2026-11-27 14:03", 2026-11-27T14:03Z',
    )
    .option('--log <file...>', "the gateway's log, which may be compressed with gzip; - means standard input")
    .option('--json', 'print JSON')
    .action(async (given: string | undefined, options: WhyOptions) => {
      const { why } = await import('../request/why.ts');
      await why(given, options);
    });
}

function addOperations(program: Command): void {
  withCsv(withReply(withPeriod(program.command('operations').helpGroup(helpGroups.look))))
    .description('list the operations with their requests and the percentiles of their times')
    .addHelpText('after', examples('operations --from -7d', 'operations --deprecated --from -7d --csv'))
    .option('--deprecated', 'list the deprecated operations with their sunsets and the keys that called them')
    .action(async (options: OperationsOptions) => {
      const { listOperations } = await import('./operations.ts');
      await listOperations(options);
    });

  withReply(withPeriod(program.command('callers').helpGroup(helpGroups.look)))
    .argument('<operation>', 'the operationId of the operation')
    .description('list the keys that called an operation, and their last calls')
    .addHelpText('after', examples('callers getPet --from -7d', 'callers getPet --csv > callers.csv'))
    .option('--limit <count>', 'the maximum number of rows, up to 10,000', wholeNumber, 50)
    .option('--csv', 'print up to 10,000 callers as CSV')
    .action(async (operationId: string, options: CallersOptions) => {
      const { listCallers } = await import('./operations.ts');
      await listCallers(operationId, options);
    });
}

function addUsage(program: Command): void {
  withReply(withPeriod(program.command('usage').helpGroup(helpGroups.look)))
    .argument('[key]', 'the id of the key')
    .description(
      'show the requests of a key or of all clients, and forecast when a key reaches its limit a month',
    )
    .addHelpText(
      'after',
      examples(
        'usage --compare -7d',
        'usage acme --from -24h --compare -7d',
        'usage --all --month 2026-11 --csv > bills.csv',
      ),
    )
    .addHelpText('after', `\n${usageNotes.join(' ').replaceAll('. ', '.\n')}`)
    .option('--month <month>', 'a UTC month such as 2026-11, in place of --from and --to')
    .option(
      '--all',
      'show each key in a month (default: the present month); keys without requests only with --csv or --json',
    )
    .addOption(new Option('--step <step>', 'the length of a row; month only for a key').choices(usageSteps))
    .option(
      '--compare <length>',
      'compare with the period this much earlier: -7d (without --from and --to: the last 7 days), -12h, -30m; with --step month or --all: -12mo',
    )
    .option('--csv', 'print CSV')
    .action(async (id: string | undefined, options: UsageOptions) => {
      const { usage } = await import('./usage/usage.ts');
      await usage(id, options);
    });
}

function addFleet(program: Command): void {
  withReply(program.command('processes').helpGroup(helpGroups.look))
    .description('list the gateway processes with their versions of the configuration')
    .addHelpText('after', examples('processes'))
    .action(async (options: Asking) => {
      const { listProcesses } = await import('./fleet.ts');
      await listProcesses(options);
    });

  withCsv(withReply(withLimit(withPeriod(program.command('events').helpGroup(helpGroups.look)))))
    .description('list incidents, bans and changes, the newest first')
    .addHelpText('after', examples('events --kind incident', 'events --kind ban --from -12h'))
    .option(
      '--kind <kinds>',
      'only events of these kinds, separated by commas: incident, ban, change, or kinds such as target_unhealthy',
    )
    .action(async (options: EventsOptions) => {
      const { listEvents } = await import('./history.ts');
      await listEvents(options);
    });

  withCsv(withReply(withLimit(withPeriod(program.command('changes').helpGroup(helpGroups.look)))))
    .description('list the record of changes, the newest first')
    .option('--key <id>', 'only changes of this key, also by edits of files')
    .option('--by <author>', 'only changes of this author: the name of a token, or another such as file')
    .addOption(
      new Option(
        '--follow',
        'print the last changes, the oldest first, and then new ones; with --json, one object a line',
      ).conflicts(['csv', 'key', 'by', 'from', 'to']),
    )
    .option('--after <id>', 'with --follow: begin after the change with this id, whatever --limit is')
    .addHelpText(
      'after',
      examples(
        'changes --key acme --from -30d',
        'changes --follow --json --limit 0',
        'changes --follow --json --after 1795600000000-0',
      ),
    )
    .action(async (options: ChangesOptions) => {
      const { listChanges } = await import('./history.ts');
      await listChanges(options);
    });
}

/** Declares the commands about plans: the list with the states of guards, and the end of a revert. */
export function addPlanCommands({ program }: CommandParents): void {
  const plans = withReply(program.command('plans').helpGroup(helpGroups.configuration))
    .description('list the plans with their limits, the numbers of their keys and the states of their guards')
    .enablePositionalOptions()
    .addHelpText('after', examples('plans', 'plans --json'))
    .action(async (options: Asking) => {
      const { listPlans } = await import('./plans.ts');
      await listPlans(options);
    });

  for (const part of commandParts) part.addToPlans?.(plans);
}
