import { Argument } from 'commander';
import {
  type CommandParents,
  examples,
  fromHere,
  helpGroups,
  wholeNumber,
  withGateway,
  withPeriod,
} from '../command.ts';
import type { DiffOptions } from './diff.ts';
import type { TrialOptions } from './trial.ts';

/** Declares the commands that compare an edited configuration, and show what the trial of a plan would have refused. */
export function addWhatIfCommands({ program }: CommandParents): void {
  withGateway(program.command('diff').helpGroup(helpGroups.configuration))
    .addArgument(new Argument('<file>', 'an edited configuration on this machine').argParser(fromHere))
    .description(
      'list what an edit changes, and without --against the keys that its limits would have affected; exit code 2 if the configurations differ',
    )
    .option('--against <file>', 'compare with this file and not with the gateway', fromHere)
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      examples('diff config/edited.yaml', 'diff config/edited.yaml --against config/production.yaml'),
    )
    .action(async (file: string, options: DiffOptions) => {
      const { diff } = await import('./diff.ts');
      await diff(file, options);
    });

  withPeriod(withGateway(program.command('trial').helpGroup(helpGroups.configuration)))
    .argument('[plan]', 'the name of a plan with a trial (default: all)')
    .description('show what the trials of plans would have refused')
    .option('--limit <count>', 'the maximum number of keys of a plan, up to 10,000', wholeNumber, 20)
    .option('--json', 'print JSON')
    .addHelpText('after', examples('trial', 'trial free --from -7d'))
    .action(async (plan: string | undefined, options: TrialOptions) => {
      const { showTrial } = await import('./trial.ts');
      await showTrial(plan, options);
    });
}
