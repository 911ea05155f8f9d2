import { existsSync } from 'node:fs';
import type { Command } from 'commander';
import { printable } from '../../shared/terminal/printable.ts';
import { configName, configOption, examples, fromHere } from '../command.ts';
import { CommandError } from '../output/command-error.ts';
import { initConfig } from './init.ts';

/** Adds the commands `init` and `start`, which put a gateway in front of a service. */
export function addStartCommands(program: Command): void {
  program
    .command('init')
    .description('write a configuration for a service, with a first key')
    .requiredOption('--upstream <url>', 'the URL of the service, such as http://localhost:3000')
    .option(
      '--api <file>',
      'the OpenAPI document of the service; without it, every method and path is forwarded',
      fromHere,
    )
    .option('--dir <folder>', 'the folder for the new file', '.')
    .addHelpText(
      'after',
      examples(
        'init --upstream http://localhost:3000',
        'init --upstream http://localhost:3000 --api openapi.yaml',
      ),
    )
    .action(async (options: { upstream: string; api?: string; dir: string }) => {
      for (const line of await initConfig(options)) console.log(printable(line));
    });

  program
    .command('start')
    .description(`run the gateway with the ${configName} of this folder, or with the file of --config`)
    .addHelpText('after', examples('start', 'start --config gateway/tollgate.yaml'))
    .addOption(configOption())
    .action(async ({ config }: { config?: string }) => {
      const configFile = config || configName;
      if (!existsSync(configFile)) {
        throw new CommandError(
          `There is no ${configFile} here. \`tollgate init --upstream URL\` writes one; --config names another file.`,
        );
      }
      const { runGateway } = await import('../../main.ts');
      await runGateway({ configFile });
    });
}
