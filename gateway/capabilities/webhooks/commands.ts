import { type Command, Option } from 'commander';
import { type PeriodOptions, periodQuery } from '../../cli/admin/period.ts';
import { readList } from '../../cli/admin/read-api.ts';
import {
  type Asking,
  clientOf,
  configOption,
  examples,
  requireConfig,
  screenNow,
  show,
  showList,
  wholeNumber,
  withCsv,
  withGateway,
  withPeriod,
} from '../../cli/command.ts';
import { CommandError } from '../../cli/output/command-error.ts';
import { print, printJson } from '../../cli/output/screen.ts';
import { printable, printableJsonText } from '../../shared/terminal/printable.ts';
import { defaultBounds } from '../../shared/timeouts-and-sizes.ts';
import { webhookEventTypes } from '../../shared/words/event-names.js';
import { counted } from '../../shared/words/figures.js';
import type { CommandPart } from '../interfaces/commands.ts';
import { getDeliveryWire, listDeliveriesWire, sendAgainWire } from './api/wires.ts';
import { eventLines, noReceiverLines, testedLine } from './commands/deliveries-view.ts';
import { checkUrl, findSecrets, type Tested, testReceiver } from './commands/test-receiver.ts';
import { deliveryList } from './words/deliveries.js';

interface ListOptions extends Asking, PeriodOptions {
  readonly failed?: true;
  readonly waiting?: true;
  readonly type?: string;
  readonly key?: string;
  readonly receiver?: string;
  readonly limit: number;
  readonly csv?: true;
}

const deliveryPages = { wire: listDeliveriesWire, member: 'events', perPage: 200 } as const;

/** The commands about webhooks: the deliveries of a running gateway, and the test of a receiver. */
export const webhooksCommands: CommandPart = {
  add(program) {
    const deliveries = program.command('deliveries');
    addList(deliveries);
    addShow(deliveries);
    addSend(deliveries);
    addTest(program.command('notify').description('test the receivers of webhooks'));
  },
};

function asking(command: Command): Command {
  return withGateway(command).option('--json', 'print the response of the admin API as one JSON document');
}

function addList(command: Command): void {
  withCsv(asking(withPeriod(command)))
    .description('list the webhooks that were sent, that wait and that failed, the newest first')
    .enablePositionalOptions()
    .addHelpText(
      'after',
      examples(
        'deliveries',
        'deliveries --failed --from -12h',
        'deliveries --key acme --type quota.threshold',
      ),
    )
    .option('--failed', 'only deliveries that failed')
    .option('--waiting', 'only deliveries that wait for an attempt; with --failed: both')
    .addOption(new Option('--type <type>', 'only events of this type').choices(webhookEventTypes))
    .option('--key <key>', 'only events about the key with this id')
    .option('--receiver <id>', 'only deliveries to the receiver with this id, which "deliveries show" prints')
    .option('--limit <count>', 'the maximum number of events', wholeNumber, 50)
    .action(async ({ failed, waiting, type, key, receiver, from, to, limit, ...options }: ListOptions) => {
      const states = [failed && 'failed', waiting && 'waiting'].filter(Boolean).join(',');
      const subject = key === undefined ? undefined : `key ${key}`;
      const period = periodQuery({ from, to }, Date.now());
      const query = { ...period, state: states || undefined, type, subject, receiver };
      const reply = await readList(clientOf(options), deliveryPages, query, limit);
      const { receivers, counts } = reply.body;
      const hasNoReceiver = receivers.length === 0 && counts.events === 0 && !options.csv;
      if (hasNoReceiver) show(options, reply, noReceiverLines);
      else showList(options, reply, deliveryList, { asked: { filter: query } });
    });
}

function addShow(deliveries: Command): void {
  asking(deliveries.command('show'))
    .argument('<event>', 'the id of the event')
    .description('show an event with its body, and the attempts of each receiver')
    .addHelpText('after', examples('deliveries show evt_Wm3Jq8ZkT1yB0aXcLr5d'))
    .action(async (id: string, options: Asking) => {
      const client = clientOf(options);
      const { body, json } = await ofEvent(id, () => client.ask(getDeliveryWire, { params: { id } }));
      if (options.json) return printJson(json);
      print(eventLines(body, readBody(Object(json).body), screenNow(), Date.now()));
    });
}

