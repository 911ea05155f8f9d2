import { once } from 'node:events';
import { connect as connectTcp, createServer, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { ClientResponse } from '../../../gateway/request/respond/client-response.ts';
import {
  expectRejection,
  type ListenerFixture,
  startListener,
  type TestHandlers,
} from '../../support/listener-fixture.ts';
import { makeCertificate } from '../../support/make-certificate.ts';
import { exchangeRaw, openRawClient } from '../../support/raw-http.ts';
import { until } from '../../support/until.ts';

const certificate = makeCertificate();
const ca = certificate.cert;
const get = 'GET /a HTTP/1.1\r\nHost: a\r\n\r\n';
const lastGet = 'GET /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n';

function start(options: Parameters<typeof startListener>[0] = {}): Promise<ListenerFixture> {
  return startListener({ certificate, ...options });
}

/** Connects with these options. @returns the negotiated values and the received data, or the code of the error */
async function attempt(port: number, options: ConnectionOptions & { readonly localAddress?: string }) {
  const socket = connect({ port, host: '127.0.0.1', ca, ...options });
  socket.setEncoding('latin1');
  const result = { protocol: '', alpn: '', cipher: '', received: '', error: '' };
  socket.on('error', (error: NodeJS.ErrnoException) => {
    result.error = error.code ?? error.message;
  });
  socket.on('data', (text: string) => {
    result.received += text;
  });
  socket.on('secureConnect', () => {
    result.protocol = socket.getProtocol() ?? '';
    result.cipher = socket.getCipher().name;
    result.alpn = socket.alpnProtocol || '';
    socket.write(lastGet);
  });
  await new Promise((resolve) => socket.once('close', resolve));
  return result;
}

/** Opens a TCP connection that sends only the given octets. */
async function openTcp(port: number, octets?: Buffer | string): Promise<Socket> {
  const socket = connectTcp(port, '127.0.0.1');
  socket.on('error', () => {});
  onTestFinished(() => void socket.destroy());
  await once(socket, 'connect');
  if (octets !== undefined) socket.write(octets);
  return socket.resume();
}

async function closeOf(socket: Socket | TLSSocket): Promise<void> {
  if (!socket.destroyed) await new Promise((resolve) => socket.once('close', resolve));
}

/** The octets of a complete ClientHello. */
async function clientHello(): Promise<Buffer> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  const client = connect({ port, host: '127.0.0.1', ca });
  client.on('error', () => {});
  const [socket] = (await once(server, 'connection')) as [Socket];
  const [hello] = (await once(socket, 'data')) as [Buffer];
  client.destroy();
  socket.destroy();
  server.close();
  return hello;
}

