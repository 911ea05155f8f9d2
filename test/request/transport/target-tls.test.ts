import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import type { TLSSocket, TlsOptions } from 'node:tls';
import { expect, it, onTestFinished } from 'vitest';
import { ConnectionPool } from '../../../gateway/request/transport/connection-pool.ts';
import { createTargetTls } from '../../../gateway/request/transport/target-tls.ts';
import { createEventLoopBatch } from '../../../gateway/shared/event-loop-batch.ts';
import { type Bounds, defaultBounds } from '../../../gateway/shared/timeouts-and-sizes.ts';
import { createAuthority } from '../../support/certificates.ts';
import { okResponse, type RecordingBackend, startRecordingBackend } from '../../support/recording-backend.ts';
import { patientForwarding } from '../../support/tuning.ts';
import { type Sent, send } from './pool-fixture.ts';

const authority = createAuthority();
const certificate = authority.issue({ names: ['store.test'] });

async function startBackend(tls: TlsOptions = certificate): Promise<RecordingBackend> {
  const backend = await startRecordingBackend({
    tls,
    react: (_request, socket) => {
      const { servername, alpnProtocol } = socket as TLSSocket & { readonly servername: string | false };
      socket.write(okResponse(JSON.stringify({ servername, alpnProtocol })));
    },
  });
  onTestFinished(() => backend.close());
  return backend;
}

interface Ask {
  readonly name?: string;
  readonly ca?: string;
  readonly own?: { readonly cert: string; readonly key: string };
  readonly bounds?: Partial<Bounds>;
}

/** Sends one request over TLS to a port of this machine. */
async function ask(
  port: number,
  { name = 'store.test', ca = authority.cert, own, bounds }: Ask = {},
): Promise<Sent> {
  const pool = new ConnectionPool({
    host: '127.0.0.1',
    port,
    tls: createTargetTls({ name, ca, ...own }),
    bounds: { ...defaultBounds, ...patientForwarding, ...bounds },
    atTurnEnd: createEventLoopBatch(),
  });
  onTestFinished(() => pool.destroy());
  const sent = send(pool);
  await sent.ended;
  return sent;
}

it('a connection to an address of a target verifies and sends the host name', async () => {
  const { port } = await startBackend();
  const { status, body } = await ask(port);
  expect([status, JSON.parse(body)]).toEqual([200, { servername: 'store.test', alpnProtocol: false }]);
});

it('a host name with a final dot is the same name', async () => {
  const { port } = await startBackend();
  const { status, body } = await ask(port, { name: 'store.test.' });
  expect([status, JSON.parse(body)]).toMatchObject([200, { servername: 'store.test' }]);
});

it.each(['127.0.0.1', '::1'])(
  '%s as a host is verified as an address, and not sent as a name',
  async (address) => {
    const { port } = await startBackend(authority.issue({ names: ['127.0.0.1', '::1'] }));
    const { status, body } = await ask(port, { name: address });
    expect([status, JSON.parse(body)]).toMatchObject([200, { servername: false }]);
  },
);

it('a target that also speaks HTTP/2 negotiates HTTP/1.1', async () => {
  const { port } = await startBackend({ ...certificate, ALPNProtocols: ['h2', 'http/1.1'] });
  expect(JSON.parse((await ask(port)).body)).toMatchObject({ alpnProtocol: 'http/1.1' });
});

const others = createAuthority('Another authority');

it.each([
  ['has expired', authority.issue({ names: ['store.test'], days: -1 }), 'certificate has expired'],
  [
    'is for another name',
    authority.issue({ names: ['other.test'] }),
    "does not match certificate's altnames",
  ],
  [
    'is for its address alone',
    authority.issue({ names: ['127.0.0.1'] }),
    "does not match certificate's altnames",
  ],
  ['is of an authority that is not trusted', others.issue({ names: ['store.test'] }), 'unable to verify'],
  ['is nobody’s but its own', others, 'self-signed certificate'],
])(
  'a target whose certificate %s gets no request, and the failure has the reason',
  async (_what, tls, reason) => {
    const backend = await startBackend({ cert: tls.cert, key: tls.key });
    const { failure } = await ask(backend.port);
    expect(failure).toMatchObject({ kind: 'connect', reach: 'not_reached' });
    expect(failure?.cause).toContain(reason);
    expect(backend.requests).toEqual([]);
  },
);

it('no environment variable switches off the verification of a target', async () => {
  const backend = await startBackend(others.issue({ names: ['store.test'] }));
  process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0';
  onTestFinished(() => void delete process.env.NODE_TLS_REJECT_UNAUTHORIZED);
  expect((await ask(backend.port)).failure).toMatchObject({ kind: 'connect' });
  expect(backend.requests).toEqual([]);
});

it('an authority in the configuration replaces the authorities of Node', async () => {
  const backend = await startBackend();
  expect((await ask(backend.port, { ca: others.cert })).failure).toMatchObject({ kind: 'connect' });
});

it('a target with TLS before 1.2 is refused', async () => {
  const { port } = await startBackend({
    ...certificate,
    minVersion: 'TLSv1',
    maxVersion: 'TLSv1.1',
    ciphers: 'DEFAULT:@SECLEVEL=0',
  });
  expect((await ask(port)).failure).toMatchObject({ kind: 'connect' });
});

it.each(['TLSv1.2', 'TLSv1.3'] as const)(
  'a target that requests a client certificate gets it in %s',
  async (version) => {
    const tls = { ...certificate, ca: authority.cert, requestCert: true, rejectUnauthorized: true };
    const { port } = await startBackend({ ...tls, minVersion: version, maxVersion: version });
    const own = authority.issue({ names: ['gateway.test'] });
    expect(await ask(port, { own })).toMatchObject({ status: 200 });
    const { failure } = await ask(port);
    expect(failure?.cause).toMatch(/^tlsv13 alert certificate required$|handshake failure$/);
  },
);

it('a target that speaks cleartext and an unreachable target fail differently', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  const { failure } = await ask((server.address() as AddressInfo).port);
  expect(failure).toMatchObject({ kind: 'connect', reach: 'not_reached' });
  expect(failure?.cause).toMatch(/^(wrong version number|packet length too long)$/);
});

it('the connect timeout of a target includes the TLS handshake', async () => {
  let connections = 0;
  const server = createTcpServer(() => connections++).listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const { failure } = await ask(port, { bounds: { connectTimeoutMs: 200 } });
  expect(failure).toMatchObject({ kind: 'connect', cause: 'no connection within 200 ms' });
  expect(connections).toBe(1);
});

it('every connection to a target is verified again, because no TLS session is resumed', async () => {
  const reused: boolean[] = [];
  const backend = await startBackend();
  backend.react = (_request, socket) => {
    reused.push((socket as TLSSocket).isSessionReused());
    socket.end(okResponse('', 200, ['Connection: close']));
  };
  const pool = new ConnectionPool({
    host: '127.0.0.1',
    port: backend.port,
    tls: createTargetTls({ name: 'store.test', ca: authority.cert }),
    bounds: { ...defaultBounds, ...patientForwarding },
    atTurnEnd: createEventLoopBatch(),
  });
  onTestFinished(() => pool.destroy());
  for (let i = 0; i < 3; i++) await send(pool).ended;
  expect(reused).toEqual([false, false, false]);
});
