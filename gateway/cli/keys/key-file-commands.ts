import { readFile } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import type { Command } from 'commander';
import type { Owner } from '../../admin/wires/keys/directory.ts';
import { printable } from '../../shared/terminal/printable.ts';
import { defaultBounds } from '../../shared/timeouts-and-sizes.ts';
import type { GatewayOptions } from '../admin/find-gateway.ts';
import { clientOf, configOption, examples, requireConfig, show, withGateway } from '../command.ts';
import { CommandError, unreadable } from '../output/command-error.ts';
import { loadKeys } from './file/edit-keys.ts';
import { definitionOf } from './file-keys.ts';
import { configuredTable } from './key-views.ts';
import { tellChange } from './tell-change.ts';
import { importedLines, importToFile, movedJson, movedKey, parseExport } from './transfer.ts';
import { exportDirectory, importToDirectory, writeExport } from './transfer-directory.ts';
import { ownerBy, ownerIn, ownerLines, readSecret, refuseArguments } from './whoami.ts';

interface Options extends GatewayOptions {
  readonly json?: true;
}

interface MovingOptions extends Options {
  /** Whether the command uses the key directory and not the keys file. */
  readonly directory?: true;
}

/**
 * Adds the commands that read the keys file.
 *
 * @param keys the parent of these commands
 */
export function addLookingCommands(keys: Command): void {
  withGateway(keys.command('whoami').helpGroup('Read:'))
    .description(
      'find the key of a secret, its place, and whether the secret is valid; exit code 2 if no key has the secret',
    )
    .option('--json', 'print one JSON object in the form of the admin API')
    .addHelpText(
      'after',
      '\nThe secret is read from standard input. A gateway receives only its SHA-256 digest.',
    )
    .addHelpText('after', examples('keys whoami', 'keys whoami --json < secret.txt'))
    .allowExcessArguments()
    .action(async (options: Options, { args }: Command) => {
      refuseArguments(args);
      const secret = await readSecret(process.stdin, defaultBounds.secretInputCharsMax);
      const owner = await findOwner(secret, options);
      show(options, { json: owner, body: owner }, (body, screen) => ownerLines(body, secret, screen));
      if (!owner.known) process.exitCode = 2;
    });

  keys
    .command('configured')
    .helpGroup('Read:')
    .description('list the keys of a configuration with their limits, without a request to the gateway')
    .addHelpText('after', examples('keys configured --config config/production.yaml'))
    .addOption(configOption())
    .option('--json', 'print one JSON document with each key in the form of the admin API')
    .action((options: Options) => {
      const loaded = loadKeys(configurationOf(options));
      const file = loaded.settings.keysFile?.path;
      const keys = loaded.written.map(({ key, line }) => ({ ...definitionOf(key), file, line }));
      show(options, { json: { keys }, body: loaded }, configuredTable);
    });
}

/**
 * Adds the commands that move keys from one file to another.
 *
 * @param keys the parent of these commands
 */
export function addMovingCommands(keys: Command): void {
  withGateway(keys.command('export').helpGroup('Export and import:'))
    .description('print all keys as JSON, with the digests of their secrets, for "keys import"')
    .addHelpText('after', examples('keys export > keys.json', 'keys export --directory > directory.json'))
    .option(
      '--directory',
      'export the keys of the key directory through the admin API, and not the keys of the keys file',
    )
    .option('--json', 'accepted but without effect, because the output is always JSON')
    .action(async (options: MovingOptions) => {
      const pages = options.directory
        ? exportDirectory(clientOf(options))
        : [loadKeys(configurationOf(options)).written.map((one) => movedJson(movedKey(one)))];
      await writeExport(pages, writeOut);
    });

  withGateway(keys.command('import').helpGroup('Export and import:'))
    .argument('<file>', 'the output of "keys export"; - means standard input')
    .description('add keys to the keys file; existing keys stay as they are')
    .addHelpText('after', examples('keys import keys.json', 'keys import --directory directory.json'))
    .option('--directory', 'import into the key directory through the admin API, and not into the keys file')
    .option('--json', 'print the outcome as JSON: created, unchanged, refused')
    .action(async (file: string, options: MovingOptions) => {
      const { keys: moved, ambiguous } = parseExport(await readExport(file), file);
      const { imported: done, where } = options.directory
        ? {
            imported: await importToDirectory(clientOf(options), moved, defaultBounds),
            where: 'the key directory',
          }
        : await importToFile(configurationOf(options), moved, () => clientOf(options));
      const imported = { ...done, refused: [...ambiguous, ...done.refused] };
      show(options, { json: imported, body: imported }, (body) => importedLines(body, where).map(printable));
      const { created, refused } = imported;
      if (refused.length > 0) process.exitCode = 1;
      if (created === 0 || options.directory) return;
      await tellChange(options, { action: 'import', after: { created } });
    });
}

/**
 * Finds the owner of a secret in the configuration. If no configuration is named, a gateway finds the owner. If the configuration has a key
 * directory and the keys file does not contain the secret, a gateway also searches the key directory.
 */
async function findOwner(secret: string, options: Options): Promise<Owner> {
  const { config } = options;
  if (config === undefined || config === '') return ownerBy(clientOf(options), secret);
  const loaded = loadKeys({ file: config, env: process.env, makesKeysFile: true });
  const owner = ownerIn(loaded, secret, Date.now());
  if (owner.known || !loaded.settings.directory) return owner;
  try {
    return await ownerBy(clientOf(options), secret);
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    const where = loaded.file === undefined ? '' : `No key in ${loaded.file} has this secret. `;
    throw new CommandError(`${where}The key directory could not be searched: ${error.message}`);
  }
}

function configurationOf({ config }: Options) {
  return { file: requireConfig(config), env: process.env };
}

async function readExport(file: string): Promise<string> {
  try {
    return file === '-' ? await text(process.stdin) : await readFile(file, 'utf8');
  } catch (error) {
    throw unreadable(file, error);
  }
}

function writeOut(text: string): Promise<void> {
  return new Promise((resolve) => {
    process.stdout.write(text, () => resolve());
  });
}
