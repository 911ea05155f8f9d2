import { Argument, type Command } from 'commander';
import {
  configName,
  configOption,
  examples,
  fromHere,
  type GatewayOptions,
  helpGroups,
  withGateway,
} from '../command.ts';
import type { InitOptions } from './init.ts';

/** Declares the commands that need no running gateway: they put a gateway in front of a service, run it, and check its configuration. */
export function addStartCommands(program: Command): void {
  program
    .command('init')
    .helpGroup(helpGroups.run)
    .description('write a configuration for a service, with a first key')
    .requiredOption('--upstream <url>', 'the URL of the service, such as http://localhost:3000')
    .option('--api <file>', 'the OpenAPI document that lists the operations of the service', fromHere)
    .option('--dir <folder>', 'the folder for the new file', '.')
    .addHelpText(
      'after',
      examples(
        'init --upstream http://localhost:3000',
        'init --upstream http://localhost:3000 --api openapi.yaml',
      ),
    )
    .action(async (options: InitOptions) => {
      const { init } = await import('./init.ts');
      await init(options);
    });

  program
    .command('start')
    .helpGroup(helpGroups.run)
    .description(`run the gateway with the ${configName} of this folder`)
    .addHelpText('after', examples('start', 'start --config gateway/tollgate.yaml'))
    .addOption(configOption())
    .action(async ({ config }: { config?: string }) => {
      const { runHere } = await import('./run.ts');
      await runHere(config);
    });

  program
    .command('run')
    .helpGroup(helpGroups.run)
    .description('run the gateway')
    .addHelpText('after', examples('run --config config/production.yaml'))
    .addOption(configOption())
    .action(async ({ config }: { config?: string }) => {
      const { run } = await import('./run.ts');
      await run(config);
    });

  withGateway(program.command('check').helpGroup(helpGroups.configuration))
    .description(
      'check a configuration; with a token, also ask a running gateway which of its secrets have leaked, and which plans become smaller without a guard',
    )
    .addHelpText('after', examples('check', 'check config/draft.yaml'))
    .addArgument(
      new Argument('[file]', 'a draft, in place of --config; its paths are relative to this file').argParser(
        fromHere,
      ),
    )
    .action(async (draft: string | undefined, options: GatewayOptions, command: Command) => {
      const { check } = await import('./check.ts');
      await check(draft, options, command);
    });

  program
    .command('schema')
    .helpGroup(helpGroups.set)
    .description('print the JSON Schema of the configuration, for editors')
    .addHelpText('after', examples('schema > tollgate.schema.json'))
    .action(async () => {
      const { settingsJsonSchema } = await import('../../config/schema/settings-json-schema.ts');
      process.stdout.write(settingsJsonSchema());
    });
}
