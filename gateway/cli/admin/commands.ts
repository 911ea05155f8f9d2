import { type Command, InvalidArgumentError, Option } from 'commander';
import { keyStates } from '../../admin/keys/key-item.ts';
import { keySorts } from '../../admin/keys/list-keys.ts';
import { usageSteps } from '../../admin/keys/usage-rows.ts';
import { printable } from '../../shared/terminal/printable.ts';
import { oneLine } from '../../shared/terminal/text-width.ts';
import { defaultBounds } from '../../shared/timeouts-and-sizes.ts';
import { examples } from '../help-text.ts';
import { CommandError } from '../output/command-error.ts';
import { instant } from '../output/figures.ts';
import { isLive, print, printJson, screenOf } from '../output/screen.ts';
import { isRequestId, needsLog, whyRequest } from '../request/why-request.ts';
import { runLiveTop } from '../top/live-top.ts';
import { createTopReader } from '../top/read-top.ts';
import { topPicture } from '../top/top-picture.ts';
import { state } from './api-shapes.ts';
import type { GatewayOptions } from './find-gateway.ts';
import { changesLines, eventsLines, incompleteText, processesTable } from './fleet-view.ts';
import { clientOf, withGateway } from './gateway-options.ts';
import { keyLines, keysTable } from './keys-view.ts';
import { daysOfMonth, type PeriodOptions, periodQuery, stepFor } from './period.ts';
import {
  readCallers,
  readChanges,
  readEvents,
  readKey,
  readKeys,
  readMonth,
  readUsage,
  requirePlan,
} from './read-api.ts';
import {
  callersCsv,
  callersTable,
  monthCsv,
  monthNotice,
  monthTable,
  usageCsv,
  usageTable,
} from './usage-view.ts';

/** What every command that asks a gateway can be told. */
interface Asking extends GatewayOptions {
  readonly json?: true;
}

interface ListOptions extends Asking {
  readonly state?: string;
  readonly plan?: string;
  readonly q?: string;
  readonly sort?: string;
  readonly limit: number;
  readonly all?: true;
}

interface UsageOptions extends Asking, PeriodOptions {
  readonly step?: string;
  readonly csv?: true | undefined;
  readonly month?: string;
  readonly all?: true;
}

interface EventsOptions {
  readonly kind?: string;
  readonly limit: number;
}

/**
 * The commands that read: each asks the admin API of a gateway, and shows what it says as a table, a sentence or JSON.
 *
 * @param keys the command that those about keys belong to
 */
