import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, it, onTestFinished } from 'vitest';
import { askAdmin, makeToken } from '../support/admin-client.ts';
import { type GatewayProcess, makeKey, startGateway, testConfig } from '../support/gateway-process.ts';
import { openRawClient, type RawClient } from '../support/raw-http.ts';
import { okResponse, type RecordingBackend, startRecordingBackend } from '../support/recording-backend.ts';
import type { Tuning } from '../support/tuning.ts';

const key = makeKey();
const { token, entry } = makeToken();
const accepts = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n';
const api = {
  openapi: '3.1.0',
  info: { title: 'Test', version: '1.0.0' },
  paths: {
    '/feed': {
      get: {
        operationId: 'feed',
        'x-upgrade': 'websocket',
        responses: { 200: { description: 'It went well.' } },
      },
    },
  },
};

let folder: string;
let backend: RecordingBackend;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tollgate-api-'));
  await writeFile(join(folder, 'openapi.json'), JSON.stringify(api));
  backend = await startRecordingBackend();
});
beforeEach(() => {
  backend.requests.length = 0;
});
afterAll(async () => {
  await backend.close();
  await rm(folder, { recursive: true });
});

async function start(bounds: Tuning['bounds'] = {}): Promise<GatewayProcess> {
  const gateway = await startGateway(
    testConfig({
      upstream: { url: backend.url, health: '/healthz' },
      keys: [key.entry],
      admin: { host: '127.0.0.1', port: 0, tokens: [entry] },
      api: join(folder, 'openapi.json'),
    }),
    { tuning: { bounds } },
  );
  onTestFinished(async () => void (await gateway.stop('SIGKILL')));
  return gateway;
}

async function askForWebSocket({ port }: GatewayProcess): Promise<RawClient> {
  const client = await openRawClient(port);
  const fields = ['Upgrade: websocket', 'Sec-WebSocket-Version: 13', 'Sec-WebSocket-Key: dGVzdA=='];
  const credentials = `Authorization: Bearer ${key.secret}`;
  client.send(
    ['GET /v1/feed HTTP/1.1', 'Host: a', 'Connection: Upgrade', ...fields, credentials, '', ''].join('\r\n'),
  );
  return client;
}

it('a drain does not wait for open WebSockets: they are closed, and the process exits with 0', async () => {
  backend.react = (_request, socket) => void socket.write(accepts);
  // With a deadline longer than the test may take.
  const gateway = await start({ drainGraceMs: 50, drainDeadlineMs: 600_000 });
  const client = await askForWebSocket(gateway);
  expect((await client.response()).status).toBe(101);
  const ended = once(client.socket, 'end');
  expect(await gateway.stop()).toBe(0);
  await ended;
});

it('what a handshake took is told while the WebSocket is open', async () => {
  backend.react = (_request, socket) => void socket.write(accepts);
  const gateway = await start();
  const client = await askForWebSocket(gateway);
  expect((await client.response()).status).toBe(101);
  const adminPort = Number(new URL(gateway.adminUrl).port);
  await expect
    .poll(async () => (await askAdmin(adminPort, '/api/v1/state', { token })).body.processes)
    .toEqual([expect.objectContaining({ p50Ms: expect.any(Number), upstreamP50Ms: expect.any(Number) })]);
  client.destroy();
});

it('a long response instead of 101 reaches a client that reads completely', async () => {
  const body = 'a'.repeat(5 << 20);
  backend.react = (_request, socket) => void socket.write(okResponse(body, 403));
  const client = await askForWebSocket(await start());
  const response = await client.response();
  expect(response.status).toBe(403);
  expect(response.body).toHaveLength(body.length);
});

it('a client that reads nothing of that response is disconnected', async () => {
  backend.react = (_request, socket) => void socket.write(okResponse('a'.repeat(64 << 20), 403));
  const client = await askForWebSocket(await start({ writeTimeoutMs: 300 }));
  client.socket.pause();
  await backend.received(1);
  await expect.poll(() => backend.openConnections()).toBeLessThanOrEqual(1);
  client.destroy();
});
