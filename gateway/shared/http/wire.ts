import * as z from 'zod';
import { noQuery, type QuerySchema, sharedParameters } from '../schema/query-parameters.ts';

/**
 * What clients know about a method of a path. The gateway parses requests with these schemas, and makes the OpenAPI document of the admin
 * API from them.
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
  /** The header fields of the request, which may all be absent. */
  readonly headers?: Readonly<Record<string, z.ZodType>>;
  /** A request with any other parameter is refused. */
  readonly query: Query;
  /** The JSON body. Without a schema, the gateway does not read a body. */
  readonly body?: Body;
  /** By status, without errors. */
  readonly answers: Answers;
}

export type AnswersByStatus = Readonly<Record<number, Answer>>;

export interface Answer {
  readonly description: string;
  /** Absent for a response without a body. */
  readonly schema?: z.ZodType;
  readonly headers?: readonly 'ETag'[];
}

/** The body of a successful response; undefined without a body. */
export type AnswerOf<Of extends Pick<Wire, 'answers'>> = {
  [Status in keyof Of['answers']]: Of['answers'][Status] extends { readonly schema: infer Schema }
    ? z.output<Schema>
    : undefined;
}[keyof Of['answers']];

export type AskedWire = Pick<Wire, 'method' | 'path' | 'query' | 'answers'>;

export interface SentTo<Of extends AskedWire> {
  /** Values for the path template. */
  readonly params?: { readonly [Name in ParamOf<Of['path']>]: string };
  /** Undefined members are left out. */
  readonly query?: QueryFor<Of>;
  /** Sent as JSON without undefined members. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

type ParamOf<Path extends string> = Path extends `${string}{${infer Name}}${infer Rest}`
  ? Name | ParamOf<Rest>
  : never;

export type QueryFor<Of extends AskedWire> = {
  readonly [Name in keyof Of['query']['shape']]?: string | number | undefined;
};

/** Without `query`, a route has no query parameters. */
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

/** For a client that reads only some members of a response. */
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

export const keysPerPageMax = 500;

export function afterPage<Schema extends z.ZodType>(schema: Schema) {
  return schema.optional().describe('The `next` of the previous page.');
}

export const ifMatchHeader = z
  .string()
  .describe(
    'The ETag of the definition to change; if it has changed since, the response is 412. By default, any version is changed.',
  )
  .register(sharedParameters, { id: 'ifMatch' });
