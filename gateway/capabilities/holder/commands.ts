import { InvalidArgumentError } from 'commander';
import { examples, withReply } from '../../cli/command.ts';
import type { CommandPart } from '../interfaces/commands.ts';
import type { LinkOptions, UnlinkOptions } from './commands/link.ts';

/** `tollgate keys link` and `keys unlink` make and end links to the page of a key holder. */
export const holderCommands: CommandPart = {
  addToKeys(keys) {
    withReply(keys.command('link').helpGroup('Issue and change:'))
      .argument('<key>', 'the id of the key')
      .description('make a link, shown only once, that opens the page of a key without its secret')
      .option('--for <time>', 'when the link ends: after 7d, 12h or 30m, at most 30d', duration)
      .option('--list', 'list the links of the key')
      .addHelpText('after', examples('keys link acme --for 7d', 'keys link acme --list'))
      .action(async (id: string, options: LinkOptions) => {
        const { linkKey } = await import('./commands/link.ts');
        await linkKey(id, options);
      });

    withReply(keys.command('unlink').helpGroup('Issue and change:'))
      .argument('<key>', 'the id of the key')
      .argument('[digest]', 'the first 8 or more digits of the digest of a link, from "keys link --list"')
      .description('end links to the page of a key')
      .option('--all', 'end all links of the key')
      .addHelpText('after', examples('keys unlink acme 1a2b3c4d', 'keys unlink acme --all'))
      .action(async (id: string, digest: string | undefined, options: UnlinkOptions) => {
        const { unlinkKey } = await import('./commands/link.ts');
        await unlinkKey(id, digest, options);
      });
  },
};

function duration(text: string): string {
  if (/^[1-9]\d{0,5}[smhd]$/.test(text)) return text;
  throw new InvalidArgumentError('It must be a duration such as 7d, 12h or 30m.');
}
