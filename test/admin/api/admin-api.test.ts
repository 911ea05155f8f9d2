import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import * as z from 'zod';
import { type AdminResponse, jsonResponse } from '../../../gateway/admin/admin-response.ts';
import { createAdminApi } from '../../../gateway/admin/api/admin-api.ts';
import { defineRoute } from '../../../gateway/admin/api/route.ts';
import type { AskThread } from '../../../gateway/admin/api/thread-routes.ts';
import { tokenNameOf } from '../../../gateway/admin/api/tokens/authenticate.ts';
import { createAdminListener } from '../../../gateway/admin/listener/admin-listener.ts';
import { createAdminPaths } from '../../../gateway/admin/listener/admin-paths.ts';
import { createAdminPages } from '../../../gateway/admin/pages/admin-pages.ts';
import {
  cursor,
  noQuery,
  oneOf,
  queryOf,
  wholeNumber,
} from '../../../gateway/shared/schema/query-parameters.ts';
import type { Bounds } from '../../../gateway/shared/timeouts-and-sizes.ts';
import { askAdmin, makeToken } from '../../support/admin-client.ts';
import { openRawClient } from '../../support/raw-http.ts';
import { requestDuringStop } from '../../support/request-during-stop.ts';
import { tunedBounds } from '../../support/tuned-bounds.ts';
import { until } from '../../support/until.ts';

const reader = makeToken('read', 'ada');
const writer = makeToken('write', 'bob');
const logged: unknown[] = [];
const routes = [
  defineRoute({
    method: 'GET',
    path: '/things/{id}/parts/{part}',
    needs: 'read',
    query: queryOf({
      limit: wholeNumber(1, 10).default(5),
      sort: oneOf(['name', 'age']).optional(),
      after: cursor(/^\d+$/).optional(),
    }),
    respond: ({ params, query, token }) => jsonResponse({ params, query, by: token.name }),
  }),
  defineRoute({
    method: 'POST',
    path: '/things',
    needs: 'write',
    query: noQuery,
    respond: ({ token }) => jsonResponse({ by: token.name }),
  }),
  defineRoute({
    method: 'POST',
    path: '/simulate',
    needs: 'read',
    query: noQuery,
    respond: () => jsonResponse({ simulated: true }),
  }),
  defineRoute({
    method: 'GET',
    path: '/throws',
    needs: 'read',
    query: noQuery,
    respond: () => {
      throw new Error('the cause');
    },
  }),
  defineRoute({
    method: 'GET',
    path: '/hangs',
    needs: 'read',
    query: noQuery,
    respond: () => new Promise(() => {}),
  }),
];

/** The requests to the route that waits for other processes. Each function ends a request. */
const waiting: (() => void)[] = [];
/** The requests to the reading thread, in the order of their arrival. Each request runs until the test calls `end`. */
const large: { readonly by: string; end(response?: AdminResponse): void }[] = [];
routes.push(
  defineRoute({
    method: 'POST',
    path: '/waiting',
    needs: 'read',
    waits: true,
    respond: () =>
      new Promise((resolve) => {
        waiting.push(() => resolve(jsonResponse({})));
      }),
  }),
  defineRoute({
    method: 'GET',
    path: '/counts',
    needs: 'read',
    readsCounts: true,
    respond: () => jsonResponse({ flushes }),
  }),
  defineRoute({
    method: 'POST',
    path: '/large',
    needs: 'read',
    inThread: true,
    query: noQuery,
    body: z.looseObject({}),
    bodyBytesMax: 1_000_000,
    respond: () => {
      throw new Error('it runs in the thread');
    },
  }),
);
/** The number of requests for a flush of the fleet. */
let flushes = 0;
const requestFlush = () => {
  flushes += 1;
};
const askThread: AskThread = ({ token }) =>
  new Promise((resolve) => {
    large.push({ by: token.name, end: (response = jsonResponse({})) => resolve(response) });
  });

const tokens = [reader.entry, writer.entry];
const admin = () => ({ host: '', port: 0, tokens, hosts: [] });
const log = { warn: () => {}, error: (...entry: unknown[]) => void logged.push(entry) };

async function start(own: Partial<Bounds> = {}) {
  const bounds = tunedBounds(own);
  const listener = createAdminListener({
    respond: createAdminPaths({
      currentState: () => {
        throw new Error('the state');
      },
      metrics: { contentType: 'text/plain', read: () => Promise.resolve(Buffer.alloc(0)) },
      admin,
      api: createAdminApi({
        routes,
        askThread,
        requestFlush,
        outage: () => ({ countsFromAt: '2026-11-29T00:00:00.000Z' }),
        admin,
        log,
        nowMs: Date.now,
        bounds,
      }),
      pages: createAdminPages(),
    }),
    tokenOf: (authorization) => tokenNameOf(authorization, tokens),
    reportBug: (bug, requestId) => void logged.push([{ err: bug, requestId }]),
    bounds,
    onFailedHandshake: () => {},
  });
  await new Promise<void>((resolve) => listener.server.listen(0, '127.0.0.1', resolve));
  return { listener, port: (listener.server.address() as AddressInfo).port };
}

