import { Argument, type Command } from 'commander';
import { type CommandParents, examples, fromHere, wholeNumber, withGateway, withPeriod } from '../command.ts';
import { addLimitOptions, limitOrNone } from '../keys/limit-options.ts';
import type { DiffOptions } from './diff.ts';
import type { SimulateOptions } from './simulate.ts';
import type { TrialOptions } from './trial.ts';

/** Declares the commands that compare an edited configuration, simulate its limits, and show what the trial of a plan would have refused. */
export function addWhatIfCommands({ program }: CommandParents): void {
  const simulate = withGateway(program.command('simulate'))
    .description(
      'replay the recorded requests under other limits: limits of a plan, of a key, or of an edited configuration (--config FILE)',
    )
    .option('--plan <name>', 'the plan to simulate with other limits')
    .option('--key <id>', 'the key to simulate with other limits');
  simulate.option('--group <name>', 'the group of operations whose limits are simulated');
  addLimitOptions(simulate, (window) => `requests per ${window}, or none`, limitOrNone);
  simulate.option('--days <count>', 'the number of days until now (default: the last 24 hours)', wholeNumber);
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
      const { simulate } = await import('./simulate.ts');
      await simulate(options, command.getOptionValueSource('config') === 'cli');
    });

  withGateway(program.command('diff'))
    .addArgument(new Argument('<file>', 'an edited configuration on this machine').argParser(fromHere))
    .description(
      'list the additions, removals and changes of an edit, and the keys that its limits would have affected; exit code 2 if the configurations differ',
    )
    .option('--against <file>', 'compare with this file and not with the gateway', fromHere)
    .option('--json', 'print one JSON document')
    .addHelpText(
      'after',
      examples('diff config/edited.yaml', 'diff config/edited.yaml --against config/production.yaml'),
    )
    .action(async (file: string, options: DiffOptions) => {
      const { diff } = await import('./diff.ts');
      await diff(file, options);
    });

  withPeriod(withGateway(program.command('trial')))
    .argument('[plan]', 'the name of a plan with a trial (default: all plans with a trial)')
    .description(
      'show what the trial of a plan would have refused: the requests, the share by window, and the keys',
    )
    .option('--limit <count>', 'the maximum number of keys of a plan, up to 10,000', wholeNumber, 20)
    .option('--json', 'print the response of the admin API as one JSON document')
    .addHelpText('after', examples('trial', 'trial free --from -7d'))
    .action(async (plan: string | undefined, options: TrialOptions) => {
      const { showTrial } = await import('./trial.ts');
      await showTrial(plan, options);
    });
}
