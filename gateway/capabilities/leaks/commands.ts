import type { Command } from 'commander';
import { examples, withGateway } from '../../cli/command.ts';
import type { CommandPart } from '../interfaces/commands.ts';
import type { LeakedOptions } from './commands/leaked.ts';

/** `tollgate keys leaked` reports leaked secrets. */
export const leaksCommands: CommandPart = {
  addToKeys(keys) {
    withGateway(keys.command('leaked').helpGroup('Issue and change:'))
      .description(
        'report secrets that were found where others can read them; they end at once, unless `leaks.onLeak` is `report`',
      )
      .option('--url <url>', 'the address at which the secrets were found')
      .option('--source <text>', 'the kind of place at which the secrets were found')
      .option('--json', 'print JSON')
      .addHelpText(
        'after',
        '\nThe secrets are read from standard input, one a line. A gateway receives only their SHA-256 digests.',
      )
      .addHelpText(
        'after',
        examples('keys leaked < found.txt', 'keys leaked --url https://example.com/paste/1 < found.txt'),
      )
      .allowExcessArguments()
      .action(async (options: LeakedOptions, { args }: Command) => {
        const { reportLeaked } = await import('./commands/leaked.ts');
        await reportLeaked(args, options);
      });
  },
};
