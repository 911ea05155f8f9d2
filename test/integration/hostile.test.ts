import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { originOf } from '../support/fleet.ts';
import { freshWindows } from '../support/fresh-windows.ts';
import { startGatewayHere } from '../support/gateway-here.ts';
import { makeCustomKey, type RunningGateway, testConfig } from '../support/gateway-process.ts';
import { openRawClient, type RawResponse } from '../support/raw-http.ts';
import {
  fieldLines,
  okResponse,
  type RecordingBackend,
  startRecordingBackend,
} from '../support/recording-backend.ts';

const key = makeCustomKey(1_000_000, 1_000_000);
const tight = makeCustomKey(2, 1_000);
const bearer = `Authorization: Bearer ${key.secret}`;
const webSocket = [
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Key: dGVzdA==',
];
const accepts = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n';
const ok = okResponse('[]');

let folder: string;
let backend: RecordingBackend;
let gateway: RunningGateway;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tollgate-api-'));
  const described = { responses: { 200: { description: 'It went well.' } } };
  await writeFile(
    join(folder, 'openapi.yaml'),
    stringify({
      openapi: '3.1.0',
      info: { title: 'Test', version: '1.0.0' },
      paths: {
        '/pets': {
          get: { operationId: 'listPets', ...described },
          post: { operationId: 'createPet', ...described },
        },
        '/feed': { get: { operationId: 'feed', 'x-upgrade': 'websocket', ...described } },
      },
    }),
  );
  backend = await startRecordingBackend();
  gateway = await startGatewayHere(
    testConfig({
      upstream: { url: backend.url, health: '/healthz' },
      keys: [key.entry, tight.entry],
      api: join(folder, 'openapi.yaml'),
    }),
    { tuning: { windowsMs: freshWindows(Date.now()), bounds: { lingerTimeoutMs: 10_000 } } },
  );
});
beforeEach(() => {
  backend.requests.length = 0;
  backend.react = (_request, socket) => void socket.write(ok);
});
afterAll(async () => {
  await gateway.stop();
  await backend.close();
  await rm(folder, { recursive: true });
});

/** Sends a request on a new connection. @returns the response */
async function ask(...lines: string[]): Promise<RawResponse> {
  const client = await openRawClient(gateway.port);
  client.send(`${[...lines, '', ''].join('\r\n')}`);
  try {
    return await client.response();
  } finally {
    client.destroy();
  }
}

function expectError({ status, headers, body }: RawResponse, expected: number, code: string): void {
  expect(JSON.parse(body)).toEqual({ code, message: expect.any(String), status });
  expect(status).toBe(expected);
  for (const name of ['x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset', 'x-request-id']) {
    expect(headers.get(name), name).toBeTruthy();
  }
}

it('a WebSocket is authenticated and charged like a request, and refused when the limit is spent', async () => {
  backend.react = (_request, socket) => void socket.write(accepts);
  const handshake = ['GET /v1/feed HTTP/1.1', 'Host: a', ...webSocket];
  expectError(await ask(...handshake), 401, 'missing_key');
  expect(backend.requests).toEqual([]);

  const remaining = [];
  for (let time = 0; time < 2; time += 1) {
    const switched = await ask(...handshake, `Authorization: Bearer ${tight.secret}`);
    expect(switched.status).toBe(101);
    remaining.push(switched.headers.get('x-ratelimit-remaining'));
  }
  expect(remaining).toEqual(['1', '0']);
  expectError(await ask(...handshake, `Authorization: Bearer ${tight.secret}`), 429, 'rate_limited');
  expect(backend.requests).toHaveLength(2);
});

it('any other upgrade is ignored: the request is served and charged, and no tunnel is opened', async () => {
  const request = ['GET /v1/pets HTTP/1.1', 'Host: a', bearer];
  const before = Number((await ask(...request)).headers.get('x-ratelimit-remaining'));
  for (const fields of [
    ['Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABk'],
    webSocket,
  ]) {
    const served = await ask(...request, ...fields);
    expect(served.status).toBe(200);
  }
  expect(Number((await ask(...request)).headers.get('x-ratelimit-remaining'))).toBe(before - 3);
  for (const forwarded of backend.requests) expect(forwarded.head).not.toMatch(/upgrade/i);
});

