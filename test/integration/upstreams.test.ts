import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { freePort } from '../support/free-port.ts';
import { startGatewayHere } from '../support/gateway-here.ts';
import { makeKey, type RunningGateway, startGateway, testConfig } from '../support/gateway-process.ts';
import { expectGatewayResponse } from '../support/gateway-response.ts';
import { openRawClient } from '../support/raw-http.ts';
import {
  fieldLines,
  okResponse,
  type RecordingBackend,
  startRecordingBackend,
} from '../support/recording-backend.ts';
import { until } from '../support/until.ts';

const key = makeKey({ plan: 'business' });
/** The timeouts are long, so no target counts as silent and no connection counts as idle on a slow machine. */
const bounds = { healthTimeoutMs: 20_000, upstreamIdleTimeoutMs: 60_000 };
let folder: string;
let store: RecordingBackend;
let orders: RecordingBackend;
let gateway: RunningGateway;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tollgate-api-'));
  await writeApi('orders');
  store = await startRecordingBackend({
    react: (_request, socket) => socket.write(okResponse('{"of":"store"}')),
  });
  orders = await startRecordingBackend({
    // The port must be outside of the range for outgoing connections, because a test closes the port and later listens on it again.
    port: await freePort(),
    react: (_request, socket) => socket.write(okResponse('{"of":"orders"}')),
  });
  gateway = await startGatewayHere(both(), { tuning: { bounds } });
});

afterEach(async () => {
  await gateway.stop('SIGKILL');
  await store.close();
  await orders.close();
  await rm(folder, { recursive: true });
});

/** Writes an API document in which this upstream serves the orders and the feed. */
async function writeApi(upstream: string): Promise<void> {
  const operation = (operationId: string, fields = {}) => ({
    operationId,
    ...fields,
    responses: { 200: { description: 'It went well.' } },
  });
  const api = {
    openapi: '3.1.0',
    info: { title: 'Test', version: '1.0.0' },
    paths: {
      '/pets': { get: operation('listPets') },
      '/orders': { get: operation('listOrders', { 'x-upstream': upstream }) },
      '/feed': { get: operation('feed', { 'x-upstream': upstream, 'x-upgrade': 'websocket' }) },
    },
  };
  await writeFile(join(folder, 'draft'), JSON.stringify(api));
  await rename(join(folder, 'draft'), join(folder, 'openapi.json'));
}

function both(ofOrders: Record<string, unknown> = {}) {
  return configOf({ store: { url: store.url }, orders: { url: orders.url, ...ofOrders } });
}

function configOf(upstreams: Record<string, unknown>) {
  return testConfig({ upstreams, keys: [key.entry], api: join(folder, 'openapi.json') });
}

const ask = (path: string) =>
  fetch(`${gateway.baseUrl}${path}`, { headers: { Authorization: `Bearer ${key.secret}` } });

async function readyz() {
  const response = await fetch(`${gateway.adminUrl}/readyz`);
  const body = (await response.json()) as {
    status: string;
    config: { version: string; lastError?: string };
    upstreams: object;
  };
  return { httpStatus: response.status, ...body };
}

async function reload(config: Record<string, unknown>): Promise<void> {
  const { version } = (await readyz()).config;
  await gateway.editConfig(config);
  await until('the edit is in force as a whole', async () => {
    const { config: now } = await readyz();
    return now.version !== version && now.lastError === undefined;
  });
}

const hostOf = (backend: RecordingBackend) =>
  backend.requests.flatMap((request) =>
    fieldLines(request).filter((line) => /^(x-forwarded-)?host:/i.test(line)),
  );

it('an operation goes to its x-upstream, or to the first upstream without one', async () => {
  expect(await expectGatewayResponse(await ask('/orders'), 200)).toEqual({ of: 'orders' });
  expect(await expectGatewayResponse(await ask('/pets'), 200)).toEqual({ of: 'store' });
  expect(orders.requests.map(({ target }) => target)).toEqual(['/v1/orders']);
  expect(store.requests.map(({ target }) => target)).toEqual(['/v1/pets']);
});

