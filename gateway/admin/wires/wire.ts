import * as z from 'zod';
import { noQuery, type QuerySchema } from '../../shared/schema/query-parameters.ts';

/**
 * What clients know about one method of one path: its parameters, its body and its responses. The gateway parses requests with these
 * schemas, and the OpenAPI document of the admin API consists of them.
 */
export interface Wire<Query extends QuerySchema = QuerySchema, Body extends z.ZodType = z.ZodType> {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** The path below `/api/v1`. `{id}` stands for one segment. */
  readonly path: string;
  readonly operationId: string;
  readonly tag: 'Fleet' | 'Keys' | 'Configuration' | 'Webhooks';
  readonly summary: string;
  readonly description: string;
  /** The parameters of the path template. */
  readonly params?: Readonly<Record<string, z.ZodType>>;
  /** The header fields of the request, each of which may be absent. */
  readonly headers?: Readonly<Record<string, z.ZodType>>;
  /** The query parameters. A request with any other parameter is refused. */
  readonly query: Query;
  /** The schema of the JSON body. Without a schema, the gateway does not read a body. */
  readonly body?: Body;
  /** The responses by status, without errors. */
  readonly answers: Readonly<Record<number, Answer>>;
}

/** A response of the admin API. */
export interface Answer {
  readonly description: string;
  /** Absent for a response without a body. */
  readonly schema?: z.ZodType;
  readonly headers?: readonly 'ETag'[];
}

/** Defines the wire of a route. A wire without `query` has no query parameters. */
export function defineWire<
  Query extends QuerySchema = typeof noQuery,
  Body extends z.ZodType = z.ZodUndefined,
>(wire: Omit<Wire<Query, Body>, 'query'> & { readonly query?: Query }): Wire<Query, Body> {
  return { query: noQuery as unknown as Query, ...wire };
}

export const keyIdParameter = z.string().describe('The id of a key.');

export const eventIdParameter = z
  .string()
  .describe('The id of a webhook event, which its receivers get as `webhook-id`.');

export const ifMatchHeader = z
  .string()
  .describe(
    'The ETag of the definition that the change is meant for. The response is 412 if the definition has changed since. Without If-Match, the change applies to any version.',
  );