it('a forged identity, address or override never reaches the backend, in any spelling', async () => {
  const forged = 'forged-by-the-client';
  const names = [
    'X-Key-Id',
    'x_key_id',
    'X.Key.Id',
    'X-Plan',
    'X_Plan',
    'X-Request-Id',
    'X-Forwarded-For',
    'X_Forwarded_For',
    'Forwarded',
    'X-HTTP-Method-Override',
    'X-Original-URL',
    'SCRIPT_NAME',
    'X-Host',
    'X-Real-IP',
    'X_Real_IP',
    'Client-IP',
    'Proxy',
  ];
  const response = await ask(
    'GET /v1/pets HTTP/1.1',
    'Host: a',
    bearer,
    'Connection: X-Key-Id, X-Plan, X-Forwarded-For',
    ...names.map((name) => `${name}: ${forged}`),
  );
  expect(response.status).toBe(200);
  const [request] = backend.requests;
  const fields = request === undefined ? [] : fieldLines(request);
  expect(fields.join('\n')).not.toContain(forged);
  expect(fields).toContain(`X-Key-Id: ${key.entry.id}`);
  expect(fields).toContain('X-Forwarded-For: 127.0.0.1');
  expect(fields.join('\n')).not.toContain(key.secret);
});

it('a no-break space, sent as the octet A0, is part of the secret and not whitespace around it', async () => {
  expectError(await ask('GET /v1/pets HTTP/1.1', 'Host: a', `${bearer}\xa0`), 401, 'invalid_key');
  expect((await ask('GET /v1/pets HTTP/1.1', 'Host: a', `${bearer} \t`)).status).toBe(200);
});

it.each([
  '/v1/pets/../feed',
  '/v1/pets/%2e%2e/feed',
  '/v1//pets',
  '/v1/pets%2f1',
  '/v1/pets;a=b',
  '/v1/pets%00',
  '/v1/pets\\..\\feed',
  '/V1/pets',
  '/v1/PETS',
  '/v1/./pets',
])('the path %s matches no operation', async (path) => {
  const response = await ask(`GET ${path} HTTP/1.1`, 'Host: a', bearer);
  expect([400, 404]).toContain(response.status);
  expectError(response, response.status, response.status === 400 ? 'invalid_request' : 'not_found');
  expect(backend.requests).toEqual([]);
});

it.each([
  ['garbage', 'garbage\r\n\r\n'],
  ['status 099', 'HTTP/1.1 099 Low\r\nContent-Length: 0\r\n\r\n'],
  ['two lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab'],
  ['an unasked 101', accepts],
])(
  'an upstream that sends %s causes a 502 with the Error body, and the next request is served',
  async (_what, bytes) => {
    backend.react = (_request, socket) => void socket.end(bytes);
    expectError(await ask('GET /v1/pets HTTP/1.1', 'Host: a', bearer), 502, 'upstream_failed');
    backend.react = (_request, socket) => void socket.write(ok);
    expect((await ask('GET /v1/pets HTTP/1.1', 'Host: a', bearer)).status).toBe(200);
  },
);

it.each([
  ['a length', accepts.replace('\r\n\r\n', '\r\nContent-Length: 5\r\n\r\nhello')],
  ['HTTP/1.0', accepts.replace('1.1', '1.0')],
  ['another protocol', 'RTSP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello'],
])('a WebSocket handshake whose response is %s gets 502 with the Error body', async (_what, bytes) => {
  backend.react = (_request, socket) => void socket.write(bytes);
  const response = await ask('GET /v1/feed HTTP/1.1', 'Host: a', bearer, ...webSocket);
  expectError(response, 502, 'upstream_failed');
});

it('an endless body after a refusal is not read: the response arrives, and the connection is closed', async () => {
  const client = await openRawClient(gateway.port);
  client.send('POST /v1/pets HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n');
  const chunk = `10000\r\n${'x'.repeat(65_536)}\r\n`;
  let sending = true;
  const flood = () => {
    while (sending && client.socket.writable && client.socket.write(chunk));
  };
  client.socket.on('drain', flood);
  flood();
  expectError(await client.response(), 401, 'missing_key');
  await client.closed;
  sending = false;
  // The kernel buffers on both sides contain octets that the client has sent and the gateway has not read.
  expect(client.socket.bytesWritten - client.socket.writableLength).toBeLessThan(16 * 1_048_576);
  expect((await fetch(`${originOf(gateway)}/v1/pets`)).status).toBe(401);
});