it('a WebSocket goes to the x-upstream of its operation', async () => {
  orders.react = (_request, socket) =>
    void socket.write('HTTP/1.1 101 X\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
  await reload(both({ host: 'target' }));
  const client = await openRawClient(gateway.port);
  const credentials = `Authorization: Bearer ${key.secret}`;
  client.send(
    `GET /v1/feed HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n${credentials}\r\n\r\n`,
  );
  expect((await client.response()).status).toBe(101);
  client.destroy();
  expect(hostOf(orders)).toEqual([`Host: 127.0.0.1:${orders.port}`, 'X-Forwarded-Host: a']);
  expect(store.requests).toEqual([]);
});

it('a target receives the client’s Host, or the host that its upstream sets', async () => {
  const named = `127.0.0.1:${gateway.port}`;
  await ask('/orders');
  expect(hostOf(orders)).toEqual([`Host: ${named}`, `X-Forwarded-Host: ${named}`]);
  orders.requests.length = 0;
  await reload(both({ host: 'target' }));
  await ask('/orders');
  expect(hostOf(orders)).toEqual([`Host: 127.0.0.1:${orders.port}`, `X-Forwarded-Host: ${named}`]);
});

it('a timeout below a second applies only to its upstream', async () => {
  await reload(both({ timeouts: { headers: '300ms' } }));
  orders.react = () => {};
  let respond = () => {};
  store.react = (_request, socket) => {
    respond = () => socket.write(okResponse('{}'));
  };
  const ofStore = ask('/pets');
  await store.received(1);
  const startedMs = performance.now();
  expect(await expectGatewayResponse(await ask('/orders'), 504)).toMatchObject({ code: 'upstream_timeout' });
  // The default timeout is 30 s.
  expect(performance.now() - startedMs).toBeLessThan(20_000);
  respond();
  await expectGatewayResponse(await ofStore, 200);
});

it('an upstream that is down affects no other upstream, and /readyz names it', async () => {
  expect(await readyz()).toMatchObject({
    httpStatus: 200,
    status: 'ok',
    upstreams: {
      store: { url: store.url, targets: [{ address: `127.0.0.1:${store.port}`, healthy: true }] },
      orders: { url: orders.url, targets: [{ address: `127.0.0.1:${orders.port}`, healthy: true }] },
    },
  });
  await orders.close();
  for (let i = 0; i < 20; i++) {
    await expectGatewayResponse(await ask('/orders'), 503);
    await expectGatewayResponse(await ask('/pets'), 200);
  }
  expect(await readyz()).toMatchObject({
    httpStatus: 200,
    status: 'degraded',
    reasons: ['the upstream `orders` has no healthy target'],
    upstreams: { store: { targets: [{ healthy: true }] }, orders: { targets: [{ healthy: false }] } },
  });
  await gateway.line(({ msg, upstream }) => upstream === 'orders' && /^target is down/.test(String(msg)));
  orders = await startRecordingBackend({ port: orders.port });
  await until('it is healthy again', async () => (await ask('/orders')).status === 200);
});

it('a reload that changes one upstream lets its requests in flight finish, and other upstreams keep their connections', async () => {
  await ask('/pets');
  let finish = () => {};
  orders.react = (_request, socket) => {
    finish = () => socket.write(okResponse('{"of":"the old"}'));
  };
  const inFlight = ask('/orders');
  await orders.received(1);
  const other = await startRecordingBackend({
    react: (_request, socket) => socket.write(okResponse('{"of":"the new"}')),
  });
  await reload(configOf({ store: { url: store.url }, orders: { url: other.url } }));
  expect(await expectGatewayResponse(await ask('/orders'), 200)).toEqual({ of: 'the new' });
  finish();
  expect(await expectGatewayResponse(await inFlight, 200)).toEqual({ of: 'the old' });
  await ask('/pets');
  expect(store.requests.map(({ connection }) => connection)).toEqual([
    store.requests[0]?.connection,
    store.requests[0]?.connection,
  ]);
  await other.close();
});

it('a reload that replaces an upstream lets its requests in flight finish, and ends no other request', async () => {
  let finish = () => {};
  orders.react = (_request, socket) => {
    finish = () => socket.write(okResponse('{"of":"the removed"}'));
  };
  const inFlight = ask('/orders');
  await orders.received(1);
  // The test first writes the API document. The last valid configuration remains active until the main file matches the document.
  await writeApi('added');
  await reload(configOf({ store: { url: store.url }, added: { url: store.url } }));
  expect(await expectGatewayResponse(await ask('/orders'), 200)).toEqual({ of: 'store' });
  finish();
  expect(await expectGatewayResponse(await inFlight, 200)).toEqual({ of: 'the removed' });
  expect(Object.keys((await readyz()).upstreams)).toEqual(['store', 'added']);
  await until('its connections are closed', () => orders.openConnections() === 0);
});

it('an edit with a host name that cannot be resolved keeps the old targets, and /readyz and the log report it', async () => {
  await gateway.stop('SIGKILL');
  const hostsFile = join(folder, 'hosts');
  await writeFile(hostsFile, '127.0.0.1 store.test\n');
  const named = (host: string, { port }: RecordingBackend) =>
    testConfig({ upstream: { url: `http://${host}:${port}` }, keys: [key.entry] });
  gateway = await startGateway(named('store.test', store), {
    tuning: { hostsFile, bounds: { ...bounds, resolveIntervalMs: 50 } },
  });
  await expectGatewayResponse(await ask('/pets'), 200);
  await reload(named('order.test', orders));
  await until('/readyz says so', async () => (await readyz()).status === 'degraded');
  expect(await readyz()).toMatchObject({
    httpStatus: 200,
    reasons: [
      `the upstream stays as it was: the host of http://order.test:${orders.port} cannot be looked up`,
    ],
  });
  await gateway.line(({ msg, reason }) => {
    return /stays as it was/.test(String(msg)) && reason === 'getaddrinfo ENOTFOUND order.test';
  });
  expect(await expectGatewayResponse(await ask('/pets'), 200)).toEqual({ of: 'store' });
  await writeFile(hostsFile, '127.0.0.1 order.test\n');
  await until('the edit is in force', async () => {
    const response = await ask('/pets');
    return JSON.stringify(await expectGatewayResponse(response, 200)) === '{"of":"orders"}';
  });
  await until('/readyz is content', async () => (await readyz()).status === 'ok');
});