export function addReadingCommands(program: Command, keys: Command): void {
  const asking = (command: Command) =>
    withGateway(command).option('--json', 'what the admin API says, as one JSON document');
  const ofPeriod = (command: Command) =>
    asking(command)
      .option('--from <when>', '2026-11-22, 2026-11-22T10:31:00Z, today, yesterday, -7d, -12h, -30m')
      .option('--to <when>', 'the same; what it falls into is in the period (default: now)');

  asking(program.command('top'))
    .description('how the gateway is, live: rates, times, processes, targets, busiest and most refused keys')
    .option('--once', 'one picture, and the end')
    .addHelpText('after', examples('top', 'top --once --admin http://127.0.0.1:9090'))
    .action(async (options: Asking & { once?: true }) => {
      const read = createTopReader(clientOf(options), defaultBounds);
      const { data, json } = await read();
      if (options.json) return printJson(json);
      if (options.once || !isLive(process.stdout, process.env)) {
        return print(topPicture(data, { nowMs: Date.now() }, screenNow()));
      }
      // A picture that is drawn over itself needs the true width.
      const screen = () => screenOf(process.stdout, { ...process.env, COLUMNS: undefined });
      const terminal = { output: process.stdout, input: process.stdin, screen };
      await runLiveTop(data, {
        read: async () => (await read()).data,
        terminal,
        ending: process,
        bounds: defaultBounds,
      });
      // A question that the gateway has not answered yet is not waited for.
      process.exit();
    });

  asking(keys.command('list').helpGroup('Look:'))
    .description('list keys with their state, those first that were refused most in the last 24 hours')
    .addHelpText(
      'after',
      examples('keys list --state near', 'keys list --plan free --sort offered --limit 20'),
    )
    .addOption(new Option('--state <state>', 'only those that are in this state').choices(keyStates))
    .option('--plan <plan>', 'only those on this plan')
    .option('--q <text>', 'only those with this text in their id or name')
    .addOption(new Option('--sort <by>', 'what stands first (default: refused)').choices(keySorts))
    .option('--limit <count>', 'how many at most; 0: all', wholeNumber, 50)
    .option('--all', 'all of them')
    .action(async ({ state, plan, q, sort, limit, all, ...options }: ListOptions) => {
      const max = all || limit === 0 ? Number.POSITIVE_INFINITY : limit;
      const client = clientOf(options);
      const { body, json } = await readKeys(client, { state, plan, q, sort }, max);
      if (options.json) return printJson(json);
      if (body.keys.length === 0) {
        if (plan !== undefined) await requirePlan(client, plan);
        return print(['No key is like that.']);
      }
      const rest = body.next === undefined ? [] : ['There are more: --limit N shows so many, --all all.'];
      print([...keysTable(body.keys, Date.now(), screenNow()), ...rest]);
    });

  asking(keys.command('show').helpGroup('Look:'))
    .argument('<key>', 'its id')
    .description('everything about a key')
    .addHelpText('after', examples('keys show acme'))
    .action(async (id: string, options: Asking) => {
      const { body, json } = await readKey(clientOf(options), id);
      if (options.json) printJson(json);
      else print(keyLines(body, Date.now(), screenNow()));
    });

  asking(program.command('why'))
    .argument('[key or request]', 'the id of a key, or with --log of a request')
    .description('why a key gets what it gets, or what became of a request, in a sentence to forward')
    .addHelpText('after', examples('why acme', 'why 6f1f2f3a --log gateway.log'))
    .option('--log <file...>', "the gateway's log, also compressed; - is standard input")
    .action(async (given: string | undefined, options: Asking & { log?: readonly string[] }) => {
      const { id, files } = idAndFiles(given, options.log);
      if (files !== undefined) {
        const search = { requestId: id, files, stdin: process.stdin };
        const { entry, story } = await whyRequest(search, defaultBounds);
        if (options.json) printJson(entry);
        else print([story]);
        return;
      }
      try {
        const { body, json } = await readKey(clientOf(options), id);
        if (options.json) printJson(Object(json).why);
        else print([oneLine(body.why.sentence)]);
      } catch (error) {
        throw isRequestId(id) ? needsLog(id, error) : error;
      }
    });

  ofPeriod(program.command('callers'))
    .argument('<operation>', 'its operationId')
    .description('who called an operation and when last, of the keys that were active lately')
    .addHelpText('after', examples('callers getPet --from -7d', 'callers getPet --csv > callers.csv'))
    .option('--limit <count>', 'how many at most, up to 10,000', wholeNumber, 50)
    .option('--csv', 'all of them as comma-separated values: a mailing list')
    .action(
      async (operation: string, { from, to, limit, csv, ...options }: UsageOptions & { limit: number }) => {
        const query = { ...periodQuery({ from, to }, Date.now()), limit: String(csv ? callersMax : limit) };
        const { body, json } = await readCallers(clientOf(options), operation, query);
        if (options.json) return printJson(json);
        if (csv) return print(callersCsv(body));
        const period = `from ${instant(body.fromAt)} to ${instant(body.toAt)} UTC`;
        if (body.callers.length === 0)
          return print([`Nobody called ${oneLine(body.operationId)} ${period}.`]);
        print([`${oneLine(body.operationId)}, ${period}`, ...callersTable(body, Date.now(), screenNow())]);
      },
    );

  ofPeriod(program.command('usage'))
    .argument('[key]', 'its id')
    .description('what a key asked for and got, or with --all every key in a month')
    .addHelpText(
      'after',
      examples('usage acme', 'usage acme --month 2026-11', 'usage --all --month 2026-11 --csv > bills.csv'),
    )
    .option('--month <month>', 'a month of UTC such as 2026-11, in place of --from and --to')
    .option(
      '--all',
      'every key, with --month: also keys without requests, and removed keys that are on record',
    )
    .addOption(
      new Option('--step <step>', 'what a row is (default: by the length of the period)').choices(usageSteps),
    )
    .option('--csv', 'comma-separated values')
    .action(async (id: string | undefined, { all, csv, ...options }: UsageOptions) => {
      if ((id === undefined) === (all === undefined))
        throw new CommandError('Whose usage? Say the id of a key, or --all.');
      if (id !== undefined) return showUsage(id, { csv, ...options });
      const { month, from, to, step, json: asJson } = options;
      if (month === undefined || from !== undefined || to !== undefined || step !== undefined)
        throw new CommandError('--all is for a month: say --month 2026-11, and no --from, --to or --step.');
      daysOfMonth(month);
      const { body, json } = await readMonth(clientOf(options), month);
      const notice = monthNotice(body);
      if (notice !== undefined) process.stderr.write(`${notice}\n`);
      if (asJson) printJson(json);
      else print(csv ? monthCsv(body) : monthTable(body, screenNow()));
    });

  asking(program.command('processes'))
    .description('the gateway processes, and which configuration each has')
    .addHelpText('after', examples('processes'))
    .action(async (options: Asking) => {
      const { body, json } = await clientOf(options).get('/state', {}, state);
      if (options.json) {
        const { isComplete, answeredBy, processes } = Object(json);
        return printJson({ isComplete, answeredBy, processes });
      }
      const notice = body.isComplete ? [] : [incompleteText];
      print([...notice, ...processesTable(body, Date.now(), screenNow())]);
    });

  ofPeriod(program.command('events'))
    .description('what happened lately, the newest first: outages, bans and changes')
    .addHelpText('after', examples('events --kind incident', 'events --kind ban --from -12h'))
    .option(
      '--kind <kinds>',
      'only incident, ban or change, or a kind of the API such as target_unhealthy; several with commas',
    )
    .option('--limit <count>', 'how many at most', wholeNumber, 50)
    .action(async ({ from, to, kind, limit, ...options }: UsageOptions & EventsOptions) => {
      const query = { ...periodQuery({ from, to }, Date.now()), kind };
      const { body, json } = await readEvents(clientOf(options), query, limit);
      if (options.json) return printJson(json);
      const notice = body.isComplete ? [] : [incompleteText];
      if (body.events.length === 0) return print([...notice, 'No such event is on record.']);
      print([...notice, ...eventsLines(body, screenNow())]);
    });

  asking(program.command('changes'))
    .description('what was changed and when, the newest first')
    .addHelpText('after', examples('changes --limit 10'))
    .option('--limit <count>', 'how many at most', wholeNumber, 50)
    .action(async ({ limit, ...options }: Asking & { limit: number }) => {
      const { body, json } = await readChanges(clientOf(options), limit);
      if (options.json) return printJson(json);
      const notice = body.isComplete ? [] : [incompleteText];
      // Redis may have lost the list since, and other processes may have changes that this one does not know.
      if (body.changes.length === 0) return print([...notice, 'No change is on record.']);
      print([...notice, ...changesLines(body, screenNow())]);
    });
}

