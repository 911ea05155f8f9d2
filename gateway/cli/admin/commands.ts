import { type Command, Option } from 'commander';
import { getStateWire } from '../../admin/wires/fleet/fleet.ts';
import { keySorts, keyStates } from '../../admin/wires/keys/keys.ts';
import { getKeyUsageWire } from '../../admin/wires/keys/usage.ts';
import { listCallersWire } from '../../admin/wires/operations.ts';
import { callerList } from '../../admin/words/callers.js';
import { changeList } from '../../admin/words/changes.js';
import { eventList } from '../../admin/words/events.js';
import { keyList } from '../../admin/words/keys.js';
import { keyFacts } from '../../capabilities/lists/commands.ts';
import { printable } from '../../shared/terminal/printable.ts';
import { oneLine } from '../../shared/terminal/text-width.ts';
import { defaultBounds } from '../../shared/timeouts-and-sizes.ts';
import { figure } from '../../shared/words/figures.js';
import { usageSteps } from '../../usage/read/usage-rows.ts';
import {
  type Asking,
  clientOf,
  examples,
  screenNow,
  show,
  showList,
  showTimeline,
  wholeNumber,
  withCsv,
  withGateway,
  withPeriod,
} from '../command.ts';
import { CommandError } from '../output/command-error.ts';
import { isLive, print, printJson, screenOf } from '../output/screen.ts';
import { isRequestId, needsLog, whyRequest } from '../request/find-request.ts';
import { runLiveTop } from '../top/live-top.ts';
import { createTopReader } from '../top/read-top.ts';
import { topPicture } from '../top/top-picture.ts';
import { processesLines } from './fleet-view.ts';
import { clientAfterFlush } from './flush-counts.ts';
import { keyLines } from './keys-view.ts';
import { daysOfMonth, type PeriodOptions, periodQuery, stepFor } from './period.ts';
import { lists, ofKey, readKey, readList, requirePlan } from './read-api.ts';
import { callersTitle, monthCsv, monthNotice, monthTable, usageCsv, usageTable } from './usage-view.ts';

interface ListOptions extends Asking {
  readonly state?: string;
  readonly plan?: string;
  readonly q?: string;
  readonly sort?: string;
  readonly limit: number;
  readonly all?: true;
  readonly csv?: true;
}

interface CallersOptions extends Asking, PeriodOptions {
  readonly limit: number;
  readonly csv?: true;
}

interface UsageOptions extends Asking, PeriodOptions {
  readonly step?: string;
  readonly csv?: true;
  readonly month?: string;
}

/**
 * Adds the commands that only read data. Each command sends requests to the admin API of a gateway, and prints the response as a
 * table, a sentence or JSON.
 *
 * @param keys the parent of the commands about keys
 */
export function addReadingCommands(program: Command, keys: Command): void {
  addTop(program);
  addKeys(keys);
  addWhy(program);
  addUsage(program);
  addFleet(program);
}

function asking(command: Command): Command {
  return withGateway(command).option('--json', 'print the response of the admin API as one JSON document');
}

function withLimit(command: Command): Command {
  return command.option('--limit <count>', 'the maximum number of rows', wholeNumber, 50);
}

function addTop(program: Command): void {
  asking(program.command('top'))
    .description(
      'show the live state of the gateway: rates, times, processes, targets, busiest and most refused keys',
    )
    .option('--once', 'print the state once and end')
    .addHelpText('after', examples('top', 'top --once --admin http://127.0.0.1:9090'))
    .action(async (options: Asking & { once?: true }) => {
      const read = createTopReader(clientOf(options), defaultBounds);
      const { data, json } = await read();
      if (options.json) return printJson(json);
      if (options.once || !isLive(process.stdout, process.env)) {
        return print(topPicture(data, { nowMs: Date.now() }, screenNow()));
      }
      // The live screen overwrites its previous lines, so it needs the true width of the terminal.
      const screen = () => screenOf(process.stdout, { ...process.env, COLUMNS: undefined });
      const terminal = { output: process.stdout, input: process.stdin, screen };
      await runLiveTop(data, {
        read: async () => (await read()).data,
        terminal,
        ending: process,
        bounds: defaultBounds,
      });
      // The process exits without waiting for an outstanding response.
      process.exit();
    });
}

