import * as z from 'zod';
import { printable } from '../../shared/terminal/printable.ts';
import { CommandError } from '../output/command-error.ts';
import type { AdminClient } from './admin-client.ts';

/**
 * Asks a gateway which ids belong to keys of the directory. A key of the file with such an id would take the place of the key in the
 * directory. Without a gateway it prints a warning, because the first key of the file may be made before the first start.
 */
export async function idsInDirectory(
  ids: readonly string[],
  client: () => Pick<AdminClient, 'get'>,
): Promise<ReadonlySet<string>> {
  const found = new Set<string>();
  try {
    const gateway = client();
    for (const id of ids) if (await isInDirectory(gateway, id)) found.add(id);
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    const what = ids.length === 1 ? `a key ${ids[0]}` : 'keys with these ids';
    console.error(
      printable(`warning: the directory may have ${what} already; it was not checked. ${error.message}`),
    );
  }
  return found;
}

async function isInDirectory(client: Pick<AdminClient, 'get'>, id: string): Promise<boolean> {
  try {
    const path = `/keys/${encodeURIComponent(id)}`;
    return (await client.get(path, {}, z.object({ source: z.string() }))).body.source === 'directory';
  } catch (error) {
    if (error instanceof CommandError && error.kind === 'not_found') return false;
    throw error;
  }
}
