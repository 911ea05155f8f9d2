import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, it, onTestFinished } from 'vitest';
import { WebSocket } from 'ws';
import { askAdmin, makeToken } from '../support/admin-client.ts';
import { startGatewayHere } from '../support/gateway-here.ts';
import { makeCustomKey, makeKey, type RunningGateway, testConfig } from '../support/gateway-process.ts';
import { exchangeRaw } from '../support/raw-http.ts';
import {
  fieldLines,
  okResponse,
  type RecordingBackend,
  startRecordingBackend,
} from '../support/recording-backend.ts';
import type { Tuning } from '../support/tuning.ts';
import { askForWebSocket, switchingProtocols, webSocketApi } from '../support/web-socket.ts';

const key = makeKey();
const limited = makeCustomKey(1_000_000, 1);
const { token, entry } = makeToken();

let folder: string;
let backend: RecordingBackend;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tollgate-api-'));
  await writeFile(join(folder, 'openapi.json'), JSON.stringify(webSocketApi));
  backend = await startRecordingBackend();
});
beforeEach(() => {
  backend.requests.length = 0;
});
afterAll(async () => {
  await backend.close();
  await rm(folder, { recursive: true });
});

async function start(bounds: Tuning['bounds'] = {}): Promise<RunningGateway> {
  const gateway = await startGatewayHere(
    testConfig({
      upstream: { url: backend.url, health: '/healthz' },
      keys: [key.entry, limited.entry],
      admin: { host: '127.0.0.1', port: 0, tokens: [entry] },
      api: join(folder, 'openapi.json'),
    }),
    { tuning: { bounds } },
  );
  onTestFinished(async () => void (await gateway.stop('SIGKILL')));
  return gateway;
}

it('a drain does not wait for open WebSockets: they are closed, and the process exits with 0', async () => {
  backend.react = (_request, socket) => void socket.write(switchingProtocols);
  // The deadline of the drain exceeds the timeout of the test, so the test fails if the drain waits for the WebSocket.
  const gateway = await start({ drainGraceMs: 50, drainDeadlineMs: 600_000 });
  const client = await askForWebSocket(gateway.port, key.secret);
  expect((await client.response()).status).toBe(101);
  const ended = once(client.socket, 'end');
  expect(await gateway.stop()).toBe(0);
  await ended;
});

it('a secret in a subprotocol opens a WebSocket, and reaches no backend, log or response', async () => {
  const select = (...fields: string[]) => {
    backend.react = ({ head }, socket) => {
      const accept = createHash('sha1')
        .update(`${/sec-websocket-key: (.*)/i.exec(head)?.[1]}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`)
        .digest('base64');
      const lines = [`Sec-WebSocket-Accept: ${accept}`, ...fields].map((field) => `${field}\r\n`);
      socket.write(`${switchingProtocols.slice(0, -2)}${lines.join('')}\r\n`);
    };
  };
  const gateway = await start();
  // This client behaves like a browser: it fails when it has offered subprotocols and the server selects no subprotocol.
  const open = async (...protocols: string[]) => {
    const client = new WebSocket(`ws://127.0.0.1:${gateway.port}/v1/feed`, protocols);
    const [[response]] = await Promise.all([once(client, 'upgrade'), once(client, 'open')]);
    client.terminate();
    return [client.protocol, response.rawHeaders.join()];
  };
  select();
  const bearer = `tollgate.bearer.${key.secret}`;
  const [selected, head] = await open('tollgate', bearer, 'chat', 'superchat');
  expect(selected).toBe('tollgate');
  select('Sec-WebSocket-Protocol: superchat');
  expect((await open('chat', bearer, 'tollgate', 'superchat'))[0]).toBe('superchat');
  expect(
    backend.requests.map((request) => fieldLines(request).find((line) => /protocol/i.test(line))),
  ).toEqual(['Sec-WebSocket-Protocol: chat, superchat', 'Sec-WebSocket-Protocol: chat, superchat']);
  expect(await statusOfHandshake(gateway, '/v1/feed', 'unknown')).toBe(401);
  expect(await statusOfHandshake(gateway, '/v1/feed', key.secret, key.secret)).toBe(400);
  // An operation without WebSockets does not accept a secret in `Sec-WebSocket-Protocol`, and the backend does not receive the secret.
  expect(await statusOfHandshake(gateway, '/v1/news', key.secret)).toBe(401);
  backend.react = (_request, socket) => void socket.write(okResponse('{}'));
  expect(await statusOfHandshake(gateway, '/v1/news', key.secret, key.secret)).toBe(200);
  await gateway.stop();
  const logged = gateway.lines.filter(({ keyId }) => keyId === key.entry.id);
  expect(logged.map(({ status }) => status)).toEqual([101, 101, 200]);
  expect(JSON.stringify([backend.requests, head]) + gateway.output()).not.toContain(key.secret.slice(0, 12));
});

/** @param bearer a secret in `Authorization`, if any */
async function statusOfHandshake({ port }: RunningGateway, path: string, secret: string, bearer?: string) {
  const fields = ['Host: a', 'Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13'];
  if (bearer !== undefined) fields.push(`Authorization: Bearer ${bearer}`);
  const offer = `Sec-WebSocket-Protocol: tollgate, tollgate.bearer.${secret}`;
  const [response] = await exchangeRaw(port, [`GET ${path} HTTP/1.1`, ...fields, offer, '', ''].join('\r\n'));
  expect(response?.body).not.toContain(secret);
  return response?.status;
}

it('a handshake above a limit gets 429, and does not reach the backend', async () => {
  backend.react = (_request, socket) => void socket.write(switchingProtocols);
  const { port } = await start();
  const first = await askForWebSocket(port, limited.secret);
  expect((await first.response()).status).toBe(101);
  const second = await askForWebSocket(port, limited.secret);
  expect((await second.response()).status).toBe(429);
  expect(backend.requests).toHaveLength(1);
  first.destroy();
});

it('the access line of a handshake is written while the WebSocket is open', async () => {
  backend.react = (_request, socket) => void socket.write(switchingProtocols);
  const gateway = await start();
  const client = await askForWebSocket(gateway.port, key.secret);
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
  const client = await askForWebSocket((await start()).port, key.secret);
  const response = await client.response();
  expect(response.status).toBe(403);
  expect(response.body).toHaveLength(body.length);
});

it('a client that reads nothing of a long response instead of 101 is disconnected', {
  tags: 'full',
}, async () => {
  backend.react = (_request, socket) => void socket.write(okResponse('a'.repeat(64 << 20), 403));
  const client = await askForWebSocket((await start({ writeTimeoutMs: 300 })).port, key.secret);
  client.socket.pause();
  await backend.received(1);
  await expect.poll(() => backend.openConnections()).toBeLessThanOrEqual(1);
  client.destroy();
});