function addKeys(keys: Command): void {
  withCsv(withLimit(asking(keys.command('list').helpGroup('Read:'))))
    .description('list keys with their state; the keys with most refusals in the last 24 hours come first')
    .addHelpText(
      'after',
      examples('keys list --state near', 'keys list --plan free --sort offered --limit 20'),
    )
    .addOption(new Option('--state <state>', 'only keys in this state').choices(keyStates))
    .option('--plan <plan>', 'only keys on this plan')
    .option('--q <text>', 'only keys with this text in their id or name')
    .addOption(new Option('--sort <by>', 'the order (default: refused)').choices(keySorts))
    .option('--all', 'list all keys, like --limit 0')
    .action(async ({ sort, limit, all, ...options }: ListOptions) => {
      const { state, plan, q } = options;
      const max = all || limit === 0 ? Number.POSITIVE_INFINITY : limit;
      const client = await clientAfterFlush(options);
      const reply = await readList(client, lists.keys, { state, plan, q, sort }, max);
      if (reply.body.keys.length === 0 && plan !== undefined) await requirePlan(client, plan);
      const more = 'There are more keys: --limit N shows N keys, and --all shows all keys.';
      showList(options, reply, keyList, {
        asked: { filter: { state, plan, q } },
        more: ({ keys, next }) => (next === undefined || keys.length === 0 ? [] : [more]),
      });
    });

  asking(keys.command('show').helpGroup('Read:'))
    .argument('<key>', 'the id of the key')
    .description('show all data about a key')
    .addHelpText('after', examples('keys show acme'))
    .action(async (id: string, options: Asking) => {
      const reply = await readKey(await clientAfterFlush(options), id);
      const facts = await Promise.all(keyFacts.map((load) => load()));
      show(options, reply, (body, screen, nowMs) => keyLines(body, facts, screen, nowMs));
    });
}

function addWhy(program: Command): void {
  asking(program.command('why'))
    .argument('[key or request]', 'the id of a key, or with --log the id of a request')
    .description(
      'explain the responses of a key, or what happened to a request, in sentences that you can forward',
    )
    .addHelpText('after', examples('why acme', 'why 6f1f2f3a --log gateway.log'))
    .option('--log <file...>', "the gateway's log, which may be compressed; - means standard input")
    .action(async (given: string | undefined, options: Asking & { log?: readonly string[] }) => {
      const { id, files } = idAndFiles(given, options.log);
      if (files !== undefined) {
        const search = { requestId: id, files, stdin: process.stdin };
        const { entry, story } = await whyRequest(search, defaultBounds);
        return show(options, { json: entry, body: story }, (text) => [text]);
      }
      try {
        const { body, json } = await readKey(await clientAfterFlush(options), id);
        show(options, { json: Object(json).why, body: body.why }, ({ sentence }) => [oneLine(sentence)]);
      } catch (error) {
        throw isRequestId(id) ? needsLog(id, error) : error;
      }
    });
}

/** Commander treats an argument after the files of `--log` as one more file. */
function idAndFiles(id: string | undefined, log: readonly string[] | undefined) {
  if (id !== undefined) return { id, files: log };
  const last = log?.at(-1);
  if (log !== undefined && last !== undefined && log.length > 1) return { id: last, files: log.slice(0, -1) };
  throw new CommandError(
    'Which key or request? Give the id of a key, or the id of a request and --log FILE.',
  );
}

/** The maximum number of callers in one response. */
const callersMax = 10_000;

