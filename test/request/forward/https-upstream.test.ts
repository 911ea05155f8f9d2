import { once } from 'node:events';
import { createServer } from 'node:https';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { afterEach, expect, it, onTestFinished } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import type { Upstream } from '../../../gateway/shared/model.ts';
import { createAuthority, type KeyPair } from '../../support/certificates.ts';
import {
  fieldLines,
  okResponse,
  type RecordingBackend,
  type RecordingBackendOptions,
  startRecordingBackend,
} from '../../support/recording-backend.ts';
import { until } from '../../support/until.ts';
import {
  type Front,
  type FrontOptions,
  get,
  sendRaw,
  startFront,
  statusOf,
  upstreamAt,
} from './start-front.ts';

const authority = createAuthority();
const certificate = authority.issue({ names: ['store.test'] });
const expired = authority.issue({ names: ['store.test'], days: -1 });
const ca = authority.cert;

const started: { close(): Promise<void> }[] = [];

afterEach(async () => {
  for (const each of started.splice(0).reverse()) await each.close();
});

async function startBackend(options: RecordingBackendOptions = {}): Promise<RecordingBackend> {
  const backend = await startRecordingBackend({ tls: certificate, ...options });
  started.push(backend);
  return backend;
}

/**
 * Starts a listener and a forwarder with the upstream https://store.test, which resolves to these addresses.
 */
async function startFor(
  port: number,
  {
    upstream,
    addresses = ['127.0.0.1'],
    bounds = {},
  }: {
    upstream?: Partial<Upstream>;
    addresses?: readonly string[];
    bounds?: NonNullable<FrontOptions['bounds']>;
  } = {},
): Promise<Front> {
  const front = await startFront({
    url: `https://store.test:${port}`,
    upstream: { tls: { ca }, ...upstream },
    resolve: async () => addresses,
    bounds,
  });
  started.push(front);
  return front;
}

const handshake = get('/', 'Upgrade: websocket').replace('Connection: close', 'Connection: Upgrade');

it('a request, a health check and a WebSocket verify the host name of the upstream', async () => {
  const backend = await startBackend();
  const names: unknown[] = [];
  backend.react = (_request, socket) => {
    names.push((socket as TLSSocket & { readonly servername: unknown }).servername);
    socket.write(okResponse('{}'));
  };
  const front = await startFor(backend.port, {
    upstream: { host: 'target', health: '/up' },
    // The pause between health checks is so long that the target gets only one health check.
    bounds: { healthPauseMs: 600_000 },
  });
  await backend.received(1);
  expect(statusOf(await sendRaw(front.port, get('/a')))).toBe(200);
  expect(statusOf(await sendRaw(front.port, handshake))).toBe(200);
  expect(names).toEqual(['store.test', 'store.test', 'store.test']);
  const hosts = backend.requests.flatMap((request) =>
    fieldLines(request).filter((line) => /^host:/i.test(line)),
  );
  expect(new Set(hosts)).toEqual(new Set([`Host: store.test:${backend.port}`]));
});

