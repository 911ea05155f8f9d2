import type * as z from 'zod';
import { printable } from '../../terminal/printable.ts';
import { CommandError } from '../output/command-error.ts';
import type { AdminClient, Query, Reply } from './admin-client.ts';
import {
  type Callers,
  type Changes,
  callers,
  changes,
  type KeyDetail,
  keyDetail,
  keyPage,
  type Usage,
  usage,
} from './api-shapes.ts';

/** A client, as far as the commands need it. */
type Client = Pick<AdminClient, 'get'>;

/** Keys and changes that one response may have at most. */
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

export function readKey(client: Client, id: string): Promise<Reply<KeyDetail>> {
  return orNotFound(client.get(`/keys/${encodeURIComponent(id)}`, {}, keyDetail), noSuchKey(id));
}

export function readUsage(client: Client, id: string, query: Query): Promise<Reply<Usage>> {
  return orNotFound(client.get(`/keys/${encodeURIComponent(id)}/usage`, query, usage), noSuchKey(id));
}

export function readCallers(client: Client, operationId: string, query: Query): Promise<Reply<Callers>> {
  const path = `/operations/${encodeURIComponent(operationId)}/callers`;
  const sentence = `There is no operation ${printable(operationId)}: its operationId in the API document is asked for.`;
  return orNotFound(client.get(path, query, callers), sentence);
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

async function orNotFound<Result>(reading: Promise<Result>, sentence: string): Promise<Result> {
  try {
    return await reading;
  } catch (error) {
    const isUnknown = error instanceof CommandError && error.kind === 'not_found';
    throw isUnknown ? new CommandError(sentence, 'not_found') : error;
  }
}

function noSuchKey(id: string): string {
  return `There is no key ${printable(id)}: "keys list --q TEXT" finds keys by a part of their id or name.`;
}
