import type { AnswerOf, AskedWire, QueryFor } from '../../../shared/http/wire.ts';
import type { AdminClient, Reply } from '../admin-client.ts';

export interface PagedList<Of extends AskedWire> {
  readonly wire: Of;
  /** The name of the field that contains the items of a page. */
  readonly member: string;
  readonly perPage: number;
}

/**
 * Reads up to `max` items of a list, from as many pages as necessary. Returns the items in the form of a single page.
 *
 * @throws a CommandError if any page cannot be read, so that a bill never lacks a key
 */
export async function readList<Of extends AskedWire>(
  client: Pick<AdminClient, 'ask'>,
  { wire, member, perPage }: PagedList<Of>,
  query: QueryFor<Of>,
  max: number,
): Promise<Reply<AnswerOf<Of>>> {
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