it('the messages of a WebSocket are forwarded over TLS in both directions', async () => {
  const server = createServer({ cert: certificate.cert, key: certificate.key }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const sockets = new WebSocketServer({ server });
  sockets.on('connection', (socket) => socket.on('message', (data) => socket.send(`you said ${data}`)));
  onTestFinished(() => {
    for (const client of sockets.clients) client.terminate();
    server.close();
  });
  const front = await startFor((server.address() as AddressInfo).port);
  const client = new WebSocket(`ws://127.0.0.1:${front.port}/live`);
  await once(client, 'open');
  client.send('hello');
  const [message] = await once(client, 'message');
  expect(String(message)).toBe('you said hello');
  client.close();
  await once(client, 'close');
});

it.each<[what: string, tls: KeyPair, reason: RegExp]>([
  ['has expired', expired, /certificate has expired/],
  [
    'is for another name',
    authority.issue({ names: ['other.test'] }),
    /does not match certificate's altnames/,
  ],
  [
    'is of another authority',
    createAuthority('Another').issue({ names: ['store.test'] }),
    /unable to verify/,
  ],
])('a target whose certificate %s is not used, and the reason is reported', async (_what, tls, reason) => {
  const backend = await startBackend({ tls });
  const front = await startFor(backend.port);
  expect(statusOf(await sendRaw(front.port, get('/')))).toBe(503);
  await until('a health check has failed', () => /^health check/.test(front.targets()[0]?.reason ?? ''));
  expect(front.targets()).toMatchObject([{ healthy: false, reason: expect.stringMatching(reason) }]);
  expect(backend.requests).toEqual([]);
});

it.each(['', '0'])(
  'a WebSocket cannot avoid the verification, with NODE_TLS_REJECT_UNAUTHORIZED=%j',
  async (value) => {
    process.env.NODE_TLS_REJECT_UNAUTHORIZED = value;
    onTestFinished(() => void delete process.env.NODE_TLS_REJECT_UNAUTHORIZED);
    const backend = await startBackend({ tls: expired });
    const front = await startFor(backend.port);
    expect(statusOf(await sendRaw(front.port, handshake))).toBe(503);
    expect(front.outcomes).toMatchObject([{ kind: 'failed', code: 'upstream_unavailable' }]);
    expect(front.targets()).toMatchObject([{ healthy: false, reason: expect.stringMatching(/has expired/) }]);
    expect(backend.requests).toEqual([]);
  },
);

it('when one of two targets cannot be verified no request fails, not even a POST', async () => {
  const good = await startBackend();
  await startBackend({ host: '127.0.0.2', port: good.port, tls: expired });
  const front = await startFor(good.port, { addresses: ['127.0.0.1', '127.0.0.2'] });
  const post = 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi';
  for (let i = 0; i < 10; i++) expect(statusOf(await sendRaw(front.port, post))).toBe(200);
  expect(good.requests).toHaveLength(10);
});

it('the connect timeout includes the TLS handshake, for WebSockets too', async () => {
  const silent = createTcpServer(() => {}).listen(0, '127.0.0.1');
  await once(silent, 'listening');
  onTestFinished(() => void silent.close());
  for (const request of [handshake, get('/')]) {
    const front = await startFor((silent.address() as AddressInfo).port, {
      upstream: { timeouts: { connectMs: 200, headersMs: 60_000 } },
    });
    expect(statusOf(await sendRaw(front.port, request))).toBe(503);
    expect(front.targets()[0]?.reason).toMatch(/no connection within 200 ms$/);
  }
});

it('a target that requests a client certificate gets the certificate of the upstream, for requests and WebSockets', async () => {
  const own = authority.issue({ names: ['gateway.test'] });
  const tls = { ...certificate, ca, requestCert: true, rejectUnauthorized: true };
  const backend = await startBackend({ tls });
  const front = await startFor(backend.port, { upstream: { tls: { ca, clientCertificate: own } } });
  expect(statusOf(await sendRaw(front.port, get('/')))).toBe(200);
  expect(statusOf(await sendRaw(front.port, handshake))).toBe(200);

  const without = await startFor(backend.port);
  await until('a health check has failed', () => without.targets()[0]?.healthy === false);
  expect(without.targets()[0]?.reason).toBe('health check failed: tlsv13 alert certificate required');
  expect(statusOf(await sendRaw(without.port, get('/')))).toBe(503);
});

it('a changed client certificate is used for new connections, and requests in flight finish on old connections', async () => {
  const [old, renewed] = [1, 2].map(() => authority.issue({ names: ['gateway.test'] }));
  const tls = { ...certificate, ca, requestCert: true, rejectUnauthorized: true };
  const serials: string[] = [];
  let finish = () => {};
  const backend = await startBackend({
    tls,
    react: ({ target }, socket) => {
      serials.push((socket as TLSSocket).getPeerCertificate().serialNumber);
      if (target === '/slow') finish = () => socket.write(okResponse('at last'));
      else socket.write(okResponse('{}'));
    },
  });
  const front = await startFor(backend.port, {
    upstream: { tls: { ca, ...(old && { clientCertificate: old }) } },
  });
  const slow = sendRaw(front.port, get('/slow'));
  await backend.received(1);
  const next = upstreamAt(`https://store.test:${backend.port}`, {
    tls: { ca, ...(renewed && { clientCertificate: renewed }) },
  });
  front.forwarder.setUpstreams([next]);
  await sendRaw(front.port, get('/'));
  front.forwarder.setUpstreams([next]);
  await sendRaw(front.port, get('/'));
  expect(serials[1]).not.toBe(serials[0]);
  expect(serials[2]).toBe(serials[1]);
  expect(backend.requests[2]?.connection).toBe(backend.requests[1]?.connection);
  finish();
  expect(await slow).toMatch(/at last$/);
});
