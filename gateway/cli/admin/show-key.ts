import type { Asking } from '../command.ts';
import { show } from '../output/show.ts';
import { keyLines } from './keys-view.ts';
import { clientAfterFlush } from './read/flush-counts.ts';
import { readKey } from './read/read-key.ts';

/** Prints all data about a key. */
export async function showKey(id: string, options: Asking): Promise<void> {
  const client = await clientAfterFlush(options);
  show(options, await readKey(client, id), keyLines);
}