function addUsage(program: Command): void {
  asking(withPeriod(program.command('callers')))
    .argument('<operation>', 'the operationId of the operation')
    .description('list the keys that called an operation, with the time of their last call')
    .addHelpText('after', examples('callers getPet --from -7d', 'callers getPet --csv > callers.csv'))
    .option('--limit <count>', 'the maximum number of rows, up to 10,000', wholeNumber, 50)
    .option('--csv', 'print all callers as comma-separated values, for a mailing list')
    .action(async (operationId: string, { from, to, limit, csv, ...options }: CallersOptions) => {
      const query = { ...periodQuery({ from, to }, Date.now()), limit: csv ? callersMax : limit };
      const client = await clientAfterFlush(options);
      const reply = await client.ask(listCallersWire, { params: { operationId }, query });
      showList({ ...options, ...(csv && { csv }) }, reply, callerList, {
        asked: { filter: {} },
        title: callersTitle,
        more: ({ more = 0 }) =>
          more === 0 ? [] : [`and ${figure(more)} more: --limit N shows up to 10,000`],
      });
    });

  asking(withPeriod(program.command('usage')))
    .argument('[key]', 'the id of the key')
    .description(
      'show the requests of a key and their outcomes; with --all, show the requests of every key in a month',
    )
    .addHelpText(
      'after',
      examples('usage acme', 'usage acme --month 2026-11', 'usage --all --month 2026-11 --csv > bills.csv'),
    )
    .option('--month <month>', 'a UTC month such as 2026-11, in place of --from and --to')
    .option(
      '--all',
      'with --month: show every key, including keys without requests and removed keys with recorded requests',
    )
    .addOption(
      new Option('--step <step>', 'the period of a row (default: depends on the whole period)').choices(
        usageSteps,
      ),
    )
    .option('--csv', 'print comma-separated values')
    .action(async (id: string | undefined, { all, ...options }: UsageOptions & { all?: true }) => {
      if ((id === undefined) === (all === undefined))
        throw new CommandError('Whose usage? Give the id of a key, or --all.');
      await (id === undefined ? showMonth(options) : showUsage(id, options));
    });
}

/** Prints the usage of all keys in a month. */
async function showMonth({ month, from, to, step, csv, ...options }: UsageOptions): Promise<void> {
  if (month === undefined || from !== undefined || to !== undefined || step !== undefined)
    throw new CommandError(
      '--all needs a month, such as --month 2026-11, and does not accept --from, --to or --step.',
    );
  daysOfMonth(month);
  const client = await clientAfterFlush(options);
  const reply = await readList(client, lists.month, { month }, Number.POSITIVE_INFINITY);
  const notice = monthNotice(reply.body);
  if (notice !== undefined) process.stderr.write(`${notice}\n`);
  show(options, reply, csv ? monthCsv : monthTable);
}

/** Prints the usage of one key. */
async function showUsage(
  id: string,
  { month, from, to, step, csv, ...options }: UsageOptions,
): Promise<void> {
  if (month !== undefined && (from !== undefined || to !== undefined))
    throw new CommandError('Which period? Give --month, or --from and --to, not both.');
  const nowMs = Date.now();
  const period = periodQuery(month === undefined ? { from, to } : daysOfMonth(month), nowMs);
  const query = { ...period, step: step ?? (month === undefined ? stepFor(period, nowMs) : 'day') };
  const client = await clientAfterFlush(options);
  const reply = await ofKey(client, id, () => client.ask(getKeyUsageWire, { params: { id }, query }));
  if (csv) return show(options, reply, usageCsv);
  const nothing = [`No request of ${printable(id)} is recorded in this period.`];
  show(options, reply, (body, screen) => (body.rows.length === 0 ? nothing : usageTable(body, screen)));
}

function addFleet(program: Command): void {
  asking(program.command('processes'))
    .description('list the gateway processes, and the configuration of each')
    .addHelpText('after', examples('processes'))
    .action(async (options: Asking) => {
      const { body, json } = await clientOf(options).ask(getStateWire);
      const { isComplete, answeredBy, processes } = Object(json);
      show(options, { body, json: { isComplete, answeredBy, processes } }, processesLines);
    });

  withCsv(asking(withLimit(withPeriod(program.command('events')))))
    .description('list outages, bans and changes, the newest first')
    .addHelpText('after', examples('events --kind incident', 'events --kind ban --from -12h'))
    .option(
      '--kind <kinds>',
      'only events of this kind: incident, ban, change, or a kind of the admin API such as target_unhealthy; separate several kinds by commas',
    )
    .action(
      async ({ from, to, kind, limit, ...options }: ListOptions & PeriodOptions & { kind?: string }) => {
        const query = { ...periodQuery({ from, to }, Date.now()), kind };
        const reply = await readList(clientOf(options), lists.events, query, limit);
        showTimeline(options, reply, eventList);
      },
    );

  withCsv(withLimit(asking(program.command('changes'))))
    .description('list changes of configuration and keys, the newest first')
    .addHelpText('after', examples('changes --limit 10'))
    .action(async ({ limit, ...options }: Asking & { limit: number; csv?: true }) => {
      const reply = await readList(clientOf(options), lists.changes, {}, limit);
      showTimeline(options, reply, changeList);
    });
}