/** The record of one key. */
async function showUsage(
  id: string,
  { month, from, to, step, csv, ...options }: UsageOptions,
): Promise<void> {
  if (month !== undefined && (from !== undefined || to !== undefined))
    throw new CommandError('Which period? Say --month, or --from and --to, not both.');
  const nowMs = Date.now();
  const period = periodQuery(month === undefined ? { from, to } : daysOfMonth(month), nowMs);
  const query = { ...period, step: step ?? (month === undefined ? stepFor(period, nowMs) : 'day') };
  const { body, json } = await readUsage(clientOf(options), id, query);
  if (options.json) return printJson(json);
  if (csv) return print(usageCsv(body));
  const nothing = [`Nothing is recorded of ${printable(id)} in this period.`];
  print(body.rows.length === 0 ? nothing : usageTable(body, screenNow()));
}

/** As many as one response has. */
const callersMax = 10_000;

/** Options may stand before the id, which then looks like one more file of `--log`. */
function idAndFiles(id: string | undefined, log: readonly string[] | undefined) {
  if (id !== undefined) return { id, files: log };
  const last = log?.at(-1);
  if (log !== undefined && last !== undefined && log.length > 1) return { id: last, files: log.slice(0, -1) };
  throw new CommandError('Which one? Say the id of a key, or that of a request and --log FILE.');
}

function screenNow() {
  return screenOf(process.stdout, process.env);
}

function wholeNumber(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError('It must be a whole number.');
  return Number(text);
}
