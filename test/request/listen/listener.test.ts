import { once } from 'node:events';
import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, test } from 'vitest';
import type { ClientResponse } from '../../../gateway/request/respond/client-response.ts';
import { plainAddress } from '../../../gateway/shared/addresses/address-group.ts';
import { defaultBounds } from '../../../gateway/shared/timeouts-and-sizes.ts';
import { bytesTaken } from '../../../gateway/shared/tls/bytes-taken.ts';
import { answer, expectRejection, refuse, startListener } from '../../support/listener-fixture.ts';
import { makeCertificate } from '../../support/make-certificate.ts';
import { exchangeRaw, openRawClient } from '../../support/raw-http.ts';
import { requestDuringStop } from '../../support/request-during-stop.ts';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

function heapUsed(): number {
  collectGarbage();
  return process.memoryUsage().heapUsed;
}

const get = 'GET /v1/pets HTTP/1.1\r\nHost: a\r\n\r\n';

describe('sizes', () => {
  test.each([9_000, 30_000, 60_000])('a target of %i bytes gets 414', async (length) => {
    const { port } = await startListener();
    const target = `/${'a'.repeat(length - 1)}`;
    const [response] = await exchangeRaw(port, `GET ${target} HTTP/1.1\r\nHost: a\r\n\r\n`);
    expectRejection(response, 'uri_too_long');
  });

  test.each([33_000, 1_000_000])('a header field of %i bytes gets 431', async (length) => {
    const { port } = await startListener();
    const [response] = await exchangeRaw(
      port,
      `GET / HTTP/1.1\r\nHost: a\r\nX: ${'a'.repeat(length)}\r\n\r\n`,
    );
    expectRejection(response, 'headers_too_large');
  });

  test('too many header fields get 431', async () => {
    const { port } = await startListener();
    const fields = 'X: a\r\n'.repeat(defaultBounds.headersCountMax);
    const [response] = await exchangeRaw(port, `GET / HTTP/1.1\r\nHost: a\r\n${fields}\r\n`);
    expectRejection(response, 'headers_too_large');
  });

  test('endless trailers get 431 in place of the response', async () => {
    const { port } = await startListener();
    const head = 'POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n';
    const responses = await exchangeRaw(port, `${head}X: ${'a'.repeat(40_000)}\r\n\r\n`);
    expect(responses).toHaveLength(1);
    expectRejection(responses[0], 'headers_too_large');
  });
});

