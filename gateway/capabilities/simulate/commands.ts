import type { Command } from 'commander';
import { examples, helpGroups, wholeNumber, withGateway, withPeriod } from '../../cli/command.ts';
import { addLimitOptions, limitOrNone } from '../../cli/keys/limit-options.ts';
import type { CommandPart } from '../interfaces/commands.ts';
import type { SimulateOptions } from './commands/simulate.ts';

/** `tollgate simulate` replays the recorded requests under other limits. */
export const simulateCommands: CommandPart = {
  add({ program }) {
    const simulate = withGateway(program.command('simulate').helpGroup(helpGroups.configuration))
      .description(
        'replay the recorded requests under other limits: limits of a plan, of a key, or of an edited configuration (--config FILE)',
      )
      .option('--plan <name>', 'the plan to simulate with other limits')
      .option('--key <id>', 'the key to simulate with other limits');
    simulate.option('--group <name>', 'the group of operations whose limits are simulated');
    addLimitOptions(simulate, (window) => `the limit per ${window}, or none`, limitOrNone);
    simulate.option(
      '--days <count>',
      'the number of days until now (default: the last 24 hours)',
      wholeNumber,
    );
    withPeriod(simulate)
      .option('--limit <count>', 'the maximum number of keys', wholeNumber, 20)
      .option('--json', 'print one JSON document')
      .addHelpText(
        'after',
        examples(
          'simulate --plan free --per-minute 30',
          'simulate --key acme --per-day none --days 7',
          'simulate --config config/edited.yaml',
        ),
      )
      .action(async (options: SimulateOptions, command: Command) => {
        const { simulate } = await import('./commands/simulate.ts');
        await simulate(options, command.getOptionValueSource('config') === 'cli');
      });
  },
};
