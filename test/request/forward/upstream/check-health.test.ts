import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, connect } from 'node:net';
import { createServer } from 'node:tls';
import { expect, it, onTestFinished } from 'vitest';
import { checkConnection, checkHealth } from '../../../../gateway/request/forward/upstream/check-health.ts';
import { ConnectionPool } from '../../../../gateway/request/transport/connection-pool.ts';
import { createTargetTls } from '../../../../gateway/request/transport/target-tls.ts';
import { createEventLoopBatch } from '../../../../gateway/shared/event-loop-batch.ts';
import { defaultBounds } from '../../../../gateway/shared/timeouts-and-sizes.ts';
import { createAuthority } from '../../../support/certificates.ts';
import { startRecordingBackend } from '../../../support/recording-backend.ts';

async function look(port: number, timeoutMs: number) {
  const pool = new ConnectionPool({
    host: '127.0.0.1',
    port,
    bounds: { ...defaultBounds, connectionsPerTargetMax: 1, connectTimeoutMs: 600_000 },
    atTurnEnd: createEventLoopBatch(),
  });
  onTestFinished(() => pool.destroy());
  return checkHealth({ pool, host: 'store', path: '/healthz', timeoutMs });
}

it.each([
  [204, 'healthy'],
  [302, 'down'],
  [503, 'down'],
])('a target that responds with %i is %s', async (status, health) => {
  const backend = await startRecordingBackend();
  onTestFinished(() => backend.close());
  backend.health = status;
  expect(await look(backend.port, 10_000)).toMatchObject({ health });
});

it('a target that refuses the connection is down', async () => {
  const backend = await startRecordingBackend();
  await backend.close();
  expect(await look(backend.port, 10_000)).toMatchObject({
    health: 'down',
    reason: expect.stringMatching(/ECONNREFUSED .*: nothing listens there; start the service/),
  });
});

it('a target that accepts the connection and sends no response is silent', async () => {
  const backend = await startRecordingBackend();
  onTestFinished(() => backend.close());
  backend.health = undefined;
  expect(await look(backend.port, 50)).toMatchObject({ health: 'silent' });
});

it('a target to which connecting never completes is silent, whatever the connect timeout', async () => {
  expect(await look(await startUnreachable(), 50)).toMatchObject({ health: 'silent' });
});

it('without a health path, a target that accepts a connection is healthy, whatever it answers', async () => {
  const backend = await startRecordingBackend();
  const to = { host: '127.0.0.1', port: backend.port, tls: undefined, timeoutMs: 10_000 };
  backend.health = 503;
  expect(await checkConnection(to)).toEqual({ health: 'healthy', reason: undefined });
  await backend.close();
  expect(await checkConnection(to)).toMatchObject({
    health: 'down',
    reason: expect.stringContaining('ECONNREFUSED'),
  });
});

it('without a health path, a target to which connecting never completes is silent', async () => {
  const port = await startUnreachable();
  const to = { host: '127.0.0.1', port, tls: undefined, timeoutMs: 50 };
  expect(await checkConnection(to)).toMatchObject({ health: 'silent' });
});

it('without a health path, a target is healthy over TLS when its certificate is the right one', async () => {
  const authority = createAuthority();
  const server = createServer(authority.issue({ names: ['store.test'] })).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const check = (name: string) => {
    const tls = createTargetTls({ name, ca: authority.cert });
    return checkConnection({ host: '127.0.0.1', port, tls, timeoutMs: 10_000 });
  };
  expect(await check('store.test')).toMatchObject({ health: 'healthy' });
  expect(await check('other.test')).toMatchObject({
    health: 'down',
    reason: expect.stringContaining('other'),
  });
});

/**
 * The port of a sleeping process whose listen backlog is full. The kernel drops further connections, as if the network were
 * down.
 */
async function startUnreachable(): Promise<number> {
  const script = `const server = require('net').createServer().listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => {
    require('fs').writeSync(1, String(server.address().port));
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  });`;
  const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  const [said] = await once(child.stdout, 'data');
  const port = Number(String(said));
  for (let i = 0; i < 4; i++) {
    const socket = connect(port, '127.0.0.1').on('error', () => {});
    onTestFinished(() => void socket.destroy());
  }
  return port;
}
