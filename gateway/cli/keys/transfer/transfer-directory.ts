import { setTimeout as sleep } from 'node:timers/promises';
import {
  exportDirectoryWire,
  type Imported,
  importDirectoryWire,
} from '../../../admin/wires/keys/directory.ts';
import type { MovedKey } from '../../../keys/key-schema.ts';
import { countMembers } from '../../../shared/structures/plain-data.ts';
import { printableJsonText } from '../../../shared/terminal/printable.ts';
import type { Bounds } from '../../../shared/timeouts-and-sizes.ts';
import { figure } from '../../../shared/words/figures.js';
import type { AdminClient } from '../../admin/admin-client.ts';
import { CommandError } from '../../output/command-error.ts';
import { progressHere } from '../../output/progress.ts';
import { movedJson } from './transfer.ts';

/**
 * Yields the keys of the key directory, page by page.
 *
 * @throws a CommandError
 */
export async function* exportDirectory(
  client: Pick<AdminClient, 'ask' | 'bounds'>,
): AsyncGenerator<readonly unknown[]> {
  const wire = exportDirectoryWire(client.bounds);
  let after: string | undefined;
  do {
    const { json } = await client.ask(wire, { query: { after } });
    const { keys, next } = Object(json);
    yield keys;
    after = next;
  } while (after !== undefined);
}

/**
 * Writes `{ "keys": […] }` page by page, with one key a line. A key directory may have a million keys, so the keys are not all held in
 * memory.
 */
export async function writeExport(
  pages: AsyncIterable<readonly unknown[]> | Iterable<readonly unknown[]>,
  write: (text: string) => Promise<void>,
): Promise<void> {
  let separator = '{"keys":[';
  for await (const keys of pages) {
    let text = '';
    for (const key of keys) {
      text += `${separator}\n${printableJsonText(key, 0)}`;
      separator = ',';
    }
    await write(text);
  }
  await write(`${separator === ',' ? '' : separator}\n]}\n`);
}

/** Adds keys to the key directory, in parts. @throws a CommandError with the number of keys that were added before the failure */
export async function importToDirectory(
  client: Pick<AdminClient, 'ask'>,
  keys: readonly MovedKey[],
  bounds: Bounds,
): Promise<Imported> {
  const sum = { created: 0, unchanged: 0, refused: [] as Imported['refused'][number][] };
  const progress = progressHere();
  try {
    for (const part of partsOf(keys.map(movedJson), bounds)) {
      const body = await sendPart(client, part, bounds);
      sum.created += body.created;
      sum.unchanged += body.unchanged;
      sum.refused.push(...body.refused);
      progress.show(sum.created + sum.unchanged + sum.refused.length, keys.length);
    }
    return sum;
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    throw new CommandError(
      `${error.message} Before this error, ${figure(sum.created)} of ${figure(keys.length)} keys were added. Run the same command again to add the other keys.`,
    );
  } finally {
    progress.end();
  }
}

/** Sends the part again later if the gateway limits the rate of changes. This is safe, because existing keys do not change. */
async function sendPart(
  client: Pick<AdminClient, 'ask'>,
  keys: readonly unknown[],
  bounds: Bounds,
): Promise<Imported> {
  const { importRetries, importRetryMs } = bounds;
  const wire = importDirectoryWire(bounds);
  for (let retries = 0; ; retries++) {
    try {
      return (await client.ask(wire, { body: { keys } })).body;
    } catch (error) {
      const isPassing = error instanceof CommandError && error.kind === 'passing';
      if (!isPassing || retries === importRetries) throw error;
      await sleep(importRetryMs);
    }
  }
}

function* partsOf(
  keys: readonly unknown[],
  { importKeysMax, importBytesMax, importMembersMax }: Bounds,
): Generator<readonly unknown[]> {
  // The object that contains the list needs some octets and one member. Each key also needs one octet for a comma.
  const [bytesMax, membersMax] = [importBytesMax - 100, importMembersMax - 1];
  let part: unknown[] = [];
  let [bytes, members] = [0, 0];
  for (const key of keys) {
    const length = Buffer.byteLength(JSON.stringify(key)) + 1;
    // The limit counts each key as one member of the list, and also counts the key's own members.
    const size = 1 + countMembers(key, membersMax);
    const isFull = part.length === importKeysMax || bytes + length > bytesMax || members + size > membersMax;
    if (part.length > 0 && isFull) {
      yield part;
      part = [];
      [bytes, members] = [0, 0];
    }
    part.push(key);
    bytes += length;
    members += size;
  }
  if (part.length > 0) yield part;
}
