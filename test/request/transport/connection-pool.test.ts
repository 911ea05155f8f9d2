import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import { ConnectionPool } from '../../../gateway/request/transport/connection-pool.ts';
import type {
  BodySink,
  ResponseHandler,
  StreamedBody,
} from '../../../gateway/request/transport/target-request.ts';
import { defaultBounds } from '../../../gateway/shared/timeouts-and-sizes.ts';
import { okResponse, type Reaction, type RecordingBackend, reset } from '../../support/recording-backend.ts';
import { stopClock } from '../../support/stopped-clock.ts';
import { patientForwarding } from '../../support/tuning.ts';
import { until } from '../../support/until.ts';
import { get, Sent, send, startPool } from './pool-fixture.ts';

const connectionsOf = ({ requests }: RecordingBackend) => requests.map(({ connection }) => connection);

it('consecutive requests share a connection', async () => {
  const { backend, pool } = await startPool();
  for (let i = 0; i < 5; i++) await send(pool).ended;
  expect(connectionsOf(backend)).toEqual([1, 1, 1, 1, 1]);
});

it('concurrent requests have their own connections up to the limit, and the others wait in order', async () => {
  const { backend, pool } = await startPool({ connectionsPerTargetMax: 2 });
  const all = ['/1', '/2', '/3', '/4', '/5'].map((path) => send(pool, { path, holder: path }));
  await Promise.all(all.map(({ ended }) => ended));
  expect(all.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
  const targets = backend.requests.map(({ target }) => target);
  expect(targets.slice(0, 2).toSorted()).toEqual(['/1', '/2']);
  expect(targets.slice(2)).toEqual(['/3', '/4', '/5']);
  expect(Math.max(...connectionsOf(backend))).toBe(2);
});

it('a request that is withdrawn while it waits is never sent, and all other requests are sent', async () => {
  const { backend, pool } = await startPool({ connectionsPerTargetMax: 1 });
  const [first, withdrawn, last] = [send(pool, { path: '/1' }), send(pool), send(pool, { path: '/3' })];
  pool.withdraw(get, withdrawn);
  await Promise.all([first.ended, last.ended]);
  const afterwards = send(pool, { path: '/4' });
  await afterwards.ended;
  expect(backend.requests.map(({ target }) => target)).toEqual(['/1', '/3', '/4']);
  expect(connectionsOf(backend)).toEqual([1, 1, 1]);
  expect(withdrawn.ends).toBe(0);
});

it.each([
  ['when the response says so', 'HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n'],
  ['after a response in HTTP/1.0', 'HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n'],
  ['when octets follow the response', `${okResponse('')}x`],
  ['when the backend announces that it closes at once', okResponse('', 200, ['Keep-Alive: timeout=0'])],
])('a connection is not reused %s', async (_why, raw) => {
  const { backend, pool } = await startPool();
  backend.react = (_request, socket) => socket.write(raw);
  for (let i = 0; i < 3; i++) {
    const sent = send(pool);
    await sent.ended;
    expect(sent.status).toBe(200);
  }
  expect(connectionsOf(backend)).toEqual([1, 2, 3]);
});

it('octets that a backend sends without a request are never taken for a response', async () => {
  const { backend, pool } = await startPool();
  backend.react = (_request, socket) => {
    socket.write(okResponse('asked'));
    setTimeout(() => socket.write(okResponse('unasked')), 20);
  };
  await send(pool).ended;
  await until('the connection is closed', () => backend.openConnections() === 0);
  const sent = send(pool);
  await sent.ended;
  expect(sent.body).toBe('asked');
});

it('a connection that the backend closed while it was idle is not reused', async () => {
  const { backend, pool } = await startPool();
  backend.react = (_request, socket) => void socket.end(okResponse('bye'));
  for (let i = 0; i < 3; i++) {
    const sent = send(pool);
    await sent.ended;
    await until('the connection is closed', () => backend.openConnections() === 0);
    expect(sent.body).toBe('bye');
  }
  expect(connectionsOf(backend)).toEqual([1, 2, 3]);
});

it('an idle connection is closed after the idle timeout, or after half of the backend’s announced timeout', async () => {
  const { backend, pool } = await startPool({ upstreamIdleTimeoutMs: 600_000 });
  backend.react = (_request, socket) => socket.write(okResponse('', 200, ['Keep-Alive: max=7, timeout=1']));
  await send(pool).ended;
  expect(backend.openConnections()).toBe(1);
  await until('the connection is closed', () => backend.openConnections() === 0);

  const { backend: silent, pool: other } = await startPool({ upstreamIdleTimeoutMs: 50 });
  await send(other).ended;
  await until('the connection is closed', () => silent.openConnections() === 0);
});

it('an idle connection past its timeout is not used, even before the sweep has closed it', async () => {
  const { backend, pool } = await startPool({ sweepIntervalMs: 600_000 });
  const clock = stopClock();
  await send(pool).ended;
  clock.pass(patientForwarding.upstreamIdleTimeoutMs);
  await send(pool).ended;
  expect(connectionsOf(backend)).toEqual([1, 2]);
});

it('idle connections past their timeout do not count towards the limit', async () => {
  const { backend, pool } = await startPool({ connectionsPerTargetMax: 4, sweepIntervalMs: 600_000 });
  const clock = stopClock();
  const four = () => Promise.all(['a', 'b', 'c', 'd'].map((holder) => send(pool, { holder }).ended));
  await four();
  clock.pass(patientForwarding.upstreamIdleTimeoutMs);
  await four();
  expect(Math.max(...connectionsOf(backend))).toBe(8);
});

it('each connection that fails to open fails one request and no other', async () => {
  const { backend, pool } = await startPool();
  await backend.close();
  const all = [send(pool), send(pool), send(pool)];
  await Promise.all(all.map(({ ended }) => ended));
  for (const { failure, ends } of all) {
    expect(failure).toMatchObject({ kind: 'connect', reach: 'not_reached' });
    expect(failure?.cause).toContain('ECONNREFUSED');
    expect(ends).toBe(1);
  }
});

it('a process that was stopped for longer than the response timeout first reads what has arrived', async () => {
  // The interval is so short that a sweep is often in progress when the process is stopped.
  const { backend, pool } = await startPool({ sweepIntervalMs: 1 });
  const clock = stopClock();
  backend.react = (_request, socket) => {
    socket.write(okResponse('in time'));
    clock.pass(defaultBounds.upstreamHeadersTimeoutMs);
    // When the stopped process continues, the next sweep is due before the next read.
    stopFor(5);
  };
  for (let i = 0; i < 50; i++) {
    const sent = send(pool);
    await sent.ended;
    expect(sent.status).toBe(200);
  }
});

it('a process that was stopped for longer than the connect timeout first notices the connection', async () => {
  // This server always uses cleartext, even in the TLS variant of the tests, because a TLS handshake takes several reads.
  const server = createServer((socket) =>
    socket.once('data', () => socket.end(okResponse('in time'))),
  ).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const pool = new ConnectionPool({
    host: '127.0.0.1',
    port: (server.address() as AddressInfo).port,
    bounds: { ...defaultBounds, connectTimeoutMs: 50 },
    atTurnEnd: (finish) => {
      finish();
      stopFor(100);
    },
  });
  onTestFinished(async () => {
    await pool.destroy();
    server.close();
  });
  const sent = send(pool);
  await sent.ended;
  expect(sent.status).toBe(200);
});

it.each([
  ['before a byte of the response', '', 'unanswered_fresh'],
  ['within the head', 'HTTP/1.1 200 OK\r\nX:', 'answering'],
  ['within the body', 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhal', 'answering'],
])('a request is lost when the backend closes the connection %s', async (_when, raw, reach) => {
  const { backend, pool } = await startPool();
  backend.react = (_request, socket) => void socket.end(raw);
  const sent = send(pool);
  await sent.ended;
  expect(sent.failure).toMatchObject({ kind: 'lost', reach });
  expect(sent.ends).toBe(1);
});

it.each([
  ['nothing', '', 'unanswered_fresh'],
  ['half a head', 'HTTP/1.1 200 OK\r\n', 'answering'],
  ['interim responses', 'HTTP/1.1 103 X\r\n\r\n', 'answering'],
  ['half a body', 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhal', 'answering'],
  ['half a chunk', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhal', 'answering'],
])('a backend that stops after %s times out', async (_what, raw, reach) => {
  const { backend, pool } = await startPool();
  const clock = stopClock();
  backend.react = (_request, socket) => void socket.write(raw);
  const sent = send(pool);
  await backend.received(1);
  await clock.passUntil(sent.ended, 15_000);
  expect(sent.failure).toMatchObject({ kind: 'timeout', reach });
  await until('the connection is closed', () => backend.openConnections() === 0);
});

it('a head in small pieces has the same timeout as a head in one piece', async () => {
  const { backend, pool } = await startPool({ upstreamHeadersTimeoutMs: 200 });
  backend.react = (_request, socket) => {
    socket.write('HTTP/1.1 200 OK\r\n');
    const drip = setInterval(() => socket.write('X: y\r\n'), 20);
    socket.once('close', () => clearInterval(drip));
  };
  const sent = send(pool);
  await sent.ended;
  expect(sent.failure).toMatchObject({ kind: 'timeout' });
});

it('a response body that its client does not read is not read from the backend, and does not time out', async () => {
  const { backend, pool } = await startPool();
  const clock = stopClock();
  const body = 'x'.repeat(3_000_000);
  backend.react = (_request, socket) => socket.write(okResponse(body));
  const sent = send(pool);
  sent.wantsMore = false;
  await until('the first piece', () => sent.body !== '');
  clock.pass(defaultBounds.upstreamBodyIdleTimeoutMs);
  await sleep(200);
  expect(sent.body.length).toBeLessThan(100_000);
  expect(sent.ends).toBe(0);
  sent.wantsMore = true;
  sent.connection?.resume();
  await sent.ended;
  expect(sent.body).toBe(body);
  backend.react = (_request, socket) => socket.write(okResponse('next'));
  const next = send(pool);
  await next.ended;
  expect([next.body, ...connectionsOf(backend)]).toEqual(['next', 1, 1]);
});

it('an abort ends the request and its connection at once', async () => {
  const { backend, pool } = await startPool();
  backend.react = () => {};
  const sent = send(pool);
  await backend.received(1);
  sent.connection?.abort();
  expect(sent).toMatchObject({ ends: 1, failure: { kind: 'aborted' } });
  await until('the connection is closed', () => backend.openConnections() === 0);
  expect(sent.ends).toBe(1);
});

it.each(['onHead', 'onPiece'] as const)('an abort in %s is the last event', async (event) => {
  const { backend, pool } = await startPool();
  let finish = () => {};
  backend.react = (_request, socket) => {
    socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n');
    finish = () => void socket.write('1\r\na\r\n1\r\nb\r\n0\r\n\r\n');
  };
  const sent = new Sent();
  const events: string[] = [];
  const handler: ResponseHandler = {
    onSend: (connection) => sent.onSend(connection),
    onInterim: () => {},
    onHead: () => record('onHead'),
    onPiece: () => record('onPiece'),
    onEnd: () => void record('onEnd'),
    onFailure: ({ kind }) => void events.push(kind),
  };
  function record(what: string): boolean {
    events.push(what);
    if (what === event) sent.connection?.abort();
    return true;
  }
  pool.send(get, handler);
  await until('the head', () => events.includes('onHead'));
  finish();
  await until(
    'the connection is closed',
    () => events.includes('aborted') && backend.openConnections() === 0,
  );
  expect(events.at(-1)).toBe('aborted');
  expect(events.filter((what) => what === event)).toHaveLength(1);
  expect(events).not.toContain('onEnd');
});

function stopFor(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

/** A request body whose chunks are written by the test. */
class TestBody implements StreamedBody {
  sink: BodySink | undefined;
  resumed = 0;
  start(sink: BodySink): void {
    this.sink = sink;
  }
  resume(): void {
    this.resumed++;
  }
}

it.each([
  [true, 'Transfer-Encoding: chunked', '3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n'],
  [false, 'Content-Length: 5', 'abcde'],
])('a streamed body is sent as it arrives; in chunks: %s', async (chunked, field, rawBody) => {
  const { backend, pool } = await startPool();
  const body = new TestBody();
  const fields = chunked ? get.fields : [...get.fields, 'Content-Length', '5'];
  const sent = send(pool, { method: 'PUT', fields, body, chunked });
  await until('a connection', () => body.sink !== undefined);
  body.sink?.write(Buffer.from('abc'));
  await sleep(20);
  body.sink?.write(Buffer.from('de'));
  body.sink?.end();
  await sent.ended;
  expect(sent.status).toBe(200);
  expect(backend.requests[0]?.head).toContain(field);
  expect(backend.requests[0]?.rawBody).toBe(rawBody);
  await send(pool).ended;
  expect(connectionsOf(backend)).toEqual([1, 1]);
});

it('a body waits while the backend does not read, and continues when it does', async () => {
  let reader: Socket | undefined;
  const react: Reaction = (_request, socket) => {
    reader = socket.pause();
  };
  const { pool } = await startPool({}, { reactTo: 'head', react });
  const body = new TestBody();
  send(pool, { method: 'PUT', body, chunked: true });
  await until('a connection', () => body.sink !== undefined);
  const piece = Buffer.alloc(1_000_000);
  let pieces = 0;
  await until('the kernel takes no more', async () => {
    const { resumed } = body;
    pieces++;
    if (body.sink?.write(piece) !== false) return false;
    await sleep(100);
    return body.resumed === resumed;
  });
  const { resumed } = body;
  expect(pieces).toBeLessThan(50);
  reader?.resume();
  await until('there is room again', () => body.resumed > resumed);
});

it('a slow request body does not time out as the backend’s fault', async () => {
  const { pool } = await startPool();
  const clock = stopClock();
  const body = new TestBody();
  const sent = send(pool, { method: 'PUT', body, chunked: true });
  await until('a connection', () => body.sink !== undefined);
  clock.pass(defaultBounds.upstreamHeadersTimeoutMs);
  await sleep(200);
  expect(sent.ends).toBe(0);
  body.sink?.end();
  await sent.ended;
  expect(sent.status).toBe(200);
});

it('sending the request body does not make a paused response time out', async () => {
  const { backend, pool } = await startPool({}, { reactTo: 'head' });
  const clock = stopClock();
  backend.react = (_request, socket) => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhal');
  const body = new TestBody();
  const sent = send(pool, { method: 'PUT', fields: ['Content-Length', '1'], body });
  sent.wantsMore = false;
  await until('the first piece', () => sent.body !== '');
  body.sink?.write(Buffer.from('a'));
  body.sink?.end();
  clock.pass(defaultBounds.upstreamHeadersTimeoutMs + defaultBounds.upstreamBodyIdleTimeoutMs);
  await sleep(200);
  expect(sent.ends).toBe(0);
  sent.connection?.resume();
  await clock.passUntil(sent.ended, 15_000);
  expect(sent.failure).toMatchObject({ kind: 'timeout' });
});

it('a response before the end of the request body arrives completely, and then the connection is closed', async () => {
  const { backend, pool } = await startPool({}, { reactTo: 'head' });
  const body = new TestBody();
  const sent = send(pool, { method: 'PUT', body, chunked: true });
  await sent.ended;
  expect(sent.status).toBe(200);
  await send(pool).ended;
  body.sink?.write(Buffer.from('too late'));
  body.sink?.end();
  const last = send(pool);
  await last.ended;
  expect(last.status).toBe(200);
  expect(connectionsOf(backend)).toEqual([1, 2, 2]);
});

it('closing the pool serves the requests in flight and in the queue, and no others', async () => {
  const { backend, pool } = await startPool({ connectionsPerTargetMax: 1 });
  const [first, second] = [send(pool), send(pool)];
  const closed = pool.close();
  const late = send(pool);
  expect(late.failure).toMatchObject({ kind: 'closed', reach: 'not_reached' });
  await closed;
  expect([first.status, second.status]).toEqual([200, 200]);
  await until('the connection is closed', () => backend.openConnections() === 0);
});

it('destroying the pool fails every request in flight and in the queue, each once', async () => {
  const { backend, pool } = await startPool({ connectionsPerTargetMax: 1 });
  backend.react = () => {};
  const [first, second] = [send(pool), send(pool)];
  await backend.received(1);
  await pool.destroy();
  expect(first).toMatchObject({ ends: 1, failure: { kind: 'closed', reach: 'unanswered_fresh' } });
  expect(second).toMatchObject({ ends: 1, failure: { kind: 'closed', reach: 'not_reached' } });
});

it('destroying the pool closes a connection that is still being opened', async () => {
  const { pool } = await startPool();
  const sent = send(pool);
  await pool.destroy();
  expect(sent).toMatchObject({ ends: 1, failure: { kind: 'closed' } });
});

it('many requests are served by a backend that closes the connection after each response', async () => {
  const { backend, pool } = await startPool({ connectionsPerTargetMax: 4 });
  let served = 0;
  backend.react = (_request, socket) => {
    // Every tenth request gets a reset instead of a response.
    if (++served % 10 === 0) reset(socket);
    else socket.end(okResponse('x', 200, ['Connection: close']));
  };
  const all = Array.from({ length: 200 }, () => send(pool));
  await Promise.all(all.map(({ ended }) => ended));
  expect(all.every(({ ends }) => ends === 1)).toBe(true);
  expect(all.filter(({ status }) => status === 200)).toHaveLength(180);
  await until('all connections are closed', () => backend.openConnections() === 0);
});

it('an aborted request frees its connection slot for the next', async () => {
  const { backend, pool } = await startPool({ connectionsPerTargetMax: 1 });
  backend.react = ({ target }, socket) => target === '/next' && socket.write(okResponse('x'));
  const [aborted, next] = [send(pool), send(pool, { path: '/next' })];
  await backend.received(1);
  aborted.connection?.abort();
  await next.ended;
  expect(next.status).toBe(200);
});

const nextIs = (pool: Parameters<typeof send>[0]) => send(pool, { holder: 'other', path: '/next' });

it('the response to an aborted request never reaches the next request', async () => {
  const { backend, pool } = await startPool({ connectionsPerTargetMax: 1 });
  let respondToAborted = () => {};
  backend.react = ({ target }, socket) => {
    if (target !== '/next') respondToAborted = () => void socket.write(okResponse('of acme'));
    else {
      respondToAborted();
      socket.write(okResponse('of other'));
    }
  };
  const [aborted, next] = [send(pool, { holder: 'acme' }), nextIs(pool)];
  await backend.received(1);
  aborted.connection?.abort();
  await next.ended;
  expect([next.body, ...connectionsOf(backend)]).toEqual(['of other', 1, 2]);
});

it.each([
  ['HEAD', okResponse(''), '{"of":"acme"}'],
  ['HEAD', 'HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\n', '{"of":"acme"}'],
  ['HEAD', okResponse(''), okResponse('of acme')],
  ['GET', 'HTTP/1.1 204 No Content\r\nContent-Length: 13\r\n\r\n', '{"of":"acme"}'],
  ['GET', 'HTTP/1.1 304 Not Modified\r\nContent-Length: 40\r\n\r\n', okResponse('of acme')],
  ['DELETE', 'HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n', '2\r\nhi\r\n0\r\n\r\n'],
])('a stray body after %s, %j never reaches the next request', async (method, head, body) => {
  for (const afterMs of [0, 1, 20, 50]) {
    const { backend, pool } = await startPool();
    backend.react = ({ target }, socket) => {
      if (target === '/next') socket.write(okResponse('of other'));
      else {
        socket.write(head);
        setTimeout(() => socket.write(body), afterMs);
      }
    };
    await send(pool, { method }).ended;
    for (let i = 0; i < 3; i++) {
      const next = nextIs(pool);
      await next.ended;
      expect(next).toMatchObject({ status: 200, body: 'of other' });
    }
    expect(connectionsOf(backend)).toEqual([1, 2, 2, 2]);
  }
});

it.each([
  ['stray octets', (socket: Socket) => void socket.write(okResponse('unasked'))],
  ['its end', (socket: Socket) => void socket.destroy()],
  ['its reset', (socket: Socket) => void reset(socket)],
])(
  'data or an end on an idle connection is noticed before the next request is sent: %s',
  async (_what, act) => {
    const { backend, pool } = await startPool();
    let kept: Socket | undefined;
    backend.react = ({ target }, socket) => {
      kept = socket;
      socket.write(okResponse(target));
    };
    await send(pool).ended;
    await sleep(20);
    if (kept !== undefined) act(kept);
    const next = nextIs(pool);
    await next.ended;
    expect(next).toMatchObject({ status: 200, body: '/next' });
  },
);

it('the failure of a connection before the response tells whether the connection was reused', async () => {
  const { backend, pool } = await startPool();
  backend.react = ({ target }, socket) =>
    target === '/crash' ? reset(socket) : socket.write(okResponse('x'));
  const fresh = send(pool, { path: '/crash' });
  await fresh.ended;
  expect(fresh.failure).toMatchObject({ kind: 'lost', reach: 'unanswered_fresh' });
  await send(pool).ended;
  const reused = send(pool, { path: '/crash' });
  await reused.ended;
  expect(reused.failure).toMatchObject({ kind: 'lost', reach: 'unanswered_reused' });
});

it('interim responses reach the caller before the response, and HEAD is sent with Connection: close', async () => {
  const { backend, pool } = await startPool();
  backend.react = (_request, socket) => socket.write(`HTTP/1.1 103 X\r\nLink: a\r\n\r\n${okResponse('x')}`);
  const sent = send(pool);
  await sent.ended;
  expect(sent).toMatchObject({ interims: [103], status: 200, body: 'x' });
  await send(pool, { method: 'HEAD' }).ended;
  expect(backend.requests.map(({ head }) => /\r\nConnection: close\r\n/.test(head))).toEqual([false, true]);
});

describe('shares', () => {
  const hang: Reaction = () => {};
  const open = async (backend: RecordingBackend, count: number) => {
    await backend.received(count);
    await sleep(50);
    return backend.requests.length;
  };

  it('give one holder half of the connections, and the next holder some at once', async () => {
    const { backend, pool } = await startPool({ connectionsPerTargetMax: 16 });
    backend.react = ({ target }, socket) => target === '/next' && socket.write(okResponse('x'));
    for (let i = 0; i < 40; i++) send(pool, { holder: 'greedy' });
    expect(await open(backend, 8)).toBe(8);
    const next = nextIs(pool);
    await next.ended;
    expect(next.status).toBe(200);
  });

  it('of greedy holders leave a share for the next holder', async () => {
    const { backend, pool } = await startPool({ connectionsPerTargetMax: 90 });
    backend.react = ({ target }, socket) => target === '/next' && socket.write(okResponse('x'));
    for (let i = 0; i < 100; i++)
      for (const holder of ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']) send(pool, { holder });
    expect(await open(backend, 64)).toBe(64);
    const next = nextIs(pool);
    await next.ended;
    expect(next.status).toBe(200);
  });

  it('end at a quarter of the connections while other holders wait, which are served in turn', async () => {
    const { backend, pool } = await startPool({ connectionsPerTargetMax: 8 });
    const served: Socket[] = [];
    backend.react = (_request, socket) => void served.push(socket);
    // While both holders, `a` and `b`, wait for further connections, each holder may use only a quarter of the
    // connections.
    for (let i = 0; i < 20; i++) for (const holder of ['a', 'b']) send(pool, { holder, path: `/${holder}` });
    const before = await open(backend, 4);
    let answered = 0;
    for (; answered < 12; answered++) {
      served[answered]?.write(okResponse('x'));
      await backend.received(Math.max(before, Math.min(before, 4) + answered - (before - 4)));
    }
    await backend.received(answered + 4);
    await sleep(50);
    expect(backend.requests.length - answered).toBe(4);
    const open4 = backend.requests.slice(answered).map(({ target }) => target);
    expect(open4.toSorted()).toEqual(['/a', '/a', '/b', '/b']);
  });

  it('limit the requests of one holder in the queue, so that others have room', async () => {
    const { backend, pool } = await startPool({ connectionsPerTargetMax: 2, queuedPerTargetMax: 8 });
    backend.react = hang;
    const sent = Array.from({ length: 10 }, () => send(pool, { holder: 'greedy' }));
    expect(sent.filter(({ failure }) => failure?.kind === 'full')).toHaveLength(5);
    expect(pool.hasRoom('greedy')).toBe(false);
    expect(pool.hasRoom('other')).toBe(true);
    await backend.received(1);
    sent[0]?.connection?.abort();
    await backend.received(2);
    expect(pool.hasRoom('greedy')).toBe(true);
  });

  it('let a single key have 2,000 requests at a target at the same time', async () => {
    const { backend, pool } = await startPool();
    const answer = backend.react;
    backend.react = hang;
    const all = Array.from({ length: 2_000 }, () => send(pool));
    await backend.received(128);
    backend.react = answer;
    for (const { connection } of all.slice(0, 128)) connection?.abort();
    await Promise.all(all.map(({ ended }) => ended));
    expect(all.filter(({ status }) => status === 200)).toHaveLength(2_000 - 128);
  });

  it('let the next request of a holder take the place of a withdrawn request', async () => {
    const { backend, pool } = await startPool({ connectionsPerTargetMax: 2 });
    backend.react = hang;
    const [first, second] = [send(pool, { holder: 'a' }), send(pool, { holder: 'a', path: '/2' })];
    pool.withdraw({ ...get, holder: 'a' }, first);
    await backend.received(1);
    expect(backend.requests[0]?.target).toBe('/2');
    expect([first.ends, second.ends]).toEqual([0, 0]);
  });
});
