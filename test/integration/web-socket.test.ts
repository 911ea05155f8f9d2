import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, it, onTestFinished } from 'vitest';
import { askAdmin, makeToken } from '../support/admin-client.ts';
import { type GatewayProcess, makeKey, startGateway, testConfig } from '../support/gateway-process.ts';
import { okResponse, type RecordingBackend, startRecordingBackend } from '../support/recording-backend.ts';
import type { Tuning } from '../support/tuning.ts';
import { askForWebSocket, switchingProtocols, webSocketApi } from '../support/web-socket.ts';

const key = makeKey();
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

it('a drain does not wait for open WebSockets: they are closed, and the process exits with 0', async () => {
  backend.react = (_request, socket) => void socket.write(switchingProtocols);
  // With a deadline longer than the test may take.
  const gateway = await start({ drainGraceMs: 50, drainDeadlineMs: 600_000 });
  const client = await askForWebSocket(gateway.port, key.secret);
  expect((await client.response()).status).toBe(101);
  const ended = once(client.socket, 'end');
  expect(await gateway.stop()).toBe(0);
  await ended;
});

it('what a handshake took is told while the WebSocket is open', async () => {
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

it('a client that reads nothing of that response is disconnected', async () => {
  backend.react = (_request, socket) => void socket.write(okResponse('a'.repeat(64 << 20), 403));
  const client = await askForWebSocket((await start({ writeTimeoutMs: 300 })).port, key.secret);
  client.socket.pause();
  await backend.received(1);
  await expect.poll(() => backend.openConnections()).toBeLessThanOrEqual(1);
  client.destroy();
});
