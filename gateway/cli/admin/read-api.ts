import type * as z from 'zod';
import { didYouMean, listNames } from '../../shared/schema/closest-name.ts';
import { printable } from '../../shared/terminal/printable.ts';
import { CommandError } from '../output/command-error.ts';
import type { AdminClient, Query, Reply } from './admin-client.ts';
import {
  type Callers,
  type Changes,
  callers,
  changes,
  type Events,
  events,
  type KeyDetail,
  keyDetail,
  keyPage,
  type MonthUsage,
  monthUsage,
  plans,
  type Usage,
  usage,
} from './api-shapes.ts';

/** A client, as far as the commands need it. */
type Client = Pick<AdminClient, 'get'>;

/** Keys, and changes or events, that one response may have at most. */
const keysPerPage = 500;
const changesPerPage = 200;

export function readKeys(
  client: Client,
  query: Query,
  max: number,
): Promise<Reply<z.output<typeof keyPage>>> {
  return readPages(
    client,
    { path: '/keys', query, schema: keyPage, list: 'keys', perPage: keysPerPage },
    max,
  );
}

export function readChanges(client: Client, max: number): Promise<Reply<Changes>> {
  const pages = { path: '/changes', query: {}, schema: changes, list: 'changes', perPage: changesPerPage };
  return readPages(client, pages, max);
}

export function readEvents(client: Client, query: Query, max: number): Promise<Reply<Events>> {
  return readPages(
    client,
    { path: '/events', query, schema: events, list: 'events', perPage: changesPerPage },
    max,
  );
}

export function readKey(client: Client, id: string): Promise<Reply<KeyDetail>> {
  return ofKey(client, id, (path) => client.get(path, {}, keyDetail));
}

export function readUsage(client: Client, id: string, query: Query): Promise<Reply<Usage>> {
  return ofKey(client, id, (path) => client.get(`${path}/usage`, query, usage));
}

/** All keys in a month, or none where one page is not answered: bills need all. */
export function readMonth(client: Client, month: string): Promise<Reply<MonthUsage>> {
  const pages = { path: '/usage', query: { month }, schema: monthUsage, list: 'keys', perPage: keysPerPage };
  return readPages(client, pages, Number.POSITIVE_INFINITY);
}

export function readCallers(client: Client, operationId: string, query: Query): Promise<Reply<Callers>> {
  return client.get(`/operations/${encodeURIComponent(operationId)}/callers`, query, callers);
}

/** @throws a CommandError where there is no such plan, with the name that was probably meant */
export async function requirePlan(client: Client, name: string): Promise<void> {
  const { body } = await client.get('/plans', {}, plans);
  const names = body.plans.map((plan) => plan.name);
  if (names.includes(name)) return;
  const advice = didYouMean(name, names) || `; plans are: ${listNames(names)}.`;
  throw new CommandError(printable(`There is no plan ${name}${advice}`));
}

interface Pages<Schema extends z.ZodType> {
  readonly path: string;
  readonly query: Query;
  readonly schema: Schema;
  /** The member of each response that is a part of the list. */
  readonly list: string;
  readonly perPage: number;
}

/** As many items of a list as are wanted, over as many pages as it takes, in the form of one page. */
async function readPages<Schema extends z.ZodType>(
  client: Client,
  { path, query, schema, list, perPage }: Pages<Schema>,
  max: number,
): Promise<Reply<z.output<Schema>>> {
  const items: unknown[] = [];
  const jsonItems: unknown[] = [];
  let after: string | undefined;
  for (;;) {
    const limit = String(Math.min(perPage, max - items.length));
    const { body, json } = await client.get(path, { ...query, after, limit }, schema);
    items.push(...Object(body)[list]);
    jsonItems.push(...Object(json)[list]);
    const { next } = Object(json);
    // A filtered page may be empty and yet not the last one.
    if (next === undefined || next === after || items.length >= max) {
      return {
        body: { ...Object(body), [list]: items },
        json: { ...Object(json), [list]: jsonItems },
      };
    }
    after = next;
  }
}

/** Asks about one key. @throws a CommandError; of a key that is not there it has the id that was probably meant */
async function ofKey<Result>(
  client: Client,
  id: string,
  ask: (path: string) => Promise<Result>,
): Promise<Result> {
  return belowKey(id, ask, async () => didYouMean(id, await similarIds(client, id)));
}

/** Changes one key. @throws a CommandError; it suggests no other id, which could be the id of another customer */
export function changeKey<Result>(id: string, ask: (path: string) => Promise<Result>): Promise<Result> {
  return belowKey(id, ask, () => '');
}

/** Asks a path below `/keys/{id}`. @param advise what an error says of a key that is not there */
async function belowKey<Result>(
  id: string,
  ask: (path: string) => Promise<Result>,
  advise: () => string | Promise<string>,
): Promise<Result> {
  try {
    return await ask(`/keys/${encodeURIComponent(id)}`);
  } catch (error) {
    if (!isNotFound(error)) throw error;
    const advice = (await advise()) || ': "keys list --q TEXT" finds keys by a part of their id or name.';
    throw new CommandError(printable(`There is no key ${id}${advice}`), 'not_found');
  }
}

/** Ids that have one half of an id in them: of one with a single mistake one half is right. */
async function similarIds(client: Client, id: string): Promise<string[]> {
  const middle = Math.ceil(id.length / 2);
  const halves = [id.slice(0, middle), id.slice(middle)].filter((half) => half !== '');
  const query = { sort: 'id', limit: String(keysPerPage) };
  try {
    const pages = await Promise.all(halves.map((q) => client.get('/keys', { ...query, q }, keyPage)));
    return pages.flatMap(({ body }) => body.keys.map((key) => key.id));
  } catch {
    // The advice is left out: what failed is what was asked for.
    return [];
  }
}

function isNotFound(error: unknown): boolean {
  return error instanceof CommandError && error.kind === 'not_found';
}
