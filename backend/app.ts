import type { FastifyBaseLogger, FastifyInstance, FastifyReply } from 'fastify';
import { fastify, LogController } from 'fastify';
import { answerClientError } from './answer-client-error.ts';
import { bounds } from './bounds.ts';
import type { ErrorCode } from './errors.ts';
import { createErrorBody } from './errors.ts';
import { parseInt64 } from './int64.ts';
import type { ParsedJson } from './json.ts';
import { parseJson, stringifyJson } from './json.ts';
import { linger } from './linger.ts';
import { createMethodTable } from './method-table.ts';
import { parseNewPet } from './parse-new-pet.ts';
import { parsePetQuery } from './parse-pet-query.ts';
import type { PetStore } from './pets.ts';

/** The pet store as an HTTP application; `main.ts` opens its listener. Every error response has an Error body. */
export function createApp({ pets, logger }: { pets: PetStore; logger: FastifyBaseLogger }): FastifyInstance {
  const app = fastify({
    loggerInstance: logger,
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: 'requestId' }),
    requestIdHeader: 'x-request-id',
    bodyLimit: bounds.bodyBytesMax,
    requestTimeout: bounds.requestTimeoutMs,
    // Node's own 400 for a missing Host has no Error body, so `onRequest` sends a response with an Error body.
    http: { maxHeaderSize: bounds.headersBytesMax, requireHostHeader: false },
    // A request that arrives while the server closes is still served, with `Connection: close`.
    return503OnClosing: false,
    routerOptions: {
      // A request for a `petId` that does not exist gets a 404, even if the `petId` is very long. Fastify's default limit would
      // turn the 404 into a 414.
      maxParamLength: bounds.headersBytesMax,
      querystringParser: (query) => ({ parameters: new URLSearchParams(query) }),
    },
    frameworkErrors: (_error, _request, reply) => {
      refuse(reply as FastifyReply, 'invalid_request', 'the path is not valid percent-encoding');
    },
    clientErrorHandler: answerClientError,
  });
  // Node's own 417 has no Error body. RFC 9110 §10.1.1 makes 417 optional, so the store ignores an unknown `Expect` field.
  app.server.on('checkExpectation', (request, response) => app.server.emit('request', request, response));

  app.removeAllContentTypeParsers();
  app.addContentTypeParser<Buffer>('application/json', { parseAs: 'buffer' }, (_request, body, done) => {
    done(null, parseJson(body));
  });
  app.setReplySerializer(stringifyJson);

  const methods = createMethodTable();
  app.addHook('onRoute', ({ url, method }) => methods.add(url, method));
  let closing = false;
  app.addHook('preClose', (done) => {
    closing = true;
    done();
  });
  // Fastify sends `Connection: close` only to requests that arrive after closing began, and not to requests in flight.
  app.addHook('onSend', (_request, reply, payload, done) => {
    if (closing) reply.header('connection', 'close');
    done(null, payload);
  });
  app.addHook('onRequest', (request, reply, done) => {
    const { httpVersion, headers } = request.raw;
    if (headers.host === undefined && httpVersion === '1.1') {
      refuse(reply, 'invalid_request', 'the Host header is required'); // RFC 9112 §3.2
      return;
    }
    done();
  });

  addRoutes(app, pets);
  addErrorHandlers(app, (path) => methods.allowedAt(path));
  return app;
}

function addRoutes(app: FastifyInstance, pets: PetStore): void {
  app.get('/healthz', () => ({ status: 'ok' }));

  app.get<{ Querystring: { parameters: URLSearchParams } }>('/v1/pets', (request, reply) => {
    const { parameters } = request.query;
    const parsed = parsePetQuery(parameters);
    if (parsed.kind === 'invalid') return refuse(reply, 'invalid_request', parsed.problem);
    const page = pets.list(parsed.query);
    const last = page.pets.at(-1);
    if (page.more && last !== undefined) reply.header('link', linkToNext(parameters, last.id));
    return page.pets;
  });

  app.post<{ Body: ParsedJson | undefined }>('/v1/pets', ({ body }, reply) => {
    if (body === undefined) return refuse(reply, 'invalid_request', 'the body is missing: send a NewPet');
    if (body.kind === 'invalid') return refuse(reply, 'invalid_request', body.problem);
    const parsed = parseNewPet(body.value);
    if (parsed.kind === 'invalid') return refuse(reply, 'invalid_request', parsed.problem);
    const added = pets.add(parsed.pet);
    if (added.kind === 'full') return refuse(reply, 'storage_full', 'the store is full: no animal was added');
    return reply.code(201).header('location', `/v1/pets/${added.pet.id}`).send(added.pet);
  });

  app.get<{ Params: { petId: string } }>('/v1/pets/:petId', (request, reply) => {
    const id = parseInt64(request.params.petId);
    // The specification lists 404 and no 400 for this operation.
    if (id === undefined) return refuse(reply, 'not_found', 'there is no such animal: petId is not an int64');
    return pets.get(id) ?? refuse(reply, 'not_found', `there is no animal with petId ${id}`);
  });

  // The specification lists this operation, but defines neither the schema of an order nor an operation that creates an order.
  app.get('/v1/store/orders', () => []);
}

/** @param allowedAt the methods of a path, for `Allow`; undefined where there is no such path */
function addErrorHandlers(app: FastifyInstance, allowedAt: (path: string) => string | undefined): void {
  app.setNotFoundHandler((request, reply) => {
    const allow = allowedAt(request.url);
    if (allow === undefined) return refuse(reply, 'not_found', 'there is no such path');
    reply.header('allow', allow);
    return refuse(reply, 'method_not_allowed', `this path offers ${allow}`);
  });

  app.setErrorHandler<Error & { statusCode?: number }>(async (error, request, reply) => {
    const { statusCode = 500 } = error;
    if (statusCode === 413) {
      await linger(request.raw, bounds.lingerBytesMax);
      return refuse(reply, 'payload_too_large', `the body must have at most ${bounds.bodyBytesMax} bytes`);
    }
    if (statusCode === 415) {
      return refuse(reply, 'unsupported_media_type', 'content-type must be application/json');
    }
    if (statusCode < 500) {
      return refuse(reply, 'invalid_request', 'the body does not match its Content-Length');
    }
    request.log.error({ err: error, method: request.method, path: request.url }, 'request failed');
    return refuse(reply, 'internal', 'the store failed on this request');
  });
}

function refuse(reply: FastifyReply, code: ErrorCode, message: string): FastifyReply {
  const body = createErrorBody(code, message);
  return reply.code(body.status).send(body);
}

/** The link to the next page (RFC 8288): the page after `lastId`, with the same page size and filter. */
function linkToNext(parameters: URLSearchParams, lastId: bigint): string {
  const next = new URLSearchParams();
  for (const name of ['limit', 'status']) {
    const value = parameters.get(name);
    if (value !== null) next.set(name, value);
  }
  next.set('after', String(lastId));
  return `</v1/pets?${next}>; rel="next"`;
}
