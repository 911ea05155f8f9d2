import * as z from 'zod';
import { noQuery, type QuerySchema, sharedParameters } from '../schema/query-parameters.ts';

/**
 * What clients know about one method of one path: its parameters, its body and its responses. The gateway parses requests with these
 * schemas, and the OpenAPI document of the admin API consists of them.
 */
export interface Wire<
  Method extends 'GET' | 'POST' | 'PATCH' | 'DELETE' = 'GET' | 'POST' | 'PATCH' | 'DELETE',
  Path extends string = string,
  Query extends QuerySchema = QuerySchema,
  Body extends z.ZodType = z.ZodType,
  Answers extends AnswersByStatus = AnswersByStatus,
> {
  readonly method: Method;
  /** The path below `/api/v1`. `{id}` stands for one segment. */
  readonly path: Path;
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
  readonly answers: Answers;
}

export type AnswersByStatus = Readonly<Record<number, Answer>>;

/** A response of the admin API. */
export interface Answer {
  readonly description: string;
  /** Absent for a response without a body. */
  readonly schema?: z.ZodType;
  readonly headers?: readonly 'ETag'[];
}

/** The body of a successful response, undefined for a response without a body. */
export type AnswerOf<Of extends Pick<Wire, 'answers'>> = {
  [Status in keyof Of['answers']]: Of['answers'][Status] extends { readonly schema: infer Schema }
    ? z.output<Schema>
    : undefined;
}[keyof Of['answers']];

/** What a client needs to know about a route. */
export type AskedWire = Pick<Wire, 'method' | 'path' | 'query' | 'answers'>;

/** The variable parts of a request. */
export interface SentTo<Of extends AskedWire> {
  /** The value for each parameter of the path template. */
  readonly params?: { readonly [Name in ParamOf<Of['path']>]: string };
  /** The query. Members that are undefined are left out. */
  readonly query?: QueryFor<Of>;
  /** The body, which is sent as JSON without undefined members. */
  readonly body?: unknown;
}

type ParamOf<Path extends string> = Path extends `${string}{${infer Name}}${infer Rest}`
  ? Name | ParamOf<Rest>
  : never;

export type QueryFor<Of extends AskedWire> = {
  readonly [Name in keyof Of['query']['shape']]?: string | number | undefined;
};

/** Defines the wire of a route. A wire without `query` has no query parameters. */
export function defineWire<
  const Method extends Wire['method'],
  const Path extends string,
  const Answers extends AnswersByStatus,
  Query extends QuerySchema = typeof noQuery,
  Body extends z.ZodType = z.ZodUndefined,
>(
  wire: Omit<Wire<Method, Path, Query, Body, Answers>, 'query'> & { readonly query?: Query },
): Wire<Method, Path, Query, Body, Answers> {
  return { query: noQuery as unknown as Query, ...wire };
}

/** The wire of a client that reads only some members of a response. */
export function readingOnly<Of extends Wire, Schema extends z.ZodType>(
  wire: Of,
  schema: Schema,
): Omit<Of, 'answers'> & { readonly answers: { readonly 200: Answer & { readonly schema: Schema } } } {
  return { ...wire, answers: { 200: { description: wire.summary, schema } } };
}

export const keyIdParameter = z
  .string()
  .describe('The id of a key.')
  .register(sharedParameters, { id: 'keyId' });

/** The largest number of keys on a page of a list. */
export const keysPerPageMax = 500;

/** The query parameter `after` of a list with pages. */
export function afterPage<Schema extends z.ZodType>(schema: Schema) {
  return schema.optional().describe('The `next` of the previous page.');
}

export const ifMatchHeader = z
  .string()
  .describe(
    'The ETag of the definition that the change is meant for. The response is 412 if the definition has changed since. Without If-Match, the change applies to any version.',
  )
  .register(sharedParameters, { id: 'ifMatch' });