function addSend(deliveries: Command): void {
  asking(deliveries.command('send'))
    .argument('<event>', 'the id of the event')
    .description('send an event again now, with the same webhook-id')
    .addHelpText(
      'after',
      examples(
        'deliveries send evt_Wm3Jq8ZkT1yB0aXcLr5d',
        'deliveries send evt_Wm3Jq8ZkT1yB0aXcLr5d --receiver 3f0c9a61b2d4',
      ),
    )
    .option('--receiver <id>', 'only to the receiver with this id; without it, to each receiver of the event')
    .action(async (id: string, { receiver, ...options }: Asking & { receiver?: string }) => {
      const client = clientOf(options);
      const { body, json } = await ofEvent(
        id,
        () => client.ask(sendAgainWire, { params: { id }, body: { receiver } }),
        receiver,
      );
      if (options.json) return printJson(json);
      print([
        `The event is due now for ${counted(body.due, 'receiver')}. "tollgate deliveries show ${id}" shows the result.`,
      ]);
    });
}

function addTest(notify: Command): void {
  notify
    .command('test')
    .argument('<url>', 'the https URL of the receiver')
    .description('send an example of each event to a receiver; no running gateway is needed')
    .addHelpText(
      'after',
      examples(
        'notify test https://hooks.example.com/tollgate',
        'notify test http://127.0.0.1:8080/hook --secret-file hook.secret',
      ),
    )
    .option(
      '--secret-file <file>',
      'a file with the secret (default: the secretFile of the receiver with this URL in the configuration)',
    )
    .option('--json', 'print the results as one JSON document')
    .addOption(configOption())
    .action(async (given: string, { secretFile, config, json }: TestOptions) => {
      const url = checkUrl(given);
      const secrets = findSecrets(url, { secretFile, configFile: () => requireConfig(config) });
      const tested: Tested[] = [];
      await testReceiver({
        url,
        secrets,
        bounds: defaultBounds,
        onTested(result) {
          tested.push(result);
          if (!json) print([testedLine(result, screenNow())]);
        },
      });
      if (json) printJson(tested);
      const failed = tested.filter(({ error }) => error !== undefined).length;
      if (failed > 0) {
        process.exitCode = 1;
        console.error(`The receiver did not accept ${counted(failed, 'event')}.`);
      }
      // Open connections to the receiver would keep the process alive. `setImmediate` delays the exit until a write error of standard output
      // is reported.
      setImmediate(() => process.exit());
    });
}

interface TestOptions {
  readonly secretFile?: string;
  readonly config?: string;
  readonly json?: true;
}

/**
 * Reads or sends one event.
 *
 * @throws a CommandError, also if the queue does not have the event, or if the event has no delivery to the receiver
 */
async function ofEvent<Result>(id: string, ask: () => Promise<Result>, receiver?: string): Promise<Result> {
  try {
    return await ask();
  } catch (error) {
    if (!(error instanceof CommandError && error.kind === 'not_found')) throw error;
    const whose = receiver === undefined ? '' : ` with a delivery to the receiver ${receiver}`;
    const text = `There is no event ${id}${whose}. "tollgate deliveries" lists the events, and a full queue removes its oldest events.`;
    throw new CommandError(printable(text), 'not_found');
  }
}

/**
 * Reads the body that the receivers get. The JSON text is parsed before control characters are escaped, because the escaped text is no JSON.
 */
function readBody(body: unknown): { readonly text: string | undefined; readonly json: string } {
  try {
    const parsed = JSON.parse(String(body));
    const text = parsed?.data?.text;
    return {
      text: typeof text === 'string' ? printableJsonText(text).slice(1, -1) : undefined,
      json: printableJsonText(parsed),
    };
  } catch {
    return { text: undefined, json: printableJsonText(body) };
  }
}
