import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import { type AddressInfo, connect, createServer as createTcpServer, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import { ClientResponse } from '../../../../gateway/request/respond/client-response.ts';
import { defaultBounds } from '../../../../gateway/shared/timeouts-and-sizes.ts';
import {
  fieldLines,
  okResponse,
  type Reaction,
  type RecordingBackend,
  startRecordingBackend,
} from '../../../support/recording-backend.ts';
import { stopTimers } from '../../../support/stopped-clock.ts';
import {
  addressOf,
  type Front,
  type FrontOptions,
  get,
  opener,
  sendRaw,
  startFront,
  statusOf,
} from '../start-front.ts';

const started: { close(): Promise<void> }[] = [];

afterEach(async () => {
  for (const each of started.splice(0).reverse()) await each.close();
});

async function startFor(url: string, bounds: FrontOptions['bounds'] = {}): Promise<Front> {
  const front = await startFront({
    url,
    bounds,
    requestFields: ['X-Key-Id', 'acme'],
    responseFields: ['X-RateLimit-Limit', '60'],
  });
  started.push(front);
  return front;
}

async function startRecording(react: Reaction): Promise<RecordingBackend> {
  const backend = await startRecordingBackend({ react });
  started.push(backend);
  return backend;
}

const handshake = [
  'GET /v1/live?a=%20b? HTTP/1.1',
  'Host: api.test',
  'Connection: Upgrade, X-Hop',
  'Upgrade: websocket',
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
  'Sec-WebSocket-Version: 13',
  'Authorization: Bearer secret',
  'X_Key_Id: forged',
  'X-Hop: 1',
  '',
  '',
].join('\r\n');

const handshakeOf = (holder: string) => handshake.replace('X-Hop: 1', `X-Holder: ${holder}`);

const switching = (...fields: string[]) =>
  ['HTTP/1.1 101 Sure', 'Connection: Upgrade', 'Upgrade: websocket', ...fields, '', ''].join('\r\n');

const interim = 'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n';

const acceptOrDecline: Reaction = ({ head }, socket) =>
  void socket.write(/upgrade: websocket/i.test(head) ? switching() : okResponse('fine'));

/**
 * Forwards any upgrade. The real listener forwards some upgrades as ordinary requests. For a request with `Expect`, Node writes the head of
 * the handshake before the gateway can change it.
 *
 * @returns the port
 */
async function startBare({ forwarder, bugs }: Front): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  server.on('upgrade', (req: IncomingMessage, socket: Socket, head: Buffer) => {
    const res = new ClientResponse(req);
    res.assignSocket(socket);
    const fields = { ...addressOf(req), requestFields: [], responseFields: [], keepForwarded: false };
    const caller = { holder: 'acme', opener, upstream: 'default', onAttemptEnd: undefined };
    forwarder.forwardUpgrade({ req, res, socket, head, ...caller, ...fields }).catch((bug) => {
      bugs.push(bug);
      res.destroy();
    });
  });
  await once(server, 'listening');
  started.push({ close: async () => void server.close() });
  return (server.address() as AddressInfo).port;
}

/** Opens a WebSocket, whose handshake gets a 101. */
async function openTunnel(
  front: Front,
  { holder = 'acme', ...options }: { holder?: string; allowHalfOpen?: boolean } = {},
): Promise<Socket> {
  const client = connect({ port: front.port, host: '127.0.0.1', ...options });
  client.on('error', () => {});
  client.write(handshakeOf(holder));
  const [response] = await once(client, 'data');
  expect(statusOf(String(response))).toBe(101);
  return client;
}

async function tunnels(front: Front, count: number): Promise<void> {
  await expect.poll(() => front.targets()[0]?.tunnels).toBe(count);
}

