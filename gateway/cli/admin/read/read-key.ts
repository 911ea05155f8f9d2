import { getKeyMinuteWire, getWhyWire, type Why, type WhyMinute } from '../../../admin/wires/keys/why.ts';
import { removalIn } from '../../../admin/words/keys.js';
import { keysPerPageMax } from '../../../shared/http/wire.ts';
import { didYouMean } from '../../../shared/schema/closest-name.ts';
import { printable } from '../../../shared/terminal/printable.ts';
import { CommandError } from '../../output/command-error.ts';
import type { AdminClient, Reply } from '../admin-client.ts';

type Client = Pick<AdminClient, 'ask'>;

/** Reads why requests of a key are admitted or refused. */
export function readWhy(client: Client, id: string): Promise<Reply<{ readonly why: Why }>> {
  return ofKey(client, id, () => client.ask(getWhyWire, { params: { id } }));
}

/** Reads why requests of a key were refused in a minute. @param at a time within the minute, ISO 8601 */
export function readMinute(client: Client, id: string, at: string): Promise<Reply<WhyMinute>> {
  return ofKey(client, id, () => client.ask(getKeyMinuteWire, { params: { id }, query: { at } }));
}

/**
 * Reads data about one key.
 *
 * @throws a CommandError, which suggests a similar id if the key does not exist
 */
export function ofKey<Result>(client: Client, id: string, ask: () => Promise<Result>): Promise<Result> {
  return belowKey(id, ask, async () => didYouMean(id, await similarIds(client, id)));
}

/**
 * Changes one key.
 *
 * @throws a CommandError. The message suggests no other id, because that id could belong to another customer
 */
export function changeKey<Result>(id: string, ask: () => Promise<Result>): Promise<Result> {
  return belowKey(id, ask, () => '');
}

/** `removal`: when and by whom the key was removed, as a sentence; empty if the record of changes does not have it. */
export class NoSuchKey extends CommandError {
  readonly removal: string;

  constructor(message: string, removal: string) {
    super(message, 'not_found');
    this.removal = removal;
  }
}

async function belowKey<Result>(
  id: string,
  ask: () => Promise<Result>,
  advise: () => string | Promise<string>,
): Promise<Result> {
  try {
    return await ask();
  } catch (error) {
    if (!(error instanceof CommandError && error.kind === 'not_found')) throw error;
    const removal = removalIn(error.message);
    const advice =
      removal === ''
        ? (await advise()) || ': "keys list --q TEXT" finds keys by a part of their id or name.'
        : `. ${removal}`;
    throw new NoSuchKey(printable(`There is no key ${id}${advice}`), removal);
  }
}

/**
 * Returns ids that contain the first or the second half of the given id. A single typing error changes only one of the halves.
 */
async function similarIds(client: Client, id: string): Promise<string[]> {
  const middle = Math.ceil(id.length / 2);
  const halves = [id.slice(0, middle), id.slice(middle)].filter((half) => half !== '');
  const { listKeysWire } = await import('../../../admin/wires/keys/keys.ts');
  const query = { sort: 'id', limit: keysPerPageMax };
  try {
    const pages = await Promise.all(halves.map((q) => client.ask(listKeysWire, { query: { ...query, q } })));
    return pages.flatMap(({ body }) => body.keys.map((key) => key.id));
  } catch {
    // If the suggestion cannot be read, the command reports only the failure of the original request.
    return [];
  }
}
