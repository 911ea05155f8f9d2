import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { askAdmin, makeToken } from '../support/admin-client.ts';
import { fetchOnce } from '../support/fetch-once.ts';
import { makeKey, startGateway, testConfig } from '../support/gateway-process.ts';
import { startStoreHere } from '../support/store-process.ts';

/** Accepts connections, and never replies. */
async function startSilentServer(): Promise<{ readonly host: string; stop(): void }> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket.on('error', () => {}));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the server has a port');
  return {
    host: `127.0.0.1:${address.port}`,
    stop() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

it('a gateway whose Sentinel has not named the master yet serves, counts and answers operators', async () => {
  const [sentinel, store] = await Promise.all([startSilentServer(), startStoreHere()]);
  onTestFinished(() => store.stop());
  onTestFinished(sentinel.stop);
  const key = makeKey({ id: 'acme' });
  const token = makeToken('read');
  const gateway = await startGateway(
    testConfig({
      redis: { sentinel: { name: 'main', hosts: [sentinel.host] }, prefix: 'test' },
      upstream: { url: store.url, health: '/healthz' },
      keys: { file: './keys.yaml', directory: true },
      admin: { host: '127.0.0.1', port: 0, tokens: [token.entry] },
    }),
    // The first response waits for the thread that reads, which starts slowly on a busy machine.
    { files: { 'keys.yaml': [key.entry] }, tuning: { bounds: { adminResponseTimeoutMs: 60_000 } } },
  );
  onTestFinished(() => gateway.stop().then(() => {}));
  const send = async (authorization: Readonly<Record<string, string>>) =>
    (await fetchOnce(`${gateway.baseUrl}/pets`, authorization)).status;
  const admin = Number(new URL(gateway.adminUrl).port);
  for (let round = 0; round < 3; round++) {
    expect(await send({ authorization: `Bearer ${key.secret}` })).toBe(200);
    expect(await send({ authorization: 'Bearer of-nobody' })).toBe(503);
    expect(await send({})).toBe(401);
    for (const path of ['/keys', '/keys/acme', '/traffic', '/state'])
      expect((await askAdmin(admin, `/api/v1${path}`, token)).status).toBe(200);
  }
  expect(await gateway.stop()).toBe(0);
});
