import { type Command, Option } from 'commander';
import {
  type Asking,
  configOption,
  examples,
  helpGroups,
  wholeNumber,
  withCsv,
  withPeriod,
  withReply,
} from '../../cli/command.ts';
import { webhookEventTypes } from '../../shared/words/event-names.js';
import type { CommandPart } from '../interfaces/commands.ts';
import type { ListOptions, SendOptions } from './commands/deliveries.ts';
import type { TestOptions } from './commands/test-receiver.ts';

/** The commands about webhooks: the deliveries of a running gateway, and the test of a receiver. */
export const webhooksCommands: CommandPart = {
  add({ program }) {
    const deliveries = program.command('deliveries').helpGroup(helpGroups.look);
    addList(deliveries);
    addShow(deliveries);
    addSend(deliveries);
    addTest(
      program.command('notify').helpGroup(helpGroups.set).description('test the receivers of webhooks'),
    );
  },
};

function addList(command: Command): void {
  withCsv(withReply(withPeriod(command)))
    .description('list the webhook events with their deliveries, the newest first')
    .enablePositionalOptions()
    .addHelpText(
      'after',
      examples(
        'deliveries',
        'deliveries --failed --from -12h',
        'deliveries --key acme --type quota.threshold',
      ),
    )
    .option('--failed', 'only failed deliveries')
    .option('--waiting', 'only waiting deliveries; with --failed: both')
    .addOption(new Option('--type <type>', 'only events of this type').choices(webhookEventTypes))
    .option('--key <key>', 'only events about the key with this id')
    .option('--receiver <id>', 'only deliveries to the receiver with this id, which "deliveries show" prints')
    .option('--limit <count>', 'the maximum number of events', wholeNumber, 50)
    .action(async (options: ListOptions) => {
      const { listDeliveries } = await import('./commands/deliveries.ts');
      await listDeliveries(options);
    });
}

function addShow(deliveries: Command): void {
  withReply(deliveries.command('show'))
    .argument('<event>', 'the id of the event')
    .description('show an event with its body and its delivery to each receiver')
    .addHelpText('after', examples('deliveries show evt_Wm3Jq8ZkT1yB0aXcLr5d'))
    .action(async (id: string, options: Asking) => {
      const { showDelivery } = await import('./commands/deliveries.ts');
      await showDelivery(id, options);
    });
}

function addSend(deliveries: Command): void {
  withReply(deliveries.command('send'))
    .argument('<event>', 'the id of the event')
    .description('send an event again now, with the same webhook-id')
    .addHelpText(
      'after',
      examples(
        'deliveries send evt_Wm3Jq8ZkT1yB0aXcLr5d',
        'deliveries send evt_Wm3Jq8ZkT1yB0aXcLr5d --receiver 3f0c9a61b2d4',
      ),
    )
    .option('--receiver <id>', 'only to the receiver with this id')
    .action(async (id: string, options: SendOptions) => {
      const { sendAgain } = await import('./commands/deliveries.ts');
      await sendAgain(id, options);
    });
}

function addTest(notify: Command): void {
  notify
    .command('test')
    .argument('<url>', 'the URL of the receiver')
    .description('send an example of each type of event to a receiver, without a gateway')
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
    .option('--json', 'print JSON')
    .addOption(configOption())
    .action(async (url: string, options: TestOptions) => {
      const { runReceiverTest } = await import('./commands/test-receiver.ts');
      await runReceiverTest(url, options);
    });
}