/** An admin API with short timeouts. */
async function startHasty(own: Partial<Bounds>): Promise<number> {
  const { listener, port } = await start(own);
  onTestFinished(() => listener.close());
  return port;
}

let shared: Awaited<ReturnType<typeof start>>;
let port: number;
beforeAll(async () => {
  shared = await start();
  ({ port } = shared);
});
beforeEach(() => {
  logged.length = 0;
});
afterAll(() => shared.listener.close());

const ask = (path: string, options: Parameters<typeof askAdmin>[2] = { token: reader.token }) =>
  askAdmin(port, `/api/v1${path}`, options);

describe('a route', () => {
  it('receives the decoded path segments, the query and the name of the token', async () => {
    const { status, body } = await ask('/things/a%2Fb%20%C3%A9/parts/1?limit=10&sort=age&after=7');
    expect([status, body]).toEqual([
      200,
      { params: { id: 'a/b é', part: '1' }, query: { limit: 10, sort: 'age', after: '7' }, by: 'ada' },
    ]);
    expect((await ask('/things/x/parts/1')).body.query).toEqual({ limit: 5 });
  });

  it.each([
    ['limit=0', 'The query parameter `limit` must be a whole number from 1 to 10.'],
    ['limit=11', 'The query parameter `limit` must be a whole number from 1 to 10.'],
    ['limit=', 'The query parameter `limit` must be a whole number from 1 to 10.'],
    ['limit=1e1', 'The query parameter `limit` must be a whole number from 1 to 10.'],
    ['sort=size', 'The query parameter `sort` must be one of name, age.'],
    ['after=x', 'The query parameter `after` must be the `next` of an earlier response.'],
    ['limit=1&limit=2', 'The query parameter `limit` appears twice.'],
    ['Limit=1', 'There is no query parameter `Limit` here; known are: limit, sort, after.'],
    ['__proto__=1', 'There is no query parameter `__proto__` here; known are: limit, sort, after.'],
    ['%3Cb%3E=1', 'There is an unknown query parameter; known are: limit, sort, after.'],
  ])('with the query %s gives 400 with the reason', async (search, message) => {
    const { status, body } = await ask(`/things/x/parts/1?${search}`);
    expect([status, body.message]).toEqual([400, message]);
  });

  it('gives 400 for a segment that is no UTF-8, and 404 for an empty segment', async () => {
    expect((await ask('/things/%E9/parts/1')).status).toBe(400);
    expect((await ask('/things/%/parts/1')).status).toBe(400);
    expect((await ask('/things//parts/1')).status).toBe(404);
  });

  it('that makes changes is open only to a write token, and a POST that only reads to any token', async () => {
    const post = (path: string, { token }: { token: string }) => ask(path, { token, method: 'POST' });
    expect((await post('/things', writer)).body).toEqual({ by: 'bob' });
    expect((await post('/things', reader)).status).toBe(403);
    expect((await post('/simulate', reader)).body).toEqual({ simulated: true });
  });

  it('that reads counts of all processes requests a flush of the fleet, and no other route does', async () => {
    const before = (await ask('/counts')).body.flushes;
    await ask('/things/x/parts/1');
    expect((await ask('/counts')).body.flushes).toBe(before + 1);
  });

  it('that waits for other processes does not delay the other requests of its token', async () => {
    const slow = ask('/waiting', { token: reader.token, method: 'POST' });
    await until('the route waits', () => waiting.length === 1);
    expect((await ask('/things/x/parts/1')).status).toBe(200);
    waiting[0]?.();
    expect((await slow).status).toBe(200);
  });

  it.each([
    ['GET', '/things', 405, 'POST'],
    ['HEAD', '/things', 405, 'POST'],
    ['DELETE', '/throws', 405, 'GET, HEAD'],
    ['DELETE', '/nothing', 404, undefined],
  ])('does not exist for %s %s: %i', async (method, path, status, allow) => {
    const reply = await ask(path, { token: writer.token, method });
    expect([reply.status, reply.headers.allow]).toEqual([status, allow]);
  });

  it('that throws gives 500 without the cause, which is logged with the request id', async () => {
    const { status, text, headers } = await ask('/throws');
    expect([status, text.includes('the cause')]).toEqual([500, false]);
    const err = expect.objectContaining({ message: 'the cause' });
    expect(logged).toEqual([[{ err, requestId: headers['x-request-id'] }, expect.any(String)]]);
    expect((await ask('/things/x/parts/1')).status).toBe(200);
  });
});

