import type { Socket } from 'node:net';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { TargetRequest } from '../../../gateway/request/transport/target-request.ts';
import { defaultBounds } from '../../../gateway/shared/timeouts-and-sizes.ts';
import { okResponse, type RecordedRequest, reset } from '../../support/recording-backend.ts';
import { stopClock } from '../../support/stopped-clock.ts';
import { until } from '../../support/until.ts';
import { type Sent, send, startPool } from './pool-fixture.ts';

/** The possible reactions of a backend to a request. The body of each response begins with the request's path. */
const behaviours: Readonly<Record<string, (socket: Socket, body: string) => void>> = {
  answers: (socket, body) => socket.write(okResponse(body)),
  chunks: (socket, body) => socket.write(chunked(body)),
  drips: (socket, body) => drip(socket, chunked(body)),
  hints: (socket, body) => drip(socket, `HTTP/1.1 103 Hints\r\nLink: a\r\n\r\n${okResponse(body)}`),
  announcesItsEnd: (socket, body) => void socket.end(okResponse(body, 200, ['Connection: close'])),
  endsUnannounced: (socket, body) => void socket.end(okResponse(body)),
  endsWithTheConnection: (socket, body) => void socket.end(`HTTP/1.1 200 OK\r\n\r\n${body}`),
  breaksOff: (socket, body) => void socket.end(chunked(body).slice(0, -7)),
  resets: (socket) => reset(socket),
  // The surplus octets are written together with the response. The gateway could not distinguish later surplus octets from the next
  // response.
  talksOn: (socket, body) => socket.write(okResponse(body.slice(0, 500)) + okResponse('/stolen')),
  babbles: (socket) => socket.write('HTTP/1.1 two hundred\r\n\r\n'),
  hangs: () => {},
};

/** The reactions after which the client gets the complete response and no further octet. */
const sound = ['answers', 'chunks', 'drips', 'hints', 'announcesItsEnd', 'endsWithTheConnection', 'talksOn'];

const request = fc.record({
  behaviour: fc.constantFrom(...Object.keys(behaviours)),
  size: fc.constantFrom(0, 1, 300, 20_000, 200_000),
  bodySize: fc.constantFrom(0, 0, 10, 5_000),
  isHeldBack: fc.boolean(),
  isAborted: fc.integer({ min: 0, max: 9 }).map((n) => n === 0),
});

it('each request gets its own response once, however the backend treats the other requests', async () => {
  const bodyOf = ({ target }: RecordedRequest) => `${target} ${'x'.repeat(Number(target.split('/')[3]))}`;
  const clock = stopClock();
  const hanging = new Set<string>();
  const { backend, pool } = await startPool(
    { connectionsPerTargetMax: 6 },
    {
      react: (recorded, socket) => {
        const [, , behaviour = ''] = recorded.target.split('/');
        behaviours[behaviour]?.(socket, bodyOf(recorded));
        if (behaviour === 'hangs') hanging.add(recorded.target);
      },
    },
  );
  const seed = Date.now() % 2 ** 31;
  console.log(`misbehaving backend: seed ${seed}`);
  const all = fc.sample(request, { seed, numRuns: 600 }).map((one, i) => {
    const path = `/${i}/${one.behaviour}/${one.size}`;
    const sent = send(pool, withBody({ holder: `key-${i % 7}`, path }, one.bodySize));
    sent.wantsMore = !one.isHeldBack;
    if (one.isHeldBack) resumeSoon(sent);
    if (one.isAborted) setTimeout(() => sent.connection?.abort(), i % 50);
    return { ...one, path, sent };
  });
  const whole = Promise.all(all.map(({ sent }) => sent.ended));
  // The test moves the clock only when the backend hangs on every request in flight. Requests that are only slow therefore do not time
  // out.
  const expiry = setInterval(() => {
    const inFlight = all.filter(({ sent }) => sent.connection !== undefined);
    if (inFlight.every(({ path }) => hanging.has(path))) clock.pass(defaultBounds.upstreamHeadersTimeoutMs);
  }, 5);
  await whole;
  clearInterval(expiry);

  for (const { path, size, sent, behaviour, isAborted } of all) {
    expect(sent.ends).toBe(1);
    const whole = `${path} ${'x'.repeat(size)}`.slice(0, behaviour === 'talksOn' ? 500 : undefined);
    if (sent.failure === undefined) expect(sent.body === whole, path).toBe(true);
    else expect(whole.startsWith(sent.body), path).toBe(true);
    // A connection may close at the moment when the gateway sends a request on it. The request can be retried, because no byte of a
    // response has arrived.
    if (sound.includes(behaviour) && !isAborted && sent.failure !== undefined) {
      expect(sent.failure).toMatchObject({ kind: 'lost', reach: 'unanswered_reused' });
    }
  }
  expect(all.filter(({ sent }) => sent.failure === undefined).length).toBeGreaterThan(all.length / 4);
  await pool.close();
  await until('all connections are closed', () => backend.openConnections() === 0);
});

function withBody(request: Partial<TargetRequest>, size: number): Partial<TargetRequest> {
  if (size === 0) return request;
  return {
    ...request,
    method: 'POST',
    fields: ['Host', 'a', 'Content-Length', String(size)],
    body: Buffer.alloc(size, 'b'),
  };
}

function resumeSoon(sent: Sent): void {
  setTimeout(() => {
    sent.wantsMore = true;
    sent.connection?.resume();
  }, 60);
}

function chunked(body: string): string {
  const chunks = body.match(/[\s\S]{1,700}/g) ?? [];
  const coded = chunks.map((chunk) => `${chunk.length.toString(16)}\r\n${chunk}\r\n`);
  return `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${coded.join('')}0\r\n\r\n`;
}

/** Writes the text in five pieces. */
function drip(socket: Socket, text: string, from = 0): void {
  const to = from + Math.ceil(text.length / 5);
  socket.write(text.slice(from, to));
  if (to < text.length) setTimeout(() => drip(socket, text, to), 1);
}
