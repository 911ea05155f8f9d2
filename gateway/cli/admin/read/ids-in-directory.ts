import { findInDirectoryWire } from '../../../admin/wires/keys/directory.ts';
import { printable } from '../../../shared/terminal/printable.ts';
import { defaultBounds } from '../../../shared/timeouts-and-sizes.ts';
import { CommandError } from '../../output/command-error.ts';
import type { AdminClient } from '../admin-client.ts';

/**
 * Asks a gateway, because a key of the keys file would replace a directory key with the same id. If no gateway answers, the function prints
 * a warning and does not fail, because an operator may create the first key before the first start of the gateway.
 */
export async function idsInDirectory(
  ids: readonly string[],
  client: () => Promise<Pick<AdminClient, 'ask'>>,
): Promise<ReadonlySet<string>> {
  const found = new Set<string>();
  const { importKeysMax: perRequest } = defaultBounds;
  const wire = findInDirectoryWire(defaultBounds);
  try {
    const gateway = await client();
    for (let from = 0; from < ids.length; from += perRequest) {
      const body = { ids: ids.slice(from, from + perRequest) };
      for (const id of (await gateway.ask(wire, { body })).body.ids) found.add(id);
    }
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    const what = ids.length === 1 ? `a key ${ids[0]}` : 'keys with these ids';
    console.error(
      printable(
        `warning: the key directory may already have ${what}; the command could not check this. ${error.message}`,
      ),
    );
  }
  return found;
}
