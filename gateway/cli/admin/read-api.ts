import type * as z from 'zod';
import { changesPage, eventsPage } from '../../admin/api/fleet/changes-view.ts';
import { deliveriesPage } from '../../admin/wires/deliveries.ts';
import { type KeyDetail, keyDetail } from '../../admin/wires/keys/key.ts';
import { keyPage } from '../../admin/wires/keys/keys.ts';
import { monthPage } from '../../admin/wires/keys/usage.ts';
import { plansPage } from '../../admin/wires/plans.ts';
import { didYouMean, listNames } from '../../shared/schema/closest-name.ts';
import { printable } from '../../shared/terminal/printable.ts';
import { CommandError } from '../output/command-error.ts';
import type { AdminClient, Query, Reply } from './admin-client.ts';

type Client = Pick<AdminClient, 'get'>;

/** A list that the admin API returns in pages. */
interface PagedList<Schema extends z.ZodType> {
  readonly path: string;
  readonly schema: Schema;
  /** The name of the field that contains the items of a page. */
  readonly member: string;
  readonly perPage: number;
}

const keysPerPage = 500;

export const lists = {
  keys: { path: '/keys', schema: keyPage, member: 'keys', perPage: keysPerPage },
  month: { path: '/usage', schema: monthPage, member: 'keys', perPage: keysPerPage },
  changes: { path: '/changes', schema: changesPage, member: 'changes', perPage: 200 },
  events: { path: '/events', schema: eventsPage, member: 'events', perPage: 200 },
  deliveries: { path: '/deliveries', schema: deliveriesPage, member: 'events', perPage: 200 },
} as const;

/**
 * Reads up to `max` items of a list, from as many pages as necessary. Returns the items in the form of a single page.
 *
 * @throws a CommandError if any page cannot be read, so that a bill never lacks a key
 */
export async function readList<Schema extends z.ZodType>(
  client: Client,
  { path, schema, member, perPage }: PagedList<Schema>,
  query: Query,
  max: number,
): Promise<Reply<z.output<Schema>>> {
  const items: unknown[] = [];
  const jsonItems: unknown[] = [];
  let after: string | undefined;
  for (;;) {
    const limit = String(Math.min(perPage, max - items.length));
    const { body, json } = await client.get(path, { ...query, after, limit }, schema);
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
  return ofKey(client, id, (path) => client.get(path, {}, keyDetail));
}

/**
 * Reads data about one key.
 *
 * @throws a CommandError, which suggests a similar id if the key does not exist
 */
export function ofKey<Result>(
  client: Client,
  id: string,
  ask: (path: string) => Promise<Result>,
): Promise<Result> {
  return belowKey(id, ask, async () => didYouMean(id, await similarIds(client, id)));
}

/**
 * Changes one key.
 *
 * @throws a CommandError. The message suggests no other id, because that id could belong to another customer
 */
export function changeKey<Result>(id: string, ask: (path: string) => Promise<Result>): Promise<Result> {
  return belowKey(id, ask, () => '');
}

async function belowKey<Result>(
  id: string,
  ask: (path: string) => Promise<Result>,
  advise: () => string | Promise<string>,
): Promise<Result> {
  try {
    return await ask(`/keys/${encodeURIComponent(id)}`);
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
  const query = { sort: 'id', limit: String(keysPerPage) };
  try {
    const pages = await Promise.all(halves.map((q) => client.get('/keys', { ...query, q }, keyPage)));
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
  ask: (path: string) => Promise<Result>,
): Promise<Result> {
  try {
    return await ask(`/plans/${encodeURIComponent(name)}`);
  } catch (error) {
    if (error instanceof CommandError && error.kind === 'not_found') await requirePlan(client, name);
    throw error;
  }
}

/** @throws a CommandError if there is no such plan; it suggests a similar name */
export async function requirePlan(client: Client, name: string): Promise<void> {
  const { body } = await client.get('/plans', {}, plansPage);
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
