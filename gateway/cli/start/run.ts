import { existsSync } from 'node:fs';
import { configName } from '../command.ts';
import { CommandError } from '../output/command-error.ts';
import { requireConfig } from './named-config.ts';

export async function run(config: string | undefined): Promise<void> {
  await runWith(requireConfig(config));
}

/** Runs the gateway with the `tollgate.yaml` of this folder, or with the named configuration. */
export async function runHere(config: string | undefined): Promise<void> {
  const configFile = config || configName;
  if (!existsSync(configFile)) {
    throw new CommandError(
      `There is no ${configFile} here. \`tollgate init --upstream URL\` writes one; --config names another file.`,
    );
  }
  await runWith(configFile);
}

async function runWith(configFile: string): Promise<void> {
  const { runGateway } = await import('../../main.ts');
  await runGateway({ configFile });
}
