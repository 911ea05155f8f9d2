import * as z from 'zod';
import { components } from '../../keys/response-parts.ts';
import type { Answer, Wire } from '../../shared/http/wire.ts';
import { parameterShown, sharedParameters } from '../../shared/schema/query-parameters.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import { figure } from '../../shared/words/figures.js';
import { whatHoldsAnswer } from '../wires/keys/bans-and-grants.ts';
import { definitionAnswer, issuedAnswer } from '../wires/keys/definitions.ts';
import { ranByField, ranBySchema } from '../wires/ran-by.ts';
import { wires } from '../wires/wires.ts';

type JsonSchema = Record<string, unknown>;

/**
 * Makes the OpenAPI document from the wires of the routes, so it has the parameters, bodies and responses of the code. This takes 0.1 s.
 */
export function apiDocument(bounds: Bounds) {
  const all = wires(bounds);
  return {
    openapi: '3.1.0',
    info,
    servers: [{ url: '/api/v1', description: 'The admin listener, by default on http://127.0.0.1:9090.' }],
    security: [{ token: [] }],
    tags: Object.entries(tags).map(([name, description]) => ({ name, description })),
    paths: pathsOf(all),
    components: {
      securitySchemes: {
        token: {
          type: 'http',
          scheme: 'bearer',
          description:
            'Every request needs a token of `admin.tokens`. A token that may only `read` gets 403 for a request that makes a change.',
        },
      },
      parameters: parametersShared(all),
      headers,
      responses: {
        ...Object.fromEntries([...sharedAnswers].map(([answer, name]) => [name, response(answer)])),
        Error: {
          description: errorDescription(bounds),
          headers: { ...requestId, ...refsOf(['Retry-After', 'WWW-Authenticate', 'Allow']) },
          content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
        },
      },
      schemas: { Error: jsonSchema(errorShown), ...componentSchemas() },
    },
  };
}

const info = {
  title: 'Tollgate admin API',
  version: '1.0.0',
  description:
    'The API for operators and support, on the admin listener of a gateway. Any gateway can answer for all gateways with the same Redis and prefix. In responses, members that end in `At` are times, as RFC 3339 texts in UTC. Members that end in `Ms` are durations or epoch times in milliseconds. In requests, a date means 00:00 UTC, and a time needs its zone (RFC 3339). Only the response to the request that issues a secret contains it. Other responses show at most the first 8 hex digits of its SHA-256 digest; only `GET /directory` and `POST /leaks` return whole digests.',
  contact: { name: 'The operators of this gateway' },
  license: { name: 'MIT', identifier: 'MIT' },
};

const tags: Readonly<Record<Wire['tag'], string>> = {
  Fleet: 'The gateway processes, their configuration and their upstreams.',
  Keys: 'Keys with their limits, requests and outcomes.',
  Configuration: 'The present configuration and its changes.',
  Webhooks: 'The events for the receivers of `notify`, and their deliveries.',
};

const headers = {
  'X-Request-Id': {
    description: "The id of this request in the gateway's log.",
    schema: { type: 'string', format: 'uuid' },
  },
  'Retry-After': {
    description: 'On 429 and 503: the number of seconds after which to try again.',
    schema: { type: 'integer', minimum: 1 },
  },
  'WWW-Authenticate': {
    description: 'The challenge, on 401 and on 403 if the token may not make this request.',
    schema: { type: 'string' },
  },
  ETag: {
    description:
      "The version of the key's definition, for If-Match. Every definition has a different version, even if a deleted key had the same id.",
    schema: { type: 'string', pattern: '^"\\d+-\\d+"$' },
  },
  Allow: { description: 'On 405: the methods that the path offers.', schema: { type: 'string' } },
};

const errorShown = z.object({
  code: z.string().describe('The kind of the error, for programs.'),
  message: z.string().describe('For people.'),
  status: z.number().meta({ type: 'integer' }),
});

function errorDescription({ adminChangesPerMinuteMax }: Pick<Bounds, 'adminChangesPerMinuteMax'>): string {
  return `400: the request is malformed, or a query parameter or a member of the body is unknown or has a bad value. 401: the token is missing or wrong. 403: no token is configured, the token may not make this request, or the request comes from a page of another origin. 404: the path does not exist, or what it names. 405: the path does not offer the method; Allow names its methods. 408: the request arrived too slowly. 409: the request conflicts with the present state or the configuration. 412: If-Match does not name the present version of the key. 413: the body is too large or has too many members. 414: the URI is too long. 415: the type of the body is not JSON, or the body is compressed. 417: Expect is not \`100-continue\`. 421: the name in Host is neither an address nor \`localhost\`, and not in \`admin.hosts\`. 429: this address has sent too many wrong tokens (a valid token is not affected), or the token has sent more than ${figure(adminChangesPerMinuteMax)} requests for changes within a minute to one process. 431: the header is too large. 500: a bug. 503: too many requests are under way, this request took too long, or it needs Redis and Redis is away.`;
}