describe('times', () => {
  // The timeouts begin when the connection opens. The timeouts are so long that the server reads the client's data before a timeout
  // expires.
  const bounds = { headersTimeoutMs: 2_000, requestTimeoutMs: 2_500 };

  test('an unfinished head gets 408', async () => {
    const { port } = await startListener({ bounds });
    const [response, ...more] = await exchangeRaw(port, 'GET / HTTP/1.1\r\nHost: a\r\nX: a');
    expectRejection(response, 'request_timeout');
    expect(more).toEqual([]);
  });

  test('an unfinished second head gets 408 after the first response', async () => {
    const { port } = await startListener({ bounds });
    const [first, second] = await exchangeRaw(port, `${get}GET / HTTP/1.1\r\nHost`);
    expect(first?.status).toBe(200);
    expectRejection(second, 'request_timeout');
  });

  test('an unfinished body gets 408 in place of the response', async () => {
    const { port } = await startListener({ bounds });
    const responses = await exchangeRaw(port, 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc');
    expect(responses).toHaveLength(1);
    expectRejection(responses[0], 'request_timeout');
  });

  describe.each([
    ['head', 'GET / HTTP/1.1\r\nHos', 't: a\r\n\r\n'],
    ['body', 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nab', 'cd'],
  ])('a %s that begins behind waiting requests', (_, begin, rest) => {
    const put = 'PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n';

    /**
     * The handler delays the first response until the timeouts of the last request have passed. The server pauses reading during this
     * delay.
     */
    async function sendBehindWaiting(later: string) {
      const held = Promise.withResolvers<void>();
      const { port } = await startListener({
        bounds: { headersTimeoutMs: 1_000, requestTimeoutMs: 2_000 },
        handlers: {
          async onRequest(req, res) {
            if (req.method === 'PUT') await held.promise;
            return answer(req, res);
          },
        },
      });
      const client = await openRawClient(port);
      client.send(`${put}${get}${begin}`);
      await sleep(2_500);
      client.send(later);
      held.resolve();
      for (let each = 0; each < 2; each++) expect((await client.response()).status).toBe(200);
      return client;
    }

    test('does not time out while those requests wait', async () => {
      const client = await sendBehindWaiting(rest);
      expect((await client.response()).status).toBe(200);
      await sleep(2_500);
      client.send(get);
      expect((await client.response()).status).toBe(200);
      client.destroy();
    });

    test('gets 408 when it stays unfinished', async () => {
      const client = await sendBehindWaiting('');
      expectRejection(await client.response(), 'request_timeout');
      client.destroy();
    });
  });

  test('a connection without a byte is closed without a response', async () => {
    const { port } = await startListener({ bounds: { headersTimeoutMs: 60, requestTimeoutMs: 120 } });
    expect(await exchangeRaw(port, '')).toEqual([]);
  });

  test('a request that arrives while the process is stopped for longer than the timeouts is served', async () => {
    const { port } = await startListener({
      bounds: { headersTimeoutMs: 100, requestTimeoutMs: 150, keepAliveTimeoutMs: 100 },
    });
    const request = 'GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n';
    expect(await requestDuringStop(port, request, 300)).toMatch(/^HTTP\/1.1 200 /);
  });

  test('an idle connection is closed without a response', async () => {
    const { port } = await startListener({ bounds: { keepAliveTimeoutMs: 1_500 } });
    const responses = await exchangeRaw(port, get);
    expect(responses.map(({ status }) => status)).toEqual([200]);
  });

  test.each([
    [1_500, 400],
    [1_500, 6_000],
  ])(
    'an idle connection stays open for %i ms, whatever the write timeout',
    async (keepAliveTimeoutMs, writeTimeoutMs) => {
      const { port } = await startListener({ bounds: { keepAliveTimeoutMs, writeTimeoutMs } });
      const startedMs = performance.now();
      await exchangeRaw(port, get);
      // Node's timers may fire a millisecond early.
      expect(performance.now() - startedMs).toBeGreaterThan(keepAliveTimeoutMs - 5);
    },
  );

  test('a client that reads nothing of its response is disconnected', async () => {
    const { listener, port } = await startListener({
      bounds: { writeTimeoutMs: 100, clientReadAheadMaxMs: 0 },
      handlers: { onRequest: (_req, res) => void res.end(Buffer.alloc(64 << 20)) },
    });
    const client = await openRawClient(port);
    client.socket.pause();
    await expect.poll(() => listener.connections()).toBe(1);
    client.send(get);
    await expect.poll(() => listener.connections()).toBe(0);
    client.destroy();
  });

  test('a small burst of the kernel does not end the time for reading the large burst before it', async () => {
    const clientBytesPerSecondMin = 1_000_000;
    let taken = () => 0;
    const { listener, port } = await startListener({
      bounds: { writeTimeoutMs: 100, clientReadAheadMaxMs: 60_000, clientBytesPerSecondMin },
      handlers: {
        onRequest: ({ socket }, res) => {
          taken = () => bytesTaken(socket);
          res.end(Buffer.alloc(64 << 20));
        },
      },
    });
    const client = await openRawClient(port);
    client.socket.pause();
    client.send(get);
    const startedMs = performance.now();
    await expect.poll(() => taken()).toBeGreaterThan(0);
    await sleep(400);
    const first = taken();
    client.socket.on('data', () => taken() > first && client.socket.pause()).resume();
    await expect.poll(() => taken()).toBeGreaterThan(first);
    // The client then reads nothing, for most of the time that a client at the minimum needs for all octets.
    const neededMs = (taken() * 1000) / clientBytesPerSecondMin;
    await sleep(startedMs + neededMs * 0.75 - performance.now());
    expect(listener.connections()).toBe(1);
    client.destroy();
  });

  test('a response that begins later than the write timeout is not cut off', async () => {
    const { port } = await startListener({
      bounds: { writeTimeoutMs: 50, clientReadAheadMaxMs: 0 },
      handlers: { onRequest: (_req, res) => void setTimeout(() => res.end('late'), 250) },
    });
    const client = await openRawClient(port);
    client.send(get);
    expect((await client.response()).body).toBe('late');
    client.destroy();
  });
});

describe('counts', () => {
  test('connections above the limit of one address are closed at once, and other addresses are served', async () => {
    const { port } = await startListener({ bounds: { connectionsPerAddressMax: 2 } });
    const held = await Promise.all([openRawClient(port), openRawClient(port)]);
    const third = await openRawClient(port);
    await third.closed;
    const neighbour = await openRawClient(port, { localAddress: '127.0.0.2' });
    for (const client of [...held, neighbour]) {
      client.send(get);
      expect((await client.response()).status).toBe(200);
    }
    held[0]?.destroy();
    await expect.poll(async () => (await statusOf(port)) ?? 'closed').toBe(200);
    for (const client of [...held, neighbour]) client.destroy();
  });

  test('connections above the total limit are closed at once', async () => {
    const { port } = await startListener({ bounds: { connectionsMax: 1 } });
    const held = await openRawClient(port);
    const second = await openRawClient(port, { localAddress: '127.0.0.2' });
    await second.closed;
    held.send(get);
    expect((await held.response()).status).toBe(200);
    held.destroy();
  });

  test('one address gets at most half of all connections', async () => {
    const { port } = await startListener({ bounds: { connectionsMax: 4 } });
    const held = await Promise.all([openRawClient(port), openRawClient(port)]);
    const third = await openRawClient(port);
    await third.closed;
    const neighbour = await openRawClient(port, { localAddress: '127.0.0.2' });
    for (const client of [...held, neighbour]) {
      client.send(get);
      expect((await client.response()).status).toBe(200);
      client.destroy();
    }
  });

  test('the count of connections is the number of open connections, down to 0', async () => {
    const { listener, port } = await startListener();
    const clients = await Promise.all(Array.from({ length: 20 }, () => openRawClient(port)));
    await expect.poll(() => listener.connections()).toBe(20);
    for (const client of clients) client.destroy();
    await expect.poll(() => listener.connections()).toBe(0);
  });
});

test('an IPv4 client of a dual-stack listener has its IPv4 address', async () => {
  const seen: string[] = [];
  const { port } = await startListener({
    host: '',
    handlers: {
      onRejection: (res) => {
        seen.push(plainAddress(res.req.socket.remoteAddress ?? ''));
        refuse(res, 'invalid_request');
      },
    },
  });
  await exchangeRaw(port, 'garbage\r\n\r\n');
  expect(seen).toEqual(['127.0.0.1']);
});

async function statusOf(port: number): Promise<number | undefined> {
  const client = await openRawClient(port);
  try {
    client.send(get);
    return (await client.response()).status;
  } catch {
    return undefined;
  } finally {
    client.destroy();
  }
}

describe('pipelining', () => {
  test('requests of one connection are served one after the other, with responses in order', async () => {
    let underWay = 0;
    let mostUnderWay = 0;
    const { port } = await startListener({
      handlers: {
        onRequest: async (req, res) => {
          mostUnderWay = Math.max(mostUnderWay, ++underWay);
          await sleep(req.url === '/0' ? 20 : 1);
          underWay--;
          res.end(req.url);
        },
      },
    });
    const client = await openRawClient(port);
    client.send(Array.from({ length: 10 }, (_, i) => get.replace('/v1/pets', `/${i}`)).join(''));
    for (let i = 0; i < 10; i++) expect((await client.response()).body).toBe(`/${i}`);
    expect(mostUnderWay).toBe(1);
    client.destroy();
  });

  test('pipelined requests are served up to the limit, and the last response has Connection: close', async () => {
    const { port, served } = await startListener({ bounds: { pipelinedMax: 4 } });
    const responses = await exchangeRaw(port, get.repeat(100));
    expect(responses.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
    expect(responses.map(({ headers }) => headers.get('connection'))).toEqual([
      ...Array(4).fill('keep-alive'),
      'close',
    ]);
    expect(served).toHaveLength(5);
  });

  test('pipelined requests with bodies in several packets are all served', async () => {
    const { port } = await startListener();
    const client = await openRawClient(port);
    const post = 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2000\r\n\r\n'.concat('b'.repeat(2000));
    client.send(post.repeat(60));
    for (let i = 0; i < 60; i++) expect(JSON.parse((await client.response()).body).bodyBytes).toBe(2000);
    client.send(get);
    expect((await client.response()).status).toBe(200);
    client.destroy();
  });

  test('a client that ends its side behind its requests gets all responses', async () => {
    const { port } = await startListener({
      handlers: { onRequest: (_req, res) => setImmediate(() => res.end('ok')) },
    });
    const client = await openRawClient(port);
    client.socket.end(get.repeat(20));
    expect(await client.responsesToEnd()).toHaveLength(20);
  });

  test('a fault after the last request gets its error response after all other responses', async () => {
    const { port } = await startListener({
      handlers: { onRequest: (_req, res) => setImmediate(() => res.end('ok')) },
    });
    const client = await openRawClient(port);
    client.socket.end(`${get.repeat(3)}garbage\r\n\r\n`);
    const responses = await client.responsesToEnd();
    expect(responses.map(({ status }) => status)).toEqual([200, 200, 200, 400]);
  });

  test('requests behind a response that closes the connection are not served', async () => {
    const seen: string[] = [];
    const { port } = await startListener({
      handlers: {
        onRequest: (req, res) => {
          seen.push(req.url ?? '');
          setTimeout(() => refuse(res, 'missing_key'), 5);
        },
      },
    });
    const responses = await exchangeRaw(port, get.repeat(3));
    expect(responses).toHaveLength(1);
    expectRejection(responses[0], 'missing_key');
    expect(seen).toHaveLength(1);
  });

  test('octets after the last request of a connection are not read while it is served', async () => {
    // Node's parser considers this connection persistent. The gateway does not consider this connection persistent, because the
    // client uses HTTP/1.0.
    const last = 'GET /last HTTP/1.0\r\nHost: a\r\nProxy-Connection: keep-alive\r\n\r\n';
    const held = Promise.withResolvers<ClientResponse>();
    const { port } = await startListener({
      handlers: { onRequest: (req, res) => (req.url === '/last' ? held.resolve(res) : res.end('ok')) },
    });
    const client = await openRawClient(port);
    client.send(last);
    const res = await held.promise;
    client.send(`GET / HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(4_000)}\r\n\r\n`.repeat(8_000));
    const other = await openRawClient(port);
    for (let i = 0; i < 200; i++) {
      other.send(get);
      await other.response();
    }
    expect(res.socket?.bytesRead).toBeLessThan(8_000_000);
    res.end('the last');
    expect(await client.response()).toMatchObject({ body: 'the last' });
    client.destroy();
    other.destroy();
  });

  test('octets together with the last request of a connection take no memory while it is served', async () => {
    const held: ClientResponse[] = [];
    const all = Promise.withResolvers<void>();
    const connections = 20;
    const { port } = await startListener({
      bounds: { pipelinedMax: 4 },
      handlers: { onRequest: (_req, res) => held.push(res) === connections && all.resolve() },
    });
    const flood = Buffer.from('GET / HTTP/1.1\r\n\r\n'.repeat(3_500), 'latin1');
    const before = heapUsed();
    const clients = await Promise.all(Array.from({ length: connections }, () => openRawClient(port)));
    for (const client of clients) client.send(flood);
    await all.promise;
    expect(heapUsed() - before).toBeLessThan(20_000_000);
    for (const client of clients) client.destroy();
  });

  test('bytes after a request with Connection: close are ignored', async () => {
    const { port, served } = await startListener();
    const responses = await exchangeRaw(
      port,
      `${get.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n')}${get}garbage`,
    );
    expect(responses.map(({ status }) => status)).toEqual([200]);
    expect(served).toHaveLength(1);
  });

  test('a parser error during a response gets its error response afterwards', async () => {
    const { port } = await startListener({
      handlers: {
        onRequest: async (_req, res) => {
          res.write('half ');
          await sleep(30);
          res.end('whole');
        },
      },
    });
    const [first, second] = await exchangeRaw(port, `${get}garbage\r\n\r\n`);
    expect(first?.body).toBe('half whole');
    expectRejection(second, 'invalid_request');
  });

  test('a fault in a body whose response is already decided does not change that response', async () => {
    const { port } = await startListener({
      handlers: {
        onRequest: (req, res) => req.socket.once('end', () => setImmediate(refuse, res, 'payload_too_large')),
      },
    });
    const client = await openRawClient(port);
    client.send('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhalf');
    client.socket.end();
    const responses = await client.responsesToEnd();
    expect(responses).toHaveLength(1);
    expectRejection(responses[0], 'payload_too_large');
  });

  test('a fault in a body whose response has begun cuts the connection', async () => {
    const { port } = await startListener({
      handlers: { onRequest: (_req, res) => void res.write('begun') },
    });
    const client = await openRawClient(port);
    client.send('POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n');
    await expect.poll(() => client.socket.bytesRead).toBeGreaterThan(0);
    client.send('zz\r\n');
    await client.closed;
    await expect(client.response()).rejects.toThrow();
  });
});

describe('a client that closes its sending side', () => {
  const certificate = makeCertificate();

  test.each([
    ['after one request', [get], false],
    ['after one request over TLS', [get], true],
    ['after three requests', [get, get, get], false],
    ['after a request with a body', ['POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc'], false],
  ])('gets the response %s, and the connection ends', async (_when, requests, isTls) => {
    const { listener, port } = await startListener({
      ...(isTls && { certificate }),
      handlers: {
        async onRequest(req, res) {
          // The response begins after the listener has received the end of the input, if that is possible at all.
          if (requests.length === 1) await once(req.socket, 'end');
          await answer(req, res);
        },
      },
    });
    const client = await openRawClient(port, isTls ? { ca: certificate.cert, allowHalfOpen: true } : {});
    client.socket.end(requests.join(''));
    const responses = await client.responsesToEnd();
    expect(responses.map(({ status }) => status)).toEqual(requests.map(() => 200));
    if (requests.length === 1) expect(responses[0]?.headers.get('connection')).toBe('close');
    await expect.poll(() => listener.connections()).toBe(0);
  });

  test('gets the rest of a response that has begun', async () => {
    const { listener, port } = await startListener({
      handlers: {
        onRequest(req, res) {
          res.write('half ');
          req.socket.once('end', () => setImmediate(() => res.end('whole')));
        },
      },
    });
    const client = await openRawClient(port);
    client.send(get);
    await expect.poll(() => client.socket.bytesRead).toBeGreaterThan(0);
    client.socket.end();
    expect((await client.responsesToEnd()).map(({ body }) => body)).toEqual(['half whole']);
    await expect.poll(() => listener.connections()).toBe(0);
  });

  test('counts as gone when it has received nothing for some time, whoever else is served', async () => {
    const gone = Promise.withResolvers<void>();
    const { listener, port } = await startListener({
      bounds: { halfClosedTimeoutMs: 50, writeTimeoutMs: 600_000, keepAliveTimeoutMs: 600_000 },
      handlers: { onRequest: (_req, res) => void res.once('close', gone.resolve) },
    });
    const [client, open] = [await openRawClient(port), await openRawClient(port)];
    open.send(get);
    client.socket.end(get);
    await gone.promise;
    await client.closed;
    await expect.poll(() => listener.connections()).toBe(1);
    open.destroy();
  });

  test('is noticed at once when it resets the connection', async () => {
    const gone = Promise.withResolvers<void>();
    const { port } = await startListener({
      bounds: { halfClosedTimeoutMs: 600_000 },
      handlers: { onRequest: (_req, res) => void res.once('close', gone.resolve) },
    });
    const client = await openRawClient(port);
    client.socket.on('error', () => {});
    client.socket.write(get, () => client.socket.resetAndDestroy());
    await gone.promise;
  });

  test('gets its response during a drain', async () => {
    const begun = Promise.withResolvers<() => void>();
    const { listener, port } = await startListener({
      handlers: {
        async onRequest(req, res) {
          await once(req.socket, 'end');
          begun.resolve(() => void answer(req, res));
        },
      },
    });
    const client = await openRawClient(port);
    client.socket.end(get);
    const respond = await begun.promise;
    const drained = listener.drain({ deadlineMs: 600_000 });
    respond();
    expect((await client.response()).status).toBe(200);
    await drained;
  });
});

describe('Expect: 100-continue', () => {
  const head = 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n';

  test('100 is sent once the request is admitted', async () => {
    const { port } = await startListener();
    const client = await openRawClient(port);
    client.send(head);
    expect((await client.response()).status).toBe(100);
    client.send('abc');
    expect(JSON.parse((await client.response()).body).bodyBytes).toBe(3);
    client.destroy();
  });

  test('a refusal is the only response, without a 100', async () => {
    const { port } = await startListener({
      handlers: { onRequest: (_req, res) => refuse(res, 'missing_key') },
    });
    const responses = await exchangeRaw(port, head);
    expect(responses).toHaveLength(1);
    expectRejection(responses[0], 'missing_key');
  });
});

describe('a request that speaks another protocol', () => {
  test.each(['RTSP/1.0', 'RTSP/1.1'])('is refused with 400 when it has %s', async (version) => {
    const { port, served } = await startListener();
    for (const method of ['GET', 'POST', 'OPTIONS']) {
      const responses = await exchangeRaw(
        port,
        `${method} /v1/pets ${version}\r\nHost: a\r\nCSeq: 1\r\n\r\n`,
      );
      expectRejection(responses[0], 'invalid_request');
    }
    expect(served).toEqual([]);
  });

  test('is served when only its URI names another protocol', async () => {
    const { port, served } = await startListener();
    await exchangeRaw(
      port,
      'GET /RTSP/1.0?a=RTSP/1.0 HTTP/1.1\r\nHost: a\r\nX: RTSP/1.0\r\nConnection: close\r\n\r\n',
    );
    expect(served).toEqual(['GET /RTSP/1.0?a=RTSP/1.0']);
  });
});

describe('a HEAD that the parser refuses', () => {
  const fields = (length: number) => `Host: a\r\nX: ${'a'.repeat(length)}\r\n\r\n`;
  test.each([
    [400, 'HEAD /v1/p ets HTTP/1.1\r\nHost: a\r\n\r\n'],
    [414, `HEAD /${'a'.repeat(60_000)} HTTP/1.1\r\nHost: a\r\n\r\n`],
    [431, `HEAD / HTTP/1.1\r\n${fields(33_000)}`],
  ])('with %i gets no body', async (status, bytes) => {
    const { port } = await startListener();
    for (const before of ['', '\r\n']) {
      const client = await openRawClient(port);
      client.send(before + bytes);
      const response = await client.response({ head: true });
      expect(response.status).toBe(status);
      expect(Number(response.headers.get('content-length'))).toBeGreaterThan(20);
      expect(await client.responsesToEnd()).toEqual([]);
    }
  });

  test('after another request gets no body either', async () => {
    const { port } = await startListener();
    const client = await openRawClient(port);
    client.send(`${get}HEAD / HTTP/1.1\r\n${fields(33_000)}`);
    expect((await client.response()).status).toBe(200);
    expect((await client.response({ head: true })).status).toBe(431);
    expect(await client.responsesToEnd()).toEqual([]);
  });

  test('with a malformed field gets no body', async () => {
    const { port } = await startListener();
    const client = await openRawClient(port);
    client.send('HEAD / HTTP/1.1\r\nHost: a\r\nA: b\r\nX Y\r\n\r\n');
    expect((await client.response({ head: true })).status).toBe(400);
    expect(await client.responsesToEnd()).toEqual([]);
  });

  test('is not assumed when the end of a body looks like HEAD', async () => {
    const { port } = await startListener();
    for (const [length, rest] of [
      [5, 'HEAD / HTTP/1.1\r\nfragment\r\n\r\n'],
      [1, 'HEAD /v1 HTTP/1.1\r\n\r\n'],
      [30, 'GET / HTTP/1.1\r\n\r\nHEAD / HTTP/1.1\r\nHost: a\r\n\r\n'],
    ] as const) {
      const responses = await exchangeRaw(
        port,
        `POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${length}\r\n\r\n${rest}`,
      );
      expect(responses[0]?.status).toBe(200);
      // The second response has a body, so the server did not treat the malformed request as HEAD.
      expectRejection(responses[1], 'method_not_implemented');
      expect(responses).toHaveLength(2);
    }
  });

  test('is not assumed for a refused GET after a HEAD, whose response has a body', async () => {
    const { port } = await startListener();
    const client = await openRawClient(port);
    client.send(`${get.replace('GET', 'HEAD')}GET / HTTP/1.1\r\n${fields(33_000)}`);
    expect((await client.response({ head: true })).status).toBe(200);
    expectRejection(await client.response(), 'headers_too_large');
  });
});

test.each([
  ['before the response', true],
  ['after it', false],
])('a connection that got 400 is closed when its client closes %s', async (_when, early) => {
  const { listener, port } = await startListener({ bounds: { lingerTimeoutMs: 600_000 } });
  const client = await openRawClient(port);
  client.send('GET /v1/p ets HTTP/1.1\r\nHost: a\r\n\r\n');
  if (early) client.socket.end();
  expectRejection(await client.response(), 'invalid_request');
  client.socket.end();
  await expect.poll(() => listener.connections()).toBe(0);
});

describe('upgrades', () => {
  test.each([
    ['in the packet of the head', ['ZZ\r\n']],
    ['behind a chunk in the packet of the head', ['2\r\nhi\r\nZZ\r\n']],
    ['in a later packet', ['', '2\r\nhi\r\n', '3\r\nabcd\r\n']],
    ['behind half a size', ['2', '\rX']],
  ])('a broken chunk after an ignored upgrade gets 400 at once: %s', async (_where, pieces) => {
    const { port } = await startListener({ bounds: { requestTimeoutMs: 600_000 } });
    const client = await openRawClient(port);
    const [first = '', ...later] = pieces;
    const head = `${upgrade('h2c').replace('GET', 'POST').slice(0, -2)}Transfer-Encoding: chunked\r\n\r\n`;
    client.send(head + first);
    for (const piece of later) {
      await sleep(20);
      client.send(piece);
    }
    const responses = await client.responsesToEnd();
    expect(responses).toHaveLength(1);
    expectRejection(responses[0], 'invalid_request');
    // Node reuses the parser for another connection, so the next request must still be served.
    expect(await statusOf(port)).toBe(200);
  });

  test('a body after an ignored upgrade is read completely, for any split', async () => {
    const { port } = await startListener();
    const head = upgrade('h2c').replace('GET', 'POST').slice(0, -2);
    const cut = [
      [`${head}Transfer-Encoding: chunked\r\n\r\n2\r`, '\nh', 'i\r\n0', '\r\n\r', '\n'],
      [`${head}Content-Length: 200000\r\n\r\n`, 'x'.repeat(200_000)],
      [`${head}Content-Length: 2\r\n\r\n`, 'h', `i${get}`],
    ];
    for (const [first = '', ...later] of cut) {
      const client = await openRawClient(port);
      client.send(first);
      for (const piece of later) {
        await sleep(20);
        client.send(piece);
      }
      const responses = await client.responsesToEnd();
      expect(responses.map(({ status }) => status)).toEqual([200]);
      expect(JSON.parse(responses[0]?.body ?? '').bodyBytes).toBe(first.includes('200000') ? 200_000 : 2);
    }
  });

  const upgrade = (protocol: string) =>
    `GET /v1/pets HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: ${protocol}\r\n\r\n`;

  test('an upgrade to h2c is ignored and the request served, but no later request', async () => {
    const { port } = await startListener();
    const h2c = upgrade('h2c').replace('Connection: Upgrade', 'Connection: Upgrade, HTTP2-Settings');
    const [response, ...more] = await exchangeRaw(port, h2c + get);
    expect(response?.status).toBe(200);
    expect(more).toEqual([]);
  });

  test('a WebSocket handshake with Expect: 100-continue is served as a request', async () => {
    const onUpgrade = () => expect.unreachable();
    const { port } = await startListener({ handlers: { wantsUpgrade: () => true, onUpgrade } });
    const expecting = upgrade('websocket').replace('\r\n\r\n', '\r\nExpect: 100-continue\r\n\r\n');
    const responses = await exchangeRaw(port, expecting);
    expect(responses.map(({ status }) => status)).toEqual([100, 200]);
  });

  test.each([
    ['a length', 'Content-Length: 3\r\n\r\nabc'],
    ['chunks', 'Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n'],
  ])(
    'a POST with an upgrade to h2c, as Java and curl send it, is served with its body of %s',
    async (_, rest) => {
      const { port } = await startListener();
      const [response] = await exchangeRaw(port, upgrade('h2c').replace('GET', 'POST').slice(0, -2) + rest);
      expect(JSON.parse(response?.body ?? '')).toMatchObject({ method: 'POST', bodyBytes: 3 });
    },
  );

  const onUpgrade = (_req: unknown, res: ClientResponse) => refuse(res, 'missing_key');

  test('an upgrade to WebSocket can be refused like a request, and the connection is closed', async () => {
    const { port } = await startListener({ handlers: { wantsUpgrade: () => true, onUpgrade } });
    const [response, ...more] = await exchangeRaw(port, `${upgrade('websocket')}frames`);
    expectRejection(response, 'missing_key');
    expect(more).toEqual([]);
  });

  test('an upgrade to WebSocket behind a request in flight, or with a body, is served as a request', async () => {
    const { port } = await startListener({ handlers: { wantsUpgrade: () => true, onUpgrade } });
    const client = await openRawClient(port);
    client.send(get + upgrade('websocket'));
    expect((await client.response()).status).toBe(200);
    expect((await client.response()).status).toBe(200);
    const [response] = await exchangeRaw(
      port,
      `${upgrade('websocket').slice(0, -2)}Content-Length: 1\r\n\r\nx`,
    );
    expect(response?.status).toBe(200);
  });

  test('the refusal of an upgrade reaches a reading client completely, at any length', async () => {
    const body = Buffer.alloc(5 << 20, 'a');
    const { port } = await startListener({
      handlers: {
        wantsUpgrade: () => true,
        onUpgrade: (_req, res) =>
          void Readable.from([body.subarray(1 << 20), body.subarray(0, 1 << 20)]).pipe(res),
      },
    });
    const client = await openRawClient(port);
    client.send(upgrade('websocket'));
    expect((await client.response()).body).toHaveLength(body.length);
    await client.closed;
  });

  test('a client that reads nothing of the refusal of its upgrade is disconnected', async () => {
    const { listener, port } = await startListener({
      bounds: { writeTimeoutMs: 100, clientReadAheadMaxMs: 0 },
      handlers: {
        wantsUpgrade: () => true,
        onUpgrade: (_req, res) => void res.end(Buffer.alloc(64 << 20)),
      },
    });
    const client = await openRawClient(port);
    client.socket.pause();
    await expect.poll(() => listener.connections()).toBe(1);
    client.send(upgrade('websocket'));
    await expect.poll(() => listener.connections()).toBe(0);
    client.destroy();
  });

  test('a reset after an upgrade affects no other connection', async () => {
    const { listener, port } = await startListener({
      handlers: {
        wantsUpgrade: () => true,
        onUpgrade: (_req, res, socket) => {
          if (res.socket) res.detachSocket(res.socket);
          socket.write('HTTP/1.1 101 Switching Protocols\r\n\r\n');
        },
      },
    });
    const client = await openRawClient(port);
    client.send(upgrade('websocket'));
    expect((await client.response()).status).toBe(101);
    client.socket.resetAndDestroy();
    await expect.poll(() => listener.connections()).toBe(0);
    expect(await statusOf(port)).toBe(200);
  });
});
