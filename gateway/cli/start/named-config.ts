import { existsSync } from 'node:fs';
import { configName } from '../command.ts';
import { CommandError } from '../output/command-error.ts';

/**
 * Returns the named configuration, or the configuration of the current folder. An empty name means that no configuration is used, so
 * with an empty TOLLGATE_CONFIG a command ignores the `tollgate.yaml` of the current folder.
 */
export function configOr(config: string | undefined): string | undefined {
  return config ?? (existsSync(configName) ? configName : undefined);
}

/** @throws a CommandError if no configuration was named and this folder has none */
export function requireConfig(named: string | undefined): string {
  const config = configOr(named);
  if (config !== undefined && config !== '') return config;
  throw new CommandError('Which configuration? Give --config FILE or set TOLLGATE_CONFIG.');
}