/** The parameters that several operations have, by their ids. */
function parametersShared(all: readonly Wire[]) {
  return Object.fromEntries(
    all.flatMap(placesOf).flatMap(({ schema, place }) => {
      const shared = sharedParameters.get(schema);
      return shared === undefined ? [] : [[shared.id, parameter(schema, place)]];
    }),
  );
}

function placesOf({ method, params, query, headers: stated }: Wire) {
  const headers = method === 'GET' ? stated : { ...stated, [ranByField]: ranBySchema };
  return (['path', 'query', 'header'] as const).flatMap((place) => {
    const ofPlace: Readonly<Record<string, z.ZodType>> =
      { path: params, query: query.shape, header: headers }[place] ?? {};
    return Object.entries(ofPlace).map(([name, schema]) => ({ schema, place: { name, in: place } }));
  });
}

interface Place {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
}

/** Responses that several operations have. */
const sharedAnswers = new Map<Answer, string>([
  [definitionAnswer, 'Definition'],
  [issuedAnswer, 'Issued'],
  [whatHoldsAnswer, 'WhatHolds'],
]);

function pathsOf(all: readonly Wire[]) {
  const byPath = Map.groupBy(all, ({ path }) => path);
  return Object.fromEntries(
    [...byPath].map(([path, ofPath]) => [
      path,
      Object.fromEntries(ofPath.map((wire) => [wire.method.toLowerCase(), operation(wire)])),
    ]),
  );
}

function operation(wire: Wire) {
  const { operationId, tag, summary, description, body, answers } = wire;
  const parameters = placesOf(wire).map(({ schema, place }) => {
    const shared = sharedParameters.get(schema);
    return shared === undefined ? parameter(schema, place) : { $ref: `#/components/parameters/${shared.id}` };
  });
  const responses = Object.entries(answers).map(([status, answer]) => {
    const shared = sharedAnswers.get(answer);
    return [status, shared === undefined ? response(answer) : { $ref: `#/components/responses/${shared}` }];
  });
  const anyError = { $ref: '#/components/responses/Error' };
  return {
    ...{ operationId, tags: [tag], summary, description },
    ...(parameters.length > 0 && { parameters }),
    ...(body !== undefined && {
      requestBody: {
        required: !body.safeParse({}).success,
        content: { 'application/json': { schema: jsonSchema(body) } },
      },
    }),
    responses: { ...Object.fromEntries(responses), '4XX': anyError, default: anyError },
  };
}

function parameter(of: z.ZodType, { name, in: place }: Place) {
  const { description, isRequired, isList, schema } = parameterShown(of);
  return {
    ...{ name, in: place, description },
    ...((place === 'path' || (place === 'query' && isRequired)) && { required: true }),
    ...(isList && { style: 'form', explode: false }),
    schema,
  };
}

/** Every response has an `X-Request-Id`. */
function response({ description, schema, headers: named = [] }: Answer) {
  return {
    description,
    headers: { ...requestId, ...refsOf(named) },
    ...(schema !== undefined && {
      content: { 'application/json': { schema: componentOf(schema) ?? jsonSchema(schema) } },
    }),
  };
}

const requestId = refsOf(['X-Request-Id']);

function refsOf(names: readonly string[]) {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

/** The reference to the component of a schema; undefined if the schema is no component. */
function componentOf(schema: z.ZodType) {
  const id = components.get(schema)?.id;
  return id === undefined ? undefined : { $ref: `#/components/schemas/${id}` };
}

function componentSchemas(): Readonly<Record<string, JsonSchema>> {
  const made = z.toJSONSchema(components, { ...conversion, uri: (id) => `#/components/schemas/${id}` });
  return Object.fromEntries(
    Object.entries(made.schemas).map(([id, { $schema: _, $id: __, ...schema }]) => [id, schema]),
  );
}

function jsonSchema(schema: z.ZodType): JsonSchema {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, conversion);
  return rest;
}

const conversion = {
  io: 'input',
  override({ zodSchema, jsonSchema: made }) {
    delete made.readOnly;
    // A schema from `membersByName` is a pipe of two schemas. The first schema rejects the reserved name, and the
    // second schema describes the members.
    const isByName = zodSchema instanceof z.ZodPipe && zodSchema.in instanceof z.ZodUnknown;
    const stated = isByName ? zodSchema.out : z.globalRegistry.get(zodSchema)?.of;
    if (stated === undefined) return;
    const { description, default: usual, 'x-setting': setting } = made;
    for (const name of Object.keys(made)) delete made[name];
    const { description: ofStated, ...shape } = jsonSchema(stated as z.ZodType);
    // The description of a setting is its `x-setting`.
    Object.assign(
      made,
      shape,
      setting === undefined && ofStated !== undefined && { description: ofStated },
      usual !== undefined && { default: usual },
      setting !== undefined && { 'x-setting': setting },
      description !== undefined && { description },
    );
  },
} satisfies z.core.ToJSONSchemaParams;
