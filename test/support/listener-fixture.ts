import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished } from 'vitest';
import { isOverTls } from '../../gateway/request/exchange.ts';
import {
  createListener,
  type Listener,
  type ListenerOptions,
} from '../../gateway/request/listen/listener.ts';
import { screenRequest } from '../../gateway/request/listen/screen-request.ts';
import type { ClientResponse } from '../../gateway/request/respond/client-response.ts';
import { type ErrorCode, errorBody, errors } from '../../gateway/shared/errors.ts';
import type { Certificate } from '../../gateway/shared/model.ts';
import { defaultBounds } from '../../gateway/shared/timeouts-and-sizes.ts';
import type { RawResponse } from './raw-http.ts';

export interface ListenerFixture {
  readonly listener: Listener;
  readonly port: number;
  /** Method and URI of every request that passed the checks of the raw request, in order of arrival. */
  readonly served: string[];
  /** The reason of each failed TLS handshake. */
  readonly failedHandshakes: string[];
}

/** The fixture's handlers, which a test may replace. */
export interface TestHandlers {
  onRequest(req: IncomingMessage, res: ClientResponse): unknown;
  onRejection(res: ClientResponse): unknown;
  onUpgrade(req: IncomingMessage, res: ClientResponse, socket: Duplex): unknown;
  wantsUpgrade(req: IncomingMessage): boolean;
}

/**
 * A real listener on a free port. The handlers of the listener check each raw request as the gateway does. Then the handlers wait a
 * millisecond in place of a call to Redis, and read the body. The response has status 200, and states the method, the URI and the body
 * size.
 */
export async function startListener(
  options: {
    handlers?: Partial<TestHandlers>;
    bounds?: Partial<ListenerOptions['bounds']>;
    /** With a certificate, the listener accepts only TLS. */
    certificate?: Certificate;
    /**
     * With an empty string, the server listens on every address of the machine. If the machine has IPv4 and IPv6, this server receives IPv4
     * connections through its IPv6 socket.
     */
    host?: string;
  } = {},
): Promise<ListenerFixture> {
  const served: string[] = [];
  const failedHandshakes: string[] = [];
  const handlers: TestHandlers = {
    onRequest: (req, res) => answer(req, res, served),
    onRejection: (res) => refuseRejected(res),
    onUpgrade: (_req, _res, socket) => socket.destroy(),
    wantsUpgrade: () => false,
    ...options.handlers,
  };
  const listener = createListener({
    handlers: {
      onArrival(arrival) {
        const { res } = arrival;
        if (arrival.kind === 'upgrade') handlers.onUpgrade(res.req, res, arrival.socket);
        else if (arrival.kind === 'rejection') handlers.onRejection(res);
        else handlers.onRequest(res.req, res);
      },
      wantsUpgrade: handlers.wantsUpgrade,
      reportBug: (bug) => {
        throw bug;
      },
      onFailedHandshake: (reason) => failedHandshakes.push(reason),
    },
    ...(options.certificate && { certificate: options.certificate }),
    bounds: {
      ...defaultBounds,
      connectionsCheckingIntervalMs: 20,
      // The timeout is long, so that a slow client on a busy machine does not count as disconnected. Tests of `lingerTimeoutMs` set a
      // shorter timeout.
      lingerTimeoutMs: 20_000,
      drainIdleGraceMs: 50,
      ...options.bounds,
    },
  });
  const { port } = await listener.listen({ host: options.host ?? '127.0.0.1', port: 0 });
  onTestFinished(() => listener.drain({ deadlineMs: 0 }));
  return { listener, port, served, failedHandshakes };
}

async function refuseRejected(res: ClientResponse): Promise<void> {
  await sleep(1);
  const { rejection } = res;
  if (rejection !== undefined) refuse(res, rejection.code, rejection.message);
}

/** Responds to a request as the fixture's default handler does. @param served gets the request's method and URI */
export async function answer(
  req: IncomingMessage,
  res: ClientResponse,
  served: string[] = [],
): Promise<void> {
  const screened = screenRequest(req, {
    bounds: defaultBounds,
    isHandshake: false,
    isSecure: isOverTls(req),
  });
  if (screened.kind === 'accepted') served.push(`${req.method} ${req.url}`);
  await sleep(1);
  if (res.destroyed) return;
  const refused = res.rejection ?? (screened.kind === 'refused' ? screened : undefined);
  if (refused !== undefined) {
    refuse(res, refused.code, refused.message);
    return;
  }
  res.onRejected = () => void refuseRejected(res);
  if (req.headers.expect !== undefined) res.writeContinue();
  let bodyBytes = 0;
  req.on('data', (chunk: Buffer) => {
    bodyBytes += chunk.length;
  });
  const finish = () => {
    const body = JSON.stringify({ method: req.method, target: req.url, bodyBytes });
    res.writeHead(200, ['Content-Type', 'application/json', 'Content-Length', String(body.length)]);
    res.end(body);
  };
  if (req.readableEnded) finish();
  else req.on('end', finish);
}

/** Refuses a request whose body has not been read, with the same response as the request path. */
export function refuse(res: ClientResponse, code: ErrorCode, message?: string): void {
  res.shouldKeepAlive = false;
  res.answer(refusal(code, message));
}

function refusal(code: ErrorCode, message?: string) {
  const body = errorBody(code, message);
  const length = String(Buffer.byteLength(body));
  const fields = ['X-RateLimit-Limit', '30', 'Content-Type', 'application/json', 'Content-Length', length];
  return { status: errors[code].status, fields, body };
}

/** Asserts an error response: an Error body with the response's status, and `Connection: close`. */
export function expectRejection(response: RawResponse | undefined, code: ErrorCode): void {
  expect(response, 'a response').toBeDefined();
  if (response === undefined) return;
  const { status } = errors[code];
  expect(response.status, response.body).toBe(status);
  expect(JSON.parse(response.body)).toEqual({ code, message: expect.any(String), status });
  expect(response.headers.get('content-type')).toBe('application/json');
  expect(response.headers.get('connection')).toBe('close');
  expect(response.headers.get('x-ratelimit-limit')).toBe('30');
  expect(Date.parse(response.headers.get('date') ?? '')).not.toBeNaN();
}