describe('the turns of the reading thread', () => {
  const askLarge = (token = reader.token, options: Partial<Parameters<typeof askAdmin>[2]> = {}) =>
    ask('/large', { method: 'POST', token, json: {}, ...options });

  it('serve one request of a token at a time, and neither other tokens nor other routes wait for it', async () => {
    large.length = 0;
    const asked = Array.from({ length: 4 }, () => askLarge());
    await until('the first is looked after', () => large.length === 1);
    // The responses to the later small requests show that the four earlier large requests have arrived.
    for (let request = 0; request < 4; request++) expect((await ask('/things/x/parts/1')).status).toBe(200);
    asked.push(askLarge(writer.token));
    await until('that of the other token is looked after', () => large.length === 2);
    expect(large.map(({ by }) => by)).toEqual(['ada', 'bob']);
    for (let ended = 0; ended < asked.length; ended++) {
      await until('it is looked after', () => large.length > ended);
      large[ended]?.end();
    }
    expect((await Promise.all(asked)).map(({ status }) => status)).toEqual(asked.map(() => 200));
  });

  it('last, for a large response, until the client has read it', async () => {
    large.length = 0;
    const slow = await openRawClient(port);
    slow.send(
      `POST /api/v1/large HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${reader.token}\r\nContent-Length: 0\r\n\r\n`,
    );
    slow.socket.pause();
    await until('it is looked after', () => large.length === 1);
    large[0]?.end({ status: 200, body: Buffer.alloc(32 * 1_048_576, ' ') });
    const next = askLarge();
    for (let request = 0; request < 4; request++) expect((await ask('/things/x/parts/1')).status).toBe(200);
    expect(large).toHaveLength(1);
    slow.destroy();
    await until('the next is looked after', () => large.length === 2);
    large[1]?.end();
    expect((await next).status).toBe(200);
  });

  it('also serve a request whose long body had to wait, but no request whose client has disconnected', async () => {
    large.length = 0;
    const first = askLarge();
    await until('it is looked after', () => large.length === 1);
    const waiting = await openRawClient(port);
    const head = `POST /api/v1/large HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${reader.token}\r\n`;
    waiting.send(`${head}Content-Length: 900000\r\n\r\n`);
    waiting.socket.write('x'.repeat(900_000));
    const gone = await openRawClient(port);
    gone.send(`${head}Content-Length: 0\r\n\r\n`);
    for (let request = 0; request < 4; request++) expect((await ask('/things/x/parts/1')).status).toBe(200);
    gone.destroy();
    const last = askLarge();
    large[0]?.end();
    for (let ended = 1; ended < 3; ended++) {
      await until('the next is looked after', () => large.length === ended + 1);
      large[ended]?.end();
    }
    expect([(await first).status, (await waiting.response()).status, (await last).status]).toEqual([
      200, 200, 200,
    ]);
    expect(large).toHaveLength(3);
  });
});

it('an error outside the API gives 500 too, and is logged', async () => {
  const { status, text } = await askAdmin(port, '/readyz');
  expect([status, text.includes('the state')]).toEqual([500, false]);
  expect(logged).toHaveLength(1);
});

it('an incomplete request gets 408, with the body and fields of every error', async () => {
  // The timeout begins when the connection opens, and the server must read the client's data before the timeout expires.
  const hasty = await startHasty({ headersTimeoutMs: 2_000, connectionsCheckingIntervalMs: 50 });
  const client = await openRawClient(hasty);
  client.send('GET /healthz HTTP/1.1\r\nHost: loc');
  const { status, headers, body } = await client.response();
  expect([status, JSON.parse(body).code]).toEqual([408, 'request_timeout']);
  expect(headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/);
  await client.closed;
});

it('a response that takes longer than the write timeout is sent', async () => {
  const hasty = await startHasty({ adminResponseTimeoutMs: 500, writeTimeoutMs: 100 });
  expect((await askAdmin(hasty, '/api/v1/hangs', { token: reader.token })).status).toBe(503);
});

it('a request that arrives while the process is stopped for longer than the timeouts is served', async () => {
  const hasty = await startHasty({ headersTimeoutMs: 100, connectionsCheckingIntervalMs: 20 });
  const request = 'GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n';
  expect(await requestDuringStop(hasty, request, 300)).toMatch(/^HTTP\/1.1 200 /);
});

it('a refusal does not wait for the body, and ends the connection', async () => {
  const client = await openRawClient(port);
  const head = `POST /api/v1/simulate HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${writer.token}\r\n`;
  client.send(`${head}Content-Length: 1000000\r\n\r\n{`);
  const { status, headers } = await client.response();
  expect([status, headers.get('connection')]).toEqual([200, 'close']);
  await client.closed;
});

it('a hanging route gives 503 after its timeout and counts as a request of its token until it ends, and other tokens are unaffected', async () => {
  const adminRequestsMax = 4;
  const hasty = await startHasty({ adminResponseTimeoutMs: 300, adminRequestsMax });
  const askHasty = (path: string, { token } = reader) => askAdmin(hasty, `/api/v1${path}`, { token });
  const held = await Promise.all(Array.from({ length: adminRequestsMax }, () => askHasty('/hangs')));
  expect(held.map(({ status }) => status)).toEqual(held.map(() => 503));
  expect((await askHasty('/things/x/parts/1')).status).toBe(503);
  expect((await askHasty('/things/x/parts/1', writer)).status).toBe(200);
  expect((await askAdmin(hasty, '/metrics')).status).toBe(200);
});
