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
        'replay the recorded requests under other limits of a plan or key, or under those of an edited configuration (--config FILE)',
      )
      .option('--plan <name>', 'the plan with other limits')
      .option('--key <id>', 'the key with other limits');
    simulate.option('--group <name>', 'the group of operations with the other limits');
    addLimitOptions(simulate, (window) => `the limit per ${window}, or none`, limitOrNone);
    simulate.option('--days <count>', 'the number of days until now', wholeNumber);
    withPeriod(simulate)
      .option('--limit <count>', 'the maximum number of keys', wholeNumber, 20)
      .option('--json', 'print JSON')
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
