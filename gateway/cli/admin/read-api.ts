import { listChangesWire } from '../../admin/wires/changes.ts';
import { listEventsWire } from '../../admin/wires/events.ts';
import { getKeyWire, type KeyDetail } from '../../admin/wires/keys/key.ts';
import { listKeysWire } from '../../admin/wires/keys/keys.ts';
import { getMonthUsageWire } from '../../admin/wires/keys/usage.ts';
import { listPlansWire } from '../../admin/wires/plans/plans.ts';
import type { AnswerOf, AskedWire, QueryFor } from '../../shared/http/wire.ts';
import { didYouMean, listNames } from '../../shared/schema/closest-name.ts';
import { printable } from '../../shared/terminal/printable.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import { CommandError } from '../output/command-error.ts';
import type { AdminClient, Reply } from './admin-client.ts';

type Client = Pick<AdminClient, 'ask'>;

/** A list that the admin API returns in pages. */
interface PagedList<Of extends AskedWire> {
  readonly wire: (bounds: Bounds) => Of;
  /** The name of the field that contains the items of a page. */
  readonly member: string;
  readonly perPage: number;
}

const keysPerPage = 500;

export const lists = {
  keys: { wire: () => listKeysWire, member: 'keys', perPage: keysPerPage },
  month: { wire: () => getMonthUsageWire, member: 'keys', perPage: keysPerPage },
  changes: { wire: listChangesWire, member: 'changes', perPage: 200 },
  events: { wire: listEventsWire, member: 'events', perPage: 200 },
} as const;

/**
 * Reads up to `max` items of a list, from as many pages as necessary. Returns the items in the form of a single page.
 *
 * @throws a CommandError if any page cannot be read, so that a bill never lacks a key
 */
export async function readList<Of extends AskedWire>(
  client: Pick<AdminClient, 'ask' | 'bounds'>,
  { wire: wireOf, member, perPage }: PagedList<Of>,
  query: QueryFor<Of>,
  max: number,
): Promise<Reply<AnswerOf<Of>>> {
  const wire = wireOf(client.bounds);
  const items: unknown[] = [];
  const jsonItems: unknown[] = [];
  let after: string | undefined;
  for (;;) {
    const limit = Math.min(perPage, max - items.length);
    const { body, json } = await client.ask<Of>(wire, { query: { ...query, after, limit } });
    items.push(...Object(body)[member]);
    jsonItems.push(...Object(json)[member]);
    const { next } = Object(json);
    // A filtered page may be empty although later pages have items.
    if (next === undefined || next === after || items.length >= max) {
      return { body: { ...Object(body), [member]: items }, json: { ...Object(json), [member]: jsonItems } };
    }
    after = next;
  }
}

export function readKey(client: Client, id: string): Promise<Reply<KeyDetail>> {
  return ofKey(client, id, () => client.ask(getKeyWire, { params: { id } }));
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

async function belowKey<Result>(
  id: string,
  ask: () => Promise<Result>,
  advise: () => string | Promise<string>,
): Promise<Result> {
  try {
    return await ask();
  } catch (error) {
    if (!(error instanceof CommandError && error.kind === 'not_found')) throw error;
    const advice = (await advise()) || ': "keys list --q TEXT" finds keys by a part of their id or name.';
    throw new CommandError(printable(`There is no key ${id}${advice}`), 'not_found');
  }
}

/**
 * Returns ids that contain the first or the second half of the given id. A single typing error changes only one of the halves.
 */
async function similarIds(client: Client, id: string): Promise<string[]> {
  const middle = Math.ceil(id.length / 2);
  const halves = [id.slice(0, middle), id.slice(middle)].filter((half) => half !== '');
  const query = { sort: 'id', limit: keysPerPage };
  try {
    const pages = await Promise.all(halves.map((q) => client.ask(listKeysWire, { query: { ...query, q } })));
    return pages.flatMap(({ body }) => body.keys.map((key) => key.id));
  } catch {
    // If the suggestion cannot be read, the command reports only the failure of the original request.
    return [];
  }
}

/**
 * Reads or changes data about one plan.
 *
 * @throws a CommandError, which suggests a similar name if the plan does not exist
 */
export async function ofPlan<Result>(
  client: Client,
  name: string,
  ask: () => Promise<Result>,
): Promise<Result> {
  try {
    return await ask();
  } catch (error) {
    if (error instanceof CommandError && error.kind === 'not_found') await requirePlan(client, name);
    throw error;
  }
}

/** @throws a CommandError if there is no such plan; it suggests a similar name */
export async function requirePlan(client: Client, name: string): Promise<void> {
  const { body } = await client.ask(listPlansWire);
  requireName(
    'plan',
    name,
    body.plans.map((plan) => plan.name),
  );
}

/** @throws a CommandError if the name is not in the list; it suggests a similar name, or lists all */
export function requireName(noun: string, name: string, names: readonly string[]): void {
  if (names.includes(name)) return;
  const advice = didYouMean(name, names) || `; ${noun}s are: ${listNames(names)}.`;
  throw new CommandError(printable(`There is no ${noun} ${name}${advice}`));
}
