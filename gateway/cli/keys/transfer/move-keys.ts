import { readFile } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import { printable } from '../../../shared/terminal/printable.ts';
import { defaultBounds } from '../../../shared/timeouts-and-sizes.ts';
import { clientOf } from '../../admin/find-gateway.ts';
import type { Asking } from '../../command.ts';
import { unreadable } from '../../output/command-error.ts';
import { show } from '../../output/show.ts';
import { configurationOf, loadKeys } from '../file/edit-keys.ts';
import { tellChange } from '../tell-change.ts';
import { importedLines, importToFile, movedJson, movedKey, parseExport } from './transfer.ts';
import { exportDirectory, importToDirectory, writeExport } from './transfer-directory.ts';

export interface MovingOptions extends Asking {
  /** Whether the command uses the key directory and not the keys file. */
  readonly directory?: true;
}

export async function exportKeys(options: MovingOptions): Promise<void> {
  const pages = options.directory
    ? exportDirectory(await clientOf(options))
    : [loadKeys(configurationOf(options.config)).written.map((one) => movedJson(movedKey(one)))];
  await writeExport(pages, writeOut);
}

export async function importKeys(file: string, options: MovingOptions): Promise<void> {
  const { keys: moved, ambiguous } = parseExport(await readExport(file), file);
  const { imported: done, where } = options.directory
    ? {
        imported: await importToDirectory(await clientOf(options), moved, defaultBounds),
        where: 'the key directory',
      }
    : await importToFile(configurationOf(options.config), moved, () => clientOf(options));
  const imported = { ...done, refused: [...ambiguous, ...done.refused] };
  show(options, { json: imported, body: imported }, (body) => importedLines(body, where).map(printable));
  const { created, refused } = imported;
  if (refused.length > 0) process.exitCode = 1;
  if (created === 0 || options.directory) return;
  await tellChange(options, { action: 'import', after: { created } });
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
