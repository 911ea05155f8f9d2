import { relative } from 'node:path';
import { Option } from 'commander';
import { CommandError } from './output/command-error.ts';

/** The option that names a configuration, the same on all commands. */
export function configOption(): Option {
  return new Option('--config <file>', 'the configuration file').env('TOLLGATE_CONFIG').argParser(fromHere);
}

/** Relative to the working directory for files inside it: in a container the full path means nothing to the operator. */
export function fromHere(file: string): string {
  const path = relative('', file);
  return path === '' || path.startsWith('..') ? file : path;
}

/** @throws a CommandError where no configuration was named */
export function requireConfig(config: string | undefined): string {
  if (config !== undefined && config !== '') return config;
  throw new CommandError('Which configuration? Say --config FILE or set TOLLGATE_CONFIG.');
}