describe('the TLS negotiation', () => {
  it.each(['TLSv1.2', 'TLSv1.3'] as const)('serves requests over %s', async (version) => {
    const { port } = await start();
    const result = await attempt(port, { minVersion: version, maxVersion: version });
    expect(result).toMatchObject({ error: '', protocol: version });
    expect(result.received).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
  });

  it('refuses TLS 1.1', async () => {
    const { port, failedHandshakes } = await start();
    const old = { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' } as const;
    const result = await attempt(port, old);
    expect(result).toMatchObject({ error: 'ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION', received: '' });
    expect(failedHandshakes).toEqual(['ERR_SSL_UNSUPPORTED_PROTOCOL']);
  });

  it.each(['AES256-SHA', 'AES128-GCM-SHA256', 'ECDHE-ECDSA-AES256-SHA'])(
    'refuses TLS 1.2 with %s, without forward secrecy or authenticated encryption',
    async (ciphers) => {
      const { port } = await start();
      const result = await attempt(port, { maxVersion: 'TLSv1.2', ciphers });
      expect(result.error).toMatch(/HANDSHAKE_FAILURE/);
    },
  );

  it('selects http/1.1 by ALPN, and refuses a client that only speaks h2', async () => {
    const { port } = await start();
    expect(await attempt(port, { ALPNProtocols: ['h2', 'http/1.1'] })).toMatchObject({
      alpn: 'http/1.1',
      error: '',
    });
    expect((await attempt(port, { ALPNProtocols: ['h2'] })).error).toMatch(/NO_APPLICATION_PROTOCOL/);
  });

  it('does not let a client renegotiate', async () => {
    const { port } = await start();
    const client = connect({ port, host: '127.0.0.1', ca, maxVersion: 'TLSv1.2' });
    onTestFinished(() => void client.destroy());
    await once(client, 'secureConnect');
    const error = new Promise<NodeJS.ErrnoException>((resolve) => client.once('error', resolve));
    client.renegotiate({}, () => {});
    expect((await error).code).toMatch(/NO_RENEGOTIATION/);
  });
});

describe('requests over TLS', () => {
  it('are served in order when pipelined', async () => {
    const { port, served } = await start();
    const client = await openRawClient(port, { ca });
    client.send(Array.from({ length: 20 }, (_, i) => get.replace('/a', `/${i}`)).join('') + lastGet);
    const responses = await client.responsesToEnd();
    expect(responses.map(({ status }) => status)).toEqual(Array.from({ length: 21 }, () => 200));
    expect(served.slice(0, 20)).toEqual(Array.from({ length: 20 }, (_, i) => `GET /${i}`));
  });

  it('get 400 when the parser refuses them', async () => {
    const { port } = await start();
    const client = await openRawClient(port, { ca });
    client.send('GET /p ets HTTP/1.1\r\nHost: a\r\n\r\n');
    expectRejection(await client.response(), 'invalid_request');
    await client.closed;
  });

  it('get 408 for a slow header, as without TLS', async () => {
    const { port } = await start({ bounds: { headersTimeoutMs: 2_000 } });
    const client = await openRawClient(port, { ca });
    client.send('GET / HTTP/1.1\r\nHost:');
    expectRejection(await client.response(), 'request_timeout');
    await client.closed;
  });

  it('get a readable response while their body is still being sent', async () => {
    const { port } = await start();
    const client = await openRawClient(port, { ca });
    client.send('GET /%00 HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n');
    for (let i = 0; i < 8; i++) client.send('x'.repeat(8_000));
    expectRejection(await client.response(), 'invalid_request');
    await client.closed;
  });

  it('close an idle connection after the idle timeout', async () => {
    const { port, listener } = await start({ bounds: { keepAliveTimeoutMs: 1_500 } });
    const client = await openRawClient(port, { ca });
    client.send(get);
    expect((await client.response()).status).toBe(200);
    await client.closed;
    await until('it is forgotten', () => listener.connections() === 0);
  });

  const large = 'x'.repeat(30_000_000);
  const answerLarge: Partial<TestHandlers> = {
    onRequest: (_req, res) =>
      res.answer({ status: 200, fields: ['Content-Length', String(large.length)], body: large }),
  };

  it('end when a client reads nothing of one large write', async () => {
    const served = Promise.withResolvers<void>();
    const { port, listener } = await start({
      handlers: {
        onRequest(req, res) {
          answerLarge.onRequest?.(req, res);
          served.resolve();
        },
      },
      bounds: { writeTimeoutMs: 200, clientReadAheadMaxMs: 0 },
    });
    const client = await openRawClient(port, { ca });
    client.socket.pause();
    client.send(get);
    await served.promise;
    await until('it is disconnected', () => listener.connections() === 0);
  });

  it('give a slow reader all of one large write', async () => {
    const writeTimeoutMs = 2_000;
    const { port } = await start({
      handlers: answerLarge,
      bounds: { writeTimeoutMs, clientReadAheadMaxMs: 0 },
    });
    const client = connect({ port, host: '127.0.0.1', ca });
    onTestFinished(() => void client.destroy());
    let length = 0;
    let pausedAt = 0;
    client.on('data', (chunk: Buffer) => {
      length += chunk.length;
      // The kernel buffers megabytes for a client, and accepts more data only when the client has read much of the buffer.
      if (length - pausedAt < 1_000_000) return;
      pausedAt = length;
      client.pause();
      setTimeout(() => client.resume(), 160);
    });
    const startedMs = performance.now();
    client.write(lastGet);
    await closeOf(client);
    expect(length).toBeGreaterThan(large.length);
    expect(performance.now() - startedMs, 'it took longer than the timeout').toBeGreaterThan(
      2 * writeTimeoutMs,
    );
  });
});

describe('a client without TLS', () => {
  it.each([
    ['a request', get],
    ['a request with a body', 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello'],
    [
      'a request with an upgrade',
      'GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n',
    ],
    ['a CONNECT', 'CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n'],
    ['the preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
    ['something that the parser refuses', 'GARBAGE\r\n\r\n'],
    ['an empty line first', `\r\n${get}`],
  ])('that sends %s gets 400 in cleartext, with the remedy', async (_what, bytes) => {
    const { port, served, failedHandshakes } = await start({ handlers: { wantsUpgrade: () => true } });
    const [response, ...more] = await exchangeRaw(port, bytes);
    expectRejection(response, 'invalid_request');
    expect(response?.body).toContain('https://');
    expect({ more, served, failedHandshakes }).toEqual({ more: [], served: [], failedHandshakes: [] });
  });

  it('gets one response for any number of pipelined requests', async () => {
    const { port, served } = await start();
    expect(await exchangeRaw(port, get.repeat(5))).toHaveLength(1);
    expect(served).toEqual([]);
  });

  it('that sends no HTTP either is disconnected without an octet', async () => {
    const { port, failedHandshakes } = await start();
    const socket = await openTcp(port, Buffer.from([0x80, 0x2e, 0x01, 0x00, 0x02]));
    await closeOf(socket);
    expect(socket.bytesRead).toBe(0);
    expect(failedHandshakes).toEqual(['neither TLS nor HTTP']);
  });

  it('that sends a TLS record other than a handshake is disconnected', async () => {
    const { port, failedHandshakes } = await start();
    await closeOf(await openTcp(port, Buffer.from([0x16, 0xff, 0xff, 0x00, 0x05, 1, 2, 3, 4, 5])));
    expect(failedHandshakes).toEqual([expect.stringMatching(/^ERR_SSL_/)]);
  });

  it('that only checks whether the port is open is not counted as a failure', async () => {
    const { port, listener, failedHandshakes } = await start();
    const socket = await openTcp(port);
    socket.end();
    await closeOf(socket);
    expect((await attempt(port, {})).error).toBe('');
    await until('both are forgotten', () => listener.connections() === 0);
    expect(failedHandshakes).toEqual([]);
  });
});

describe('handshakes', () => {
  it.each<[string, () => Promise<Buffer | undefined>]>([
    ['sends nothing', async () => undefined],
    ['sends one octet', async () => Buffer.from([0x16])],
    ['sends half a ClientHello', async () => (await clientHello()).subarray(0, 100)],
    ['sends its ClientHello and nothing more', clientHello],
  ])('time out, and the client is disconnected, when it %s', async (_what, make) => {
    const { port, failedHandshakes } = await start({ bounds: { tlsHandshakeTimeoutMs: 150 } });
    const socket = await openTcp(port, await make());
    await closeOf(socket);
    expect(failedHandshakes).toEqual(['timeout']);
  });

  it('cannot be extended by a client that sends octet by octet', async () => {
    const { port, failedHandshakes } = await start({ bounds: { tlsHandshakeTimeoutMs: 200 } });
    const hello = await clientHello();
    const socket = await openTcp(port);
    let sent = 0;
    for (const octet of hello) {
      if (socket.destroyed) break;
      socket.write(Buffer.from([octet]));
      sent++;
      await sleep(10);
    }
    await closeOf(socket);
    expect(failedHandshakes).toEqual(['timeout']);
    expect(sent).toBeLessThan(hello.length);
  });

  it.each([
    ['at once', 0],
    ['when it has read the ServerHello', 1],
  ])('end when a client sends its ClientHello and closes its side %s', async (_when, octets) => {
    const { port } = await start({ bounds: { tlsHandshakeTimeoutMs: 3_600_000 } });
    const hello = await clientHello();
    // The test opens several connections, because only some TLS handshakes have to wait for their turn.
    await Promise.all(
      Array.from({ length: 20 }, async () => {
        const socket = await openTcp(port, hello);
        while (socket.bytesRead < octets) await once(socket, 'data');
        socket.end();
        await closeOf(socket);
      }),
    );
  });

  it('of one address count as its connections before they are complete', async () => {
    const { port, listener } = await start({
      bounds: { connectionsPerAddressMax: 5, tlsHandshakeTimeoutMs: 60_000 },
    });
    const hello = await clientHello();
    const held = await Promise.all(
      [hello, hello, undefined, undefined, hello].map((octets) => openTcp(port, octets)),
    );
    const sixth = await openTcp(port, hello);
    await closeOf(sixth);
    expect(sixth.bytesRead).toBe(0);
    expect(held.filter(({ destroyed }) => destroyed)).toEqual([]);
    expect(listener.connections()).toBe(0);
    const neighbour = await openRawClient(port, { ca, localAddress: '127.0.0.2' });
    neighbour.send(get);
    expect((await neighbour.response()).status).toBe(200);
    neighbour.destroy();
    held[0]?.destroy();
    held[3]?.destroy();
    await until('there is room again', async () => (await attempt(port, {})).error === '');
  });

  it('of one address do not delay the requests of other addresses', async () => {
    const { port } = await start();
    const client = await openRawClient(port, { ca, localAddress: '127.0.0.2' });
    const hello = await clientHello();
    await Promise.all(Array.from({ length: 300 }, () => openTcp(port, hello)));
    for (let i = 0; i < 20; i++) {
      client.send(get);
      expect((await client.response()).status).toBe(200);
    }
    expect((await attempt(port, { localAddress: '127.0.0.3' })).received).toMatch(/^HTTP\/1\.1 200/);
  });
});

describe('a changed certificate', () => {
  it('is used from the next handshake on; open connections and the TLS options stay', async () => {
    const { port, listener } = await start();
    const before = await openRawClient(port, { ca });
    const next = makeCertificate({ algorithm: 'rsa' });
    listener.setCertificate(next);
    before.send(get);
    expect((await before.response()).status).toBe(200);
    const after = await attempt(port, { ca: next.cert, ALPNProtocols: ['h2', 'http/1.1'] });
    expect(after).toMatchObject({ error: '', alpn: 'http/1.1', protocol: 'TLSv1.3' });
    expect((await attempt(port, {})).error).toBe('DEPTH_ZERO_SELF_SIGNED_CERT');
    const old = { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' } as const;
    expect((await attempt(port, { ca: next.cert, ...old })).error).toMatch(/PROTOCOL_VERSION/);
    const weak = { maxVersion: 'TLSv1.2', ciphers: 'AES256-SHA' } as const;
    expect((await attempt(port, { ca: next.cert, ...weak })).error).toMatch(/HANDSHAKE_FAILURE/);
    before.destroy();
  });
});

describe('a drain', () => {
  it('serves the request in flight with Connection: close, and ends', async () => {
    const responses: ClientResponse[] = [];
    const { port, listener } = await start({ handlers: { onRequest: (_req, res) => responses.push(res) } });
    const client = await openRawClient(port, { ca });
    client.send(get);
    await until('it has arrived', () => responses.length === 1);
    const drained = listener.drain({ deadlineMs: 10_000 });
    responses[0]?.answer({ status: 200, fields: ['Content-Length', '0'], body: '' });
    const response = await client.response();
    expect([response.status, response.headers.get('connection')]).toEqual([200, 'close']);
    await drained;
  });

  it('loses no request of a client that sends without a pause', async () => {
    const { port, listener } = await start({ bounds: { drainIdleGraceMs: 9_000 } });
    const clients = await Promise.all(Array.from({ length: 20 }, () => openRawClient(port, { ca })));
    let served = 0;
    const going = clients.map(async (client) => {
      for (;;) {
        client.send(get);
        const response = await client.response();
        served += Number(response.status === 200);
        if (response.headers.get('connection') === 'close') return;
      }
    });
    await until('they are served', () => served > 200);
    await listener.drain({ deadlineMs: 10_000 });
    await Promise.all(going);
  });

  it('does not wait for unfinished handshakes, but serves a connection whose handshake finishes meanwhile', async () => {
    const { port, listener } = await start({ bounds: { drainIdleGraceMs: 6_000 } });
    const silent = await openTcp(port);
    const half = await openTcp(port, await clientHello());
    const late = connectTcp(port, '127.0.0.1');
    await once(late, 'connect');
    // The server accepts connections in the order of their arrival. When the server serves a new connection, it has
    // therefore accepted all earlier connections.
    expect((await attempt(port, {})).received).toMatch(/^HTTP\/1\.1 200/);
    const drained = listener.drain({ deadlineMs: 20_000 });
    const client = connect({ socket: late, ca, servername: 'localhost' }).setEncoding('latin1');
    let received = '';
    client.on('data', (text: string) => {
      received += text;
    });
    client.write(get);
    await closeOf(client);
    expect(received).toMatch(/^HTTP\/1\.1 200 OK\r\n[\s\S]*Connection: close\r\n/);
    await drained;
    await Promise.all([closeOf(silent), closeOf(half)]);
  });
});
