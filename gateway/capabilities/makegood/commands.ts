import { examples, helpGroups, withGateway } from '../../cli/command.ts';
import type { CommandPart } from '../interfaces/commands.ts';
import type { MakegoodOptions } from './commands/run.ts';

/** `tollgate makegood` gives keys back the units of failed requests. */
export const makegoodCommands: CommandPart = {
  add({ program }) {
    withGateway(program.command('makegood').helpGroup(helpGroups.keys))
      .description(
        'give keys back the units of requests that the gateway or the API failed, in the windows of the present day and month; each unit once, however often the command runs',
      )
      .requiredOption('--from <when>', 'the start of the failures: 2026-11-22T10:31:00Z, today, -12h, -30m')
      .requiredOption(
        '--to <when>',
        'the end of the failures, in the same form, or now; its whole minute is included',
      )
      .option('--upstream <name>', 'only requests for this upstream')
      .option('--plan <name>', 'only keys that are on this plan now')
      .option('--dry-run', 'show what would be given back, and change nothing')
      .option('--json', 'print JSON')
      .addHelpText(
        'after',
        examples(
          'makegood --from 2026-11-26T10:00:00Z --to 2026-11-26T10:20:00Z --upstream pets --dry-run',
          'makegood --from -30m --to now',
        ),
      )
      .action(async (options: MakegoodOptions) => {
        const { makegood } = await import('./commands/run.ts');
        await makegood(options);
      });
  },
};
