import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { defaultBounds } from '../../../gateway/shared/timeouts-and-sizes.ts';
import { okResponse, type RecordingBackend, startRecordingBackend } from '../../support/recording-backend.ts';
import { stopClock } from '../../support/stopped-clock.ts';
import { until } from '../../support/until.ts';
import { type Front, get, sendRaw, startFront, statusOf } from './start-front.ts';

let backend: RecordingBackend;
let front: Front;

beforeEach(async () => {
  backend = await startRecordingBackend();
  front = await startFront({ url: backend.url, bounds: { sweepIntervalMs: 50 } });
});

afterEach(async () => {
  await front.close();
  await backend.close();
});

describe('a backend that sends a malformed response', () => {
  it.each([
    ['status 099', 'HTTP/1.1 099 X\r\nContent-Length: 0\r\n\r\n'],
    ['status 600', 'HTTP/1.1 600 X\r\nContent-Length: 0\r\n\r\n'],
    ['status 20', 'HTTP/1.1 20 X\r\nContent-Length: 0\r\n\r\n'],
    ['garbage', 'SSH-2.0-OpenSSH\r\n\r\n'],
    ['HTTP/0.9', '<html>hello</html>'],
    ['a 101 out of the blue', 'HTTP/1.1 101 X\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n'],
    ['a 101 without Upgrade', 'HTTP/1.1 101 X\r\n\r\n'],
    ['huge headers', `HTTP/1.1 200 OK\r\nX: ${'x'.repeat(100_000)}\r\nContent-Length: 0\r\n\r\n`],
    ['a control character in a value', 'HTTP/1.1 200 OK\r\nX: a\x01b\r\nContent-Length: 0\r\n\r\n'],
    ['a NUL in a value', 'HTTP/1.1 200 OK\r\nX: a\0b\r\nContent-Length: 0\r\n\r\n'],
    ['a control character in a name', 'HTTP/1.1 200 OK\r\nX\x01: a\r\nContent-Length: 0\r\n\r\n'],
    [
      'length and chunks',
      'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    ],
    ['two lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nabc'],
    ['a length that is no number', 'HTTP/1.1 200 OK\r\nContent-Length: abc\r\n\r\nabc'],
    ['another transfer coding', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n'],
  ])('gives the client 502, and the next request is served: %s', async (_what, raw) => {
    backend.react = (_request, socket) => socket.write(raw, 'latin1');
    expect(statusOf(await sendRaw(front.port, get('/')))).toBe(502);
    backend.react = (_request, socket) => socket.write(okResponse('fine'));
    expect(await sendRaw(front.port, get('/'))).toMatch(/^HTTP\/1.1 200 OK[\s\S]*fine$/);
    expect(front.outcomes[0]).toMatchObject({ kind: 'failed', code: 'upstream_failed', headersSent: false });
  });

  it('does not send the client a control character of the reason phrase', async () => {
    backend.react = (_request, socket) => socket.write('HTTP/1.1 200 a\x01b\r\nContent-Length: 2\r\n\r\nhi');
    const response = await sendRaw(front.port, get('/'));
    expect(statusOf(response)).toBe(502);
    expect(response).not.toContain('\x01');
  });
});

describe('a backend that stops within a response', () => {
  it.each([
    ['with a length', 'HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf'],
    ['in chunks', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n'],
    ['inside a chunk', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\nhalf'],
  ])('after half a body %s leaves the client with a visibly incomplete response', async (_how, raw) => {
    backend.react = (_request, socket) => socket.end(raw);
    const response = await sendRaw(front.port, get('/'));
    expect(statusOf(response)).toBe(200);
    expect(response.endsWith('0\r\n\r\n')).toBe(false);
    expect(response).not.toContain('502');
    expect(front.outcomes).toMatchObject([{ kind: 'failed', code: 'upstream_failed', headersSent: true }]);
  });

  it('in its body has its connection closed', async () => {
    await front.close();
    front = await startFront({
      url: backend.url,
      bounds: { upstreamBodyIdleTimeoutMs: 300, sweepIntervalMs: 50 },
    });
    backend.react = (_request, socket) => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf');
    expect(statusOf(await sendRaw(front.port, get('/')))).toBe(200);
    expect(front.outcomes).toMatchObject([{ kind: 'failed', code: 'upstream_timeout', headersSent: true }]);
  });

  it('before the response gives 504 without a retry', async () => {
    await front.close();
    front = await startFront({ url: backend.url, bounds: { upstreamHeadersTimeoutMs: 300 } });
    backend.react = () => {};
    const response = sendRaw(front.port, get('/'));
    await backend.received(1);
    expect(statusOf(await response)).toBe(504);
    expect(backend.requests).toHaveLength(1);
  });

  it('but never ends the exchange is stopped by the total timeout', async () => {
    await front.close();
    const { upstreamTotalTimeoutMs } = defaultBounds;
    // The idle timeout restarts with each octet. Here the idle timeout is longer than the total timeout, so that only the total timeout can
    // end the request.
    front = await startFront({
      url: backend.url,
      bounds: { upstreamBodyIdleTimeoutMs: 2 * upstreamTotalTimeoutMs, sweepIntervalMs: 50 },
    });
    const clock = stopClock();
    let drip: NodeJS.Timeout | undefined;
    backend.react = (_request, socket) => {
      socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n');
      drip = setInterval(() => socket.write('1\r\nx\r\n'), 20);
      socket.once('close', () => clearInterval(drip));
    };
    const { promise: isDripping, resolve: seeDrip } = Promise.withResolvers<void>();
    const response = sendRaw(front.port, get('/'), (received) => received.endsWith('x\r\n') && seeDrip());
    await isDripping;
    clock.pass(upstreamTotalTimeoutMs);
    expect((await response).endsWith('0\r\n\r\n')).toBe(false);
    // A response without a length may be a stream that has no end. The target is not blamed, because it was still sending.
    expect(front.outcomes).toMatchObject([
      { kind: 'client_gone', cause: expect.stringContaining('still sending') },
    ]);
  });
});

it('bytes after a response never reach another client', async () => {
  backend.react = (request, socket) => {
    socket.write(okResponse(request.target) + okResponse('stolen', 200, ['X-Stolen: 1']));
  };
  for (let i = 0; i < 20; i++) {
    const response = await sendRaw(front.port, get(`/${i}`));
    expect(response).toMatch(new RegExp(`\\r\\n\\r\\n/${i}$`));
    expect(response).not.toMatch(/stolen/i);
  }
});

describe('a retry', () => {
  /** Opens `count` connections to the backend and leaves them idle. */
  async function keepAlive(count: number): Promise<void> {
    const sockets: Socket[] = [];
    backend.react = (_request, socket) => void sockets.push(socket);
    const warm = Array.from({ length: count }, () => sendRaw(front.port, get('/warm')));
    await backend.received(count);
    for (const socket of sockets) socket.write(okResponse('warm'));
    await Promise.all(warm);
    backend.requests.length = 0;
    front.outcomes.length = 0;
  }

  it('follows when a reused connection closes before the first octet of the response to a GET', async () => {
    await keepAlive(1);
    backend.react = (_request, socket) => {
      if (backend.requests.length === 1) socket.destroy();
      else socket.write(okResponse('second'));
    };
    expect(await sendRaw(front.port, get('/'))).toMatch(/second$/);
    expect(front.outcomes).toMatchObject([{ kind: 'forwarded', attempts: 2 }]);
  });

  it('never follows a loss on a new connection: a request that crashes one backend would crash the next', async () => {
    backend.react = (_request, socket) => socket.destroy();
    expect(statusOf(await sendRaw(front.port, get('/')))).toBe(502);
    expect(backend.requests).toHaveLength(1);
  });

  it('never becomes a third attempt when reused connections are lost', async () => {
    await keepAlive(3);
    backend.react = (_request, socket) => socket.destroy();
    expect(statusOf(await sendRaw(front.port, get('/')))).toBe(502);
    expect(backend.requests).toHaveLength(2);
  });

  it('never repeats a POST that was written', async () => {
    await keepAlive(1);
    backend.react = (_request, socket) => socket.destroy();
    const post = 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi';
    expect(statusOf(await sendRaw(front.port, post))).toBe(502);
    expect(backend.requests).toHaveLength(1);
  });

  it('stays within the budget when all requests fail', async () => {
    await keepAlive(60);
    backend.react = (_request, socket) => socket.destroy();
    await Promise.all(Array.from({ length: 60 }, () => sendRaw(front.port, get('/'))));
    expect(backend.requests.length).toBeGreaterThan(60);
    // The retry budget is ten retries plus a fifth of all 120 requests, because the 60 earlier requests count too. The budget doubles
    // if its window ends during the test.
    expect(backend.requests.length).toBeLessThanOrEqual(60 + 2 * (10 + 24));
  });
});

it.each([
  ['resets its connection', (client: Socket) => client.resetAndDestroy()],
  ['closes its connection', (client: Socket) => client.destroy()],
])('a client that %s ends its request to the backend', async (_how, leave) => {
  await front.close();
  front = await startFront({ url: backend.url, bounds: { halfClosedTimeoutMs: 50 } });
  let cut = () => {};
  const aborted = new Promise<void>((resolve) => {
    cut = resolve;
  });
  backend.react = (_request, socket) => void socket.once('close', cut);
  const client = sendRawAndLeave();
  await backend.received(1);
  leave(client);
  await aborted;
  await front.ended(1);
  expect(front.outcomes).toMatchObject([{ kind: 'client_gone', attempts: 1 }]);
});

it('a client that goes away while its request waits for a connection leaves the queue at once', async () => {
  await front.close();
  front = await startFront({
    url: backend.url,
    bounds: { connectionsPerTargetMax: 1, queuedPerTargetMax: 1 },
  });
  backend.react = () => {};
  const served = sendRawAndLeave();
  await backend.received(1);
  const waiting = sendRawAndLeave();
  const inFlight = () => front.targets()[0]?.inFlight;
  await until('it waits', () => inFlight() === 2);
  waiting.resetAndDestroy();
  await front.ended(1);
  expect(inFlight()).toBe(1);
  served.resetAndDestroy();
  await front.ended(2);
  expect(inFlight()).toBe(0);
  expect(backend.requests).toHaveLength(1);
});

it('a bug at the start of a response is reported to the caller and affects no other request', async () => {
  await front.close();
  front = await startFront({ url: backend.url, responseFields: ['Link', 'ř'] });
  expect(await sendRaw(front.port, get('/1'))).toBe('');
  expect(await sendRaw(front.port, get('/2'))).toBe('');
  const bug = { message: 'a malformed value for the field Link' };
  expect(front.bugs).toMatchObject([bug, bug]);
  expect(front.targets()[0]?.inFlight).toBe(0);
});

it('a request whose client went away before it was forwarded never reaches the backend', async () => {
  await front.close();
  front = await startFront({
    url: backend.url,
    before: (res) => once(res, 'close'),
    bounds: { halfClosedTimeoutMs: 50 },
  });
  sendRawAndLeave().end();
  await front.ended(1);
  expect(front.outcomes).toMatchObject([{ kind: 'client_gone', attempts: 0 }]);
  expect(backend.requests).toEqual([]);
});

it('a body shorter than its Content-Length is the fault of the client, not of the backend', async () => {
  const fields = 'Host: a\r\nExpect: 100-continue\r\nContent-Length: 100000';
  const client = sendRawAndLeave(`POST / HTTP/1.1\r\n${fields}\r\n\r\n`);
  // The gateway sends 100 Continue, and waits for the body.
  await once(client, 'data');
  client.write('half', () => client.destroy());
  await front.ended(1);
  expect(front.outcomes).toMatchObject([{ kind: 'failed', code: 'invalid_request', attempts: 0 }]);
  expect(backend.requests).toEqual([]);
});

function sendRawAndLeave(text = get('/')) {
  const socket = connect(front.port, '127.0.0.1');
  socket.on('error', () => {});
  socket.write(text);
  return socket;
}