describe('a WebSocket', () => {
  it('carries messages in both directions and ends with either side', async () => {
    const server = createServer((_req, res) => res.end()).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const sockets = new WebSocketServer({ server });
    sockets.on('connection', (socket) => socket.on('message', (data) => socket.send(`echo ${data}`)));
    started.push({
      close: async () => {
        sockets.close();
        server.closeAllConnections();
        server.close();
      },
    });
    const front = await startFor(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);

    const client = new WebSocket(`ws://127.0.0.1:${front.port}/v1/live`);
    const [[response]] = await Promise.all([once(client, 'upgrade'), once(client, 'open')]);
    expect(response.headers['x-ratelimit-limit']).toBe('60');
    client.send('hello');
    const [message] = await once(client, 'message');
    expect(String(message)).toBe('echo hello');
    expect(front.outcomes).toMatchObject([{ kind: 'forwarded', status: 101 }]);
    expect(front.targets()).toMatchObject([{ tunnels: 1, inFlight: 0 }]);

    client.close();
    await once(client, 'close');
    await tunnels(front, 0);
  });

  it('carries all octets in order, also to a side that reads late', async () => {
    const backend = await startRecording((_request, socket) => {
      socket.write(switching());
      socket.setEncoding('latin1').pipe(socket);
    });
    const front = await startFor(backend.url, { tunnelBytesPerTurnMax: 10_000 });
    const client = await openTunnel(front, { allowHalfOpen: true });
    client.pause();
    const sent = Buffer.from(Array.from({ length: 1_000_000 }, (_, i) => String(i)).join());
    client.end(sent);
    await expect.poll(() => client.bytesWritten).toBeGreaterThan(1_000_000);
    client.resume();
    const received: Buffer[] = [];
    client.on('data', (piece) => received.push(piece));
    await once(client, 'end');
    expect(Buffer.concat(received).equals(sent)).toBe(true);
  });

  it('whose handshake cannot be written reaches no backend and affects no other WebSocket', async () => {
    const backend = await startRecording(({ head }, socket) =>
      head.includes('/v1/live') ? socket.destroy() : void socket.write(okResponse('fine')),
    );
    const front = await startFor(backend.url);
    const port = await startBare(front);
    const response = await sendRaw(port, handshake.replace('X-Hop: 1', 'Expect: 100-continue'));
    expect(response).toBe('');
    expect(front.bugs).toMatchObject([{ code: 'ERR_HTTP_HEADERS_SENT' }]);
    await tunnels(front, 0);
    expect(statusOf(await sendRaw(front.port, get('/')))).toBe(200);
    expect(backend.requests.map(({ head }) => head.split('\r\n')[0])).toEqual(['GET / HTTP/1.1']);
  });

  it('has a handshake with the raw URI and the same fields as any request', async () => {
    const backend = await startRecording((_request, socket) => socket.end(switching()));
    const front = await startFor(backend.url);
    await sendRaw(front.port, handshake);
    const [request] = backend.requests;
    expect(request?.head.split('\r\n')[0]).toBe('GET /v1/live?a=%20b? HTTP/1.1');
    expect(request && fieldLines(request).map((line) => line.toLowerCase())).toEqual([
      'host: api.test',
      'sec-websocket-key: dghlihnhbxbszsbub25jzq==',
      'sec-websocket-version: 13',
      'x-key-id: acme',
      'connection: upgrade',
      'upgrade: websocket',
    ]);
  });

  it('forwards no bytes before the backend accepted', async () => {
    let afterHandshake = '';
    let accept = () => {};
    const backend = await startRecording((_request, socket) => {
      socket.on('data', (text) => {
        afterHandshake += text;
      });
      accept = () => socket.write(switching());
    });
    const front = await startFor(backend.url);
    const client = connect(front.port, '127.0.0.1');
    client.write(`${handshake}early`);
    await backend.received(1);
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(afterHandshake).toBe('');
    accept();
    await once(client, 'data');
    while (afterHandshake !== 'early') await new Promise((resolve) => setTimeout(resolve, 5));
    client.destroy();
  });

  it('that the backend refuses gets the response like any request, and the connection is closed', async () => {
    const backend = await startRecording((_request, socket) =>
      socket.write(okResponse('no', 403, ['X-RateLimit-Limit: 9', 'Connection: close'])),
    );
    const front = await startFor(backend.url);
    const response = await sendRaw(front.port, handshake);
    expect(response).toMatch(/^HTTP\/1.1 403 Forbidden\r\n/);
    expect(response.match(/x-ratelimit-limit: \d+/gi)).toEqual(['X-RateLimit-Limit: 60']);
    expect(response).toMatch(/no$/);
    expect(front.outcomes).toMatchObject([{ kind: 'forwarded', status: 403 }]);
  });

  it('that the backend refuses with a body that is malformed at its beginning gets 502', async () => {
    const backend = await startRecording((_request, socket) =>
      socket.end('HTTP/1.1 403 X\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nno'),
    );
    const front = await startFor(backend.url);
    expect(statusOf(await sendRaw(front.port, handshake))).toBe(502);
    await front.ended(1);
    expect(front.outcomes).toMatchObject([{ kind: 'failed', code: 'upstream_failed', headersSent: false }]);
  });

  it('that the backend refuses with a body that is cut later gets the head, and a failure of the backend is logged', async () => {
    let cut = () => {};
    const backend = await startRecording((_request, socket) => {
      socket.write('HTTP/1.1 403 X\r\nContent-Length: 10\r\n\r\nno');
      cut = () => socket.end();
    });
    const front = await startFor(backend.url);
    expect(statusOf(await sendRaw(front.port, handshake, () => cut()))).toBe(403);
    await front.ended(1);
    expect(front.outcomes).toMatchObject([{ kind: 'failed', code: 'upstream_failed', headersSent: true }]);
  });

  it('that the backend refuses with a body that becomes malformed gets the head, and is cut', async () => {
    let goOn = () => {};
    const backend = await startRecording((_request, socket) => {
      socket.write('HTTP/1.1 403 X\r\nTransfer-Encoding: chunked\r\n\r\n');
      goOn = () => socket.write('zz\r\n');
    });
    const front = await startFor(backend.url);
    const response = await sendRaw(front.port, handshake, () => goOn());
    expect(response).toMatch(/^HTTP\/1.1 403 Forbidden\r\n[\s\S]*\r\n\r\n$/);
    await front.ended(1);
    expect(front.outcomes).toMatchObject([{ kind: 'failed', headersSent: true }]);
  });

  it('gets the 101 and the bytes after it, in one piece or in many', async () => {
    const response = `${interim}${switching()}hello`;
    for (const pieces of [[response], [...response]]) {
      const backend = await startRecording(async (_request, socket) => {
        socket.setNoDelay(true);
        for (const piece of pieces) await new Promise((resolve) => socket.write(piece, resolve));
        socket.end();
      });
      const front = await startFor(backend.url);
      expect(await sendRaw(front.port, handshake)).toMatch(
        /^HTTP\/1.1 103 Early Hints\r\nLink: <\/a>\r\n\r\nHTTP\/1.1 101 Switching Protocols\r\n(?:[\w-]+: [^\r]*\r\n)+\r\nhello$/,
      );
    }
  });

  it.each([
    [16, 101, switching()],
    [17, 502, switching()],
    [16, 403, okResponse('no', 403)],
    [17, 502, okResponse('no', 403)],
  ])('with %i interim responses before its response gets %i', async (count, status, response) => {
    const backend = await startRecording((_request, socket) => socket.end(interim.repeat(count) + response));
    const front = await startFor(backend.url);
    const received = await sendRaw(front.port, handshake);
    expect(statusOf(received.replaceAll(interim, ''))).toBe(status);
    expect(received.split(interim)).toHaveLength(status === 502 ? 1 : count + 1);
    expect(front.outcomes).toHaveLength(1);
  });

  it('whose response is slow times out like a WebSocket without a response', async () => {
    stopTimers();
    const backend = await startRecording((_request, socket) => {
      socket.write('HTTP/1.1 101 X\r\n');
      const drip = setInterval(() => {
        socket.write('X: y\r\n');
        vi.advanceTimersByTime(defaultBounds.upstreamHeadersTimeoutMs / 4);
      }, 50);
      socket.once('close', () => clearInterval(drip));
    });
    const front = await startFor(backend.url);
    expect(statusOf(await sendRaw(front.port, handshake))).toBe(504);
  });

  it('whose response arrived while the process was stopped for longer than its timeouts gets the response', async () => {
    stopTimers();
    const backend = await startRecording((_request, socket) => {
      socket.write(switching());
      // The pause imitates a process that was stopped for a while. The timeout is due, and its timer fires before the process reads the
      // response.
      void sleep(1).then(() => vi.advanceTimersByTime(defaultBounds.upstreamHeadersTimeoutMs));
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20);
    });
    const front = await startFor(backend.url, { healthPauseMs: 600_000 });
    (await openTunnel(front)).destroy();
    await tunnels(front, 0);
  });

  it.each([
    ['status 099', 502, 'HTTP/1.1 099 X\r\nContent-Length: 0\r\n\r\n'],
    ['garbage', 502, 'hello\r\n\r\n'],
    ['a 101 that has a length', 502, switching('Content-Length: 0')],
    ['a 101 that has a body', 502, `${switching('CONTENT-LENGTH:5')}hello`],
    ['a 101 in chunks', 502, switching('Transfer-Encoding: chunked')],
    ['a 101 of HTTP/1.0', 502, switching().replace('1.1', '1.0')],
    ['a 101 of another protocol', 502, switching().replace('HTTP', 'RTSP')],
    ['a 101 with bare line feeds', 502, switching().replaceAll('\r', '')],
    ['a 101 with a folded field', 502, switching('X: a', ' b')],
    ['a 101 with a space before a colon', 502, switching('X : a')],
    ['a 101 with too many fields', 502, switching(...Array.from({ length: 300 }, () => 'X: a'))],
    ['another protocol', 502, 'RTSP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n'],
    ['a faulty interim response', 502, `HTTP/1.1 103 X\r\nX: a\x01\r\n\r\n${switching()}`],
    ['an interim response of another protocol', 502, `RTSP/1.0 103 X\r\n\r\n${switching()}`],
    ['a 403 with a space before a colon', 502, okResponse('no', 403, ['X : a'])],
    ['a 403 with a length and chunks', 502, okResponse('', 403, ['Transfer-Encoding: chunked'])],
    ['a 403 in another coding', 502, 'HTTP/1.1 403 X\r\nTransfer-Encoding: gzip\r\n\r\n'],
    ['a head above the limit', 502, switching(`X: ${'a'.repeat(70_000)}`)],
    ['a 101 to another protocol', 502, 'HTTP/1.1 101 X\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n'],
    ['a 101 to nothing', 502, 'HTTP/1.1 101 X\r\n\r\n'],
    ['a control character', 502, switching('X: a\x01b')],
  ])('whose backend responds with %s gets %i', async (_what, status, raw) => {
    let closed: Promise<unknown> = Promise.resolve();
    const backend = await startRecording((_request, socket) => {
      closed = new Promise((resolve) => socket.once('close', resolve));
      socket.write(raw, 'latin1');
    });
    const front = await startFor(backend.url);
    const response = await sendRaw(front.port, handshake);
    expect(statusOf(response)).toBe(status);
    expect(response).not.toContain('hello');
    expect(front.outcomes).toHaveLength(1);
    await closed;
    expect(front.bugs).toEqual([]);
  });

  it('whose backend does not respond gets 504', async () => {
    stopTimers();
    let closed: Promise<unknown> = Promise.resolve();
    const backend = await startRecording((_request, socket) => {
      closed = new Promise((resolve) => socket.once('close', resolve));
    });
    const front = await startFor(backend.url);
    const response = sendRaw(front.port, handshake);
    await backend.received(1);
    vi.advanceTimersByTime(defaultBounds.upstreamHeadersTimeoutMs);
    expect(statusOf(await response)).toBe(504);
    expect(front.outcomes).toHaveLength(1);
    await closed;
    expect(front.bugs).toEqual([]);
  });

  it('whose client resets it before the target has a connection leaves the target healthy', async () => {
    let arrived = 0;
    // The TLS handshake of this target never ends.
    const silent = createTcpServer((socket) => {
      arrived += 1;
      socket.on('error', () => {});
    }).listen(0, '127.0.0.1');
    await once(silent, 'listening');
    started.push({ close: async () => void silent.close() });
    const front = await startFor(`https://127.0.0.1:${(silent.address() as AddressInfo).port}`);
    const client = connect(front.port, '127.0.0.1');
    client.on('error', () => {});
    client.write(handshake);
    await expect.poll(() => arrived).toBeGreaterThan(0);
    client.resetAndDestroy();
    await front.ended(1);
    expect(front.outcomes).toMatchObject([{ kind: 'client_gone' }]);
    // The error of the destroyed handshake comes after the outcome.
    await sleep(50);
    expect(front.targets()).toMatchObject([{ healthy: true }]);
  });

  it('without a backend gets 503', async () => {
    const backend = await startRecording(() => {});
    const front = await startFor(backend.url);
    await backend.close();
    expect(statusOf(await sendRaw(front.port, handshake))).toBe(503);
    expect(front.outcomes).toMatchObject([{ code: 'upstream_unavailable', retryAfterSeconds: 1 }]);
    started.splice(0, 1);
  });

  it('is closed with the forwarder', async () => {
    const backend = await startRecording((_request, socket) => socket.write(switching()));
    const front = await startFor(backend.url);
    const client = connect(front.port, '127.0.0.1');
    client.on('error', () => {});
    client.write(handshake);
    await once(client, 'data');
    const closed = once(client, 'close');
    await front.forwarder.close();
    await closed;
  });

  it("takes no connections from requests, and gets 503 above the target's limit", async () => {
    const backend = await startRecording(acceptOrDecline);
    const room = { connectionsPerTargetMax: 1, queuedPerTargetMax: 1, tunnelsPerTargetMax: 5 };
    const front = await startFor(backend.url, room);
    const holders = ['a', 'b', 'c', 'd', 'e'];
    const clients = await Promise.all(holders.map((holder) => openTunnel(front, { holder })));
    expect(await sendRaw(front.port, get('/'))).toMatch(/fine$/);
    expect(statusOf(await sendRaw(front.port, handshake))).toBe(503);
    expect(front.outcomes.at(-1)).toMatchObject({ code: 'upstream_unavailable', attempts: 0 });
    for (const client of clients) client.destroy();
  });

  it('above the limit of its key is refused until the key closes another', async () => {
    const backend = await startRecording(acceptOrDecline);
    const front = await startFor(backend.url, { tunnelsPerKeyMax: 2 });
    const [first, second] = [await openTunnel(front), await openTunnel(front)];
    expect(statusOf(await sendRaw(front.port, handshake))).toBe(503);
    expect(front.outcomes.at(-1)).toMatchObject({ code: 'too_many_websockets', attempts: 0 });
    first.destroy();
    await tunnels(front, 1);
    (await openTunnel(front)).destroy();
    second.destroy();
    await tunnels(front, 0);
  });

  it('is opened to a target although other keys open as many WebSockets as they may', async () => {
    const backend = await startRecording(acceptOrDecline);
    const front = await startFor(backend.url, { tunnelsPerTargetMax: 16, tunnelsPerKeyMax: 16 });
    for (const holder of ['a', 'b', 'c', 'd']) {
      const before = front.outcomes.length;
      for (let opened = 0; opened < 16; opened++) {
        void sendRaw(front.port, handshakeOf(holder));
        await front.ended(before + opened + 1);
      }
      expect(front.outcomes.at(-1)).toMatchObject({ code: 'too_many_websockets', attempts: 0 });
    }
    expect(front.targets()[0]?.tunnels).toBeLessThan(16);
    await openTunnel(front, { holder: 'e' });
  });

  it.each([
    ['sends more and closes too', (client: Socket) => client.end('more')],
    ['sends more and stays', (client: Socket) => client.write('more')],
    ['only stays', () => {}],
  ])('ends soon after its backend has closed it, when the client %s', async (_what, react) => {
    const backend = await startRecording((_request, socket) => {
      socket.write(switching());
      socket.once('data', () => socket.end('last words'));
    });
    const front = await startFor(backend.url, { lingerTimeoutMs: 100 });
    const client = await openTunnel(front, { allowHalfOpen: true });
    let received = '';
    client.on('data', (text) => {
      received += text;
    });
    client.write('close');
    await once(client, 'end');
    expect(received).toBe('last words');
    react(client);
    await tunnels(front, 0);
  });

  it('without traffic is closed on both sides', async () => {
    let closed: Promise<unknown> = Promise.resolve();
    const backend = await startRecording((_request, socket) => {
      closed = new Promise((resolve) => socket.once('close', resolve));
      socket.write(switching());
    });
    const front = await startFor(backend.url, { tunnelIdleTimeoutMs: 100 });
    const client = await openTunnel(front);
    await Promise.all([once(client, 'close'), closed]);
  });

  it('is closed by a drain after its backend’s last octets, and no new WebSocket is opened', async () => {
    const backend = await startRecording((_request, socket) => {
      socket.write(switching());
      socket.once('end', () => socket.end('last words'));
    });
    const front = await startFor(backend.url);
    const client = await openTunnel(front);
    let received = '';
    client.on('data', (text) => {
      received += text;
    });
    front.forwarder.drainTunnels();
    await once(client, 'end');
    expect(received).toBe('last words');
    expect(statusOf(await sendRaw(front.port, handshake))).toBe(503);
    expect(front.outcomes.at(-1)).toMatchObject({ cause: 'the gateway drains' });
    await tunnels(front, 0);
  });

  it('whose backend and client ignore the drain is still closed', async () => {
    const backend = await startRecording(acceptOrDecline);
    const front = await startFor(backend.url, { lingerTimeoutMs: 50 });
    const client = connect({ port: front.port, host: '127.0.0.1', allowHalfOpen: true });
    client.write(handshake);
    await once(client, 'data');
    front.forwarder.drainTunnels();
    await tunnels(front, 0);
    client.destroy();
  });

  it('whose client is gone and whose target never closes is cut after the grace of a drain', async () => {
    let ended = false;
    const backend = await startRecording((_request, socket) => {
      socket.allowHalfOpen = true;
      socket.once('end', () => {
        ended = true;
      });
      socket.write(switching());
    });
    const front = await startFor(backend.url, { lingerTimeoutMs: 50 });
    (await openTunnel(front)).destroy();
    await tunnels(front, 0);
    expect(ended).toBe(true);
  });

  it('whose client has ended its side still gets the last octets of its target', async () => {
    const backend = await startRecording((_request, socket) => {
      socket.write(switching());
      socket.once('end', () => socket.end('last words'));
    });
    const front = await startFor(backend.url);
    const client = await openTunnel(front, { allowHalfOpen: true });
    let received = '';
    client.on('data', (text) => (received += text));
    client.end();
    await once(client, 'close');
    expect(received).toBe('last words');
  });
});
