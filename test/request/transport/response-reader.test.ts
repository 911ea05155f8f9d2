import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { Duplex } from 'node:stream';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { stopClock } from '../../support/stopped-clock.ts';
import { send, startPool } from './pool-fixture.ts';
import { readResponse } from './read-response.ts';

const read = (text: string, { method = 'GET', closes = false } = {}) =>
  readResponse({ method, reads: [text], closes });

describe('a response', () => {
  it.each([
    ['a length', 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi'],
    ['chunks', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nh\r\n0001;a="b"\r\ni\r\n0\r\n\r\n'],
    [
      'chunks and trailers',
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nX: y\r\nZ:\r\n\r\n',
    ],
    [
      'interim responses first',
      'HTTP/1.1 103 X\r\nA: b\r\n\r\nHTTP/1.1 100 C\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi',
    ],
  ])('with %s is read whole, and later octets are surplus', (_what, text) => {
    expect(read(text)).toMatchObject({ end: 'complete', status: 200, body: 'hi' });
    expect(read(text.slice(0, -1))).toMatchObject({ end: 'open' });
    expect(read(text.slice(0, -1), { closes: true })).toMatchObject({ end: 'open' });
    expect(read(`${text}HTTP/1.1 200 OK\r\n`)).toMatchObject({ end: 'surplus', status: 200, body: 'hi' });
  });

  it('without framing ends with the connection', () => {
    const text = 'HTTP/1.1 200 OK\r\n\r\nhi';
    expect(read(text)).toMatchObject({ end: 'open', body: 'hi' });
    expect(read(text, { closes: true })).toMatchObject({ end: 'complete', body: 'hi' });
  });

  it('to HEAD has no body, whatever octets follow', () => {
    const text = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n';
    expect(read(text, { method: 'HEAD' })).toMatchObject({ end: 'complete', body: '' });
    expect(read(`${text}hi`, { method: 'HEAD' })).toMatchObject({ end: 'surplus', body: '' });
  });

  it.each(['SSH-2.0-x', '<', 'HTTP/1.1 200 OK\nX: y\n', '\r\nHTTP/1.1 200 OK', 'HTTP/2', '\x16\x03\x01'])(
    'that begins %j is malformed at once',
    (text) => {
      expect(read(text)).toMatchObject({ end: 'malformed' });
    },
  );

  it.each(['H', 'HTTP/1', 'HTTP/1.1 2'])('may begin with a read of %j', (text) => {
    expect(read(text)).toMatchObject({ end: 'open' });
  });

  it.each([
    ['no size', '\r\n'],
    ['an empty size with an extension', ';a\r\n'],
    ['a size with a sign', '+2\r\nhi\r\n'],
    ['a size with a prefix', '0x2\r\nhi\r\n'],
    ['a space behind the size', '2 \r\nhi\r\n'],
    ['a size of 17 digits', '00000000000000002\r\nhi\r\n'],
    ['a size beyond what a number can hold', 'ffffffffffffffff\r\nhi\r\n'],
    ['a size ended by a bare LF', '2\nhi\r\n'],
    ['a bare CR in an extension', '2;a\rb\r\nhi\r\n'],
    ['a chunk longer than its size', '2\r\nhi!\r\n'],
    ['a chunk ended by a bare LF', '2\r\nhi\n'],
    ['a trailer without a colon', '0\r\nX\r\n\r\n'],
    ['a folded trailer', '0\r\nX: a\r\n b\r\n\r\n'],
    ['a last chunk ended by a bare LF', '0\r\n\n'],
  ])('with %s is malformed', (_what, body) => {
    expect(read(`HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${body}`)).toMatchObject({
      end: 'malformed',
    });
  });
});

it('many small chunks in one read are all parsed, with or without the last chunk', () => {
  const chunks = '1\r\nx\r\n'.repeat(1_000);
  const text = `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${chunks}0\r\n\r\n`;
  expect(read(text.slice(0, -5))).toMatchObject({ end: 'open', body: 'x'.repeat(1_000) });
  expect(read(text)).toMatchObject({ end: 'complete', body: 'x'.repeat(1_000) });
});

describe('the limits of the response reader', () => {
  const chunked = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n';
  const bounds = {
    upstreamHeadersBytesMax: 100,
    upstreamFieldsCountMax: 5,
    interimResponsesMax: 3,
    chunkExtensionsBytesMax: 20,
  };
  const end = (text: string) => readResponse({ method: 'GET', reads: [text], closes: false, bounds }).end;

  it('hold for a head, complete or incomplete', () => {
    const head = (length: number) => `HTTP/1.1 204 OK\r\nX: ${'x'.repeat(length - 20)}\r\n\r\n`;
    expect(end(head(100))).toBe('complete');
    expect(end(head(101))).toBe('malformed');
    expect(end(head(100).slice(0, -4))).toBe('open');
    expect(end(head(150).slice(0, -4))).toBe('malformed');
  });

  it('hold for a head together with the interim responses before it', () => {
    const interim = 'HTTP/1.1 103 X\r\n\r\n';
    const head = (length: number) => `HTTP/1.1 204 OK\r\nX: ${'x'.repeat(length - 20)}\r\n\r\n`;
    expect(end(interim + head(100 - interim.length))).toBe('complete');
    expect(end(interim + head(101 - interim.length))).toBe('malformed');
    expect(end(interim + head(150 - interim.length).slice(0, -4))).toBe('malformed');
  });

  it('hold for the number of interim responses, including those that are dropped', () => {
    const response = 'HTTP/1.1 204 X\r\n\r\n';
    const interims = (count: number) => 'HTTP/1.1 100 C\r\n\r\n'.repeat(count);
    expect(end(interims(3) + response)).toBe('complete');
    expect(end(interims(4) + response)).toBe('malformed');
  });

  it('hold for the extensions of all chunks together', () => {
    expect(end(`${chunked}2;${'x'.repeat(19)}\r\n`)).toBe('open');
    expect(end(`${chunked}2;${'x'.repeat(20)}\r\n`)).toBe('malformed');
    expect(end(`${chunked}${'1;xxxx\r\na\r\n'.repeat(4)}`)).toBe('open');
    expect(end(`${chunked}${'1;xxxx\r\na\r\n'.repeat(5)}`)).toBe('malformed');
    expect(end(`${chunked}2;${'x'.repeat(200)}`)).toBe('malformed');
  });

  it('hold for all trailers together, in octets and in number', () => {
    expect(end(`${chunked}0\r\n${'X: yyyyyyyyyyyyyy\r\n'.repeat(4)}\r\n`)).toBe('complete');
    expect(end(`${chunked}0\r\n${'X: yyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n'.repeat(4)}\r\n`)).toBe('malformed');
    expect(end(`${chunked}0\r\n${'X:\r\n'.repeat(6)}\r\n`)).toBe('malformed');
    expect(end(`${chunked}0\r\nX: ${'y'.repeat(300)}`)).toBe('malformed');
  });
});

describe('a response in single octets', () => {
  it('takes work in proportion to its length', () => {
    const head = (fields: number) =>
      `HTTP/1.1 204 X\r\n${'X: yyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n'.repeat(fields)}\r\n`;
    const bounds = { upstreamHeadersBytesMax: 4_000_000, upstreamFieldsCountMax: 100_000 };
    /** The CPU time of the cheapest of three rounds, because a round may include a garbage collection. */
    const workOf = (text: string, times: number) => {
      const reads = [...text];
      const took = [1, 2, 3].map(() => {
        const before = process.cpuUsage();
        for (let time = 0; time < times; time++)
          expect(readResponse({ method: 'GET', reads, closes: false, bounds }).end).toBe('complete');
        return process.cpuUsage(before).user;
      });
      return Math.min(...took);
    };
    workOf(head(1_000), 1);
    // Both have the same number of octets, so that both can be measured. A reader with quadratic work would take 16 times as long for the
    // larger heads.
    expect(workOf(head(8_000), 4) / workOf(head(500), 64)).toBeLessThan(4);
  });

  it.each([
    ['a bare CR', 'HTTP/1.1 200 OK\r\nX: a\rb'],
    ['a bare LF', 'HTTP/1.1 200 OK\r\nX: a\n'],
    ['a NUL', 'HTTP/1.1 200 OK\r\nX: \0'],
    ['another control character', 'HTTP/1.1 200 \x0b'],
  ])('is malformed as soon as %s arrives', (_what, text) => {
    const reads = [...text];
    expect(readResponse({ method: 'GET', reads, closes: false }).end).toBe('malformed');
    expect(readResponse({ method: 'GET', reads: reads.slice(0, -1), closes: false }).end).toBe('open');
  });
});

it('no part of a response reaches the caller if its body is malformed in the same read as its head', () => {
  const text = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\nZZ\r\n';
  expect(read(text)).toMatchObject({ end: 'malformed', status: undefined, body: '' });
});

it('interim responses reach the caller in order, except 100', () => {
  const text = 'HTTP/1.1 103 A\r\n\r\nHTTP/1.1 100 B\r\n\r\nHTTP/1.1 102 C\r\n\r\nHTTP/1.1 204 D\r\n\r\n';
  expect(read(text)).toMatchObject({ end: 'complete', interims: [103, 102] });
  expect(readResponse({ method: 'GET', reads: [...text], closes: false })).toMatchObject({
    end: 'complete',
    interims: [103, 102],
  });
});

const pick = fc.constantFrom;
const fieldLine = pick(
  'X: y',
  'Content-Length: 4',
  'Content-Length: 4, 4',
  'Content-Length: 12',
  'content-length:\t0004 ',
  'Content-Length: +4',
  'Transfer-Encoding: chunked',
  'transfer-encoding: CHUNKED',
  'Transfer-Encoding: gzip, chunked',
  'Transfer-Encoding: identity',
  'Transfer-Encoding : chunked',
  'Transfer-Encoding: chunked\n',
  ' folded',
  'X: a\rb',
  'Connection: close',
  'Connection: keep-alive',
  'Keep-Alive: timeout=1',
  'Trailer: X',
  'Set-Cookie: \xe9',
);
const bodyPart = pick(
  'abcd',
  '4\r\nabcd\r\n',
  '4;x=y\r\nabcd\r\n',
  '4 \r\nabcd\r\n',
  '04\r\nabcd\r\n',
  '0\r\n',
  'X: y\r\n',
  '\r\n',
  '\n',
  '\xff',
  '5\r\nab',
);
const response = fc
  .record({
    interim: fc.array(pick('HTTP/1.1 100 Continue\r\n\r\n', 'HTTP/1.1 103 X\r\nLink: a\r\n\r\n'), {
      maxLength: 2,
    }),
    version: pick('HTTP/1.1', 'HTTP/1.1', 'HTTP/1.1', 'HTTP/1.0', 'HTTP/1.2'),
    status: pick('200 OK', '200', '204 No Content', '304 X', '404 Not Found', '500 \xe9', '20 OK', '999 X'),
    fields: fc.array(fieldLine, { maxLength: 4 }),
    body: fc.array(bodyPart, { maxLength: 5 }),
  })
  .map(({ interim, version, status, fields, body }) =>
    [...interim, [`${version} ${status}`, ...fields, '', ''].join('\r\n'), ...body].join(''),
  );
const exchange = fc.record({ method: pick('GET', 'GET', 'HEAD', 'POST'), text: response });

it('a response is the same for any place at which its octets are split', () => {
  for (const text of [
    'HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nabcd',
    'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4;x=y\r\nabcd\r\n2\r\nef\r\n0\r\nX: y\r\n\r\n',
    'HTTP/1.1 103 X\r\nLink: a\r\n\r\nHTTP/1.1 200 OK\r\n\r\nabcd',
  ]) {
    const { end, status, body } = read(text, { method: 'GET', closes: true });
    expect(end).toBe('complete');
    for (let at = 1; at < text.length; at++) {
      const reads = [text.slice(0, at), text.slice(at)];
      const cut = readResponse({ method: 'GET', reads, closes: true });
      expect([at, cut]).toEqual([at, expect.objectContaining({ end, status, body })]);
    }
  }
});

describe('random octets', () => {
  it('are parsed alike for any split into reads', () => {
    const cuts = fc.array(fc.nat(400), { maxLength: 12 });
    fc.assert(
      fc.property(exchange, cuts, ({ method, text }, places) => {
        const reads: string[] = [];
        let from = 0;
        for (const place of [...places, text.length].toSorted((a, b) => a - b)) {
          reads.push(text.slice(from, place));
          from = Math.max(from, place);
        }
        const { end, status, body } = read(text, { method, closes: true });
        const cut = readResponse({ method, reads, closes: true });
        // For a malformed response, the reader may return the status, and the part of the body that precedes the fault.
        expect(cut).toMatchObject(end === 'malformed' ? { end } : { end, status, body });
      }),
      { numRuns: 500 },
    );
  });

  it('are a response only where Node’s parser reads the same one', async () => {
    let agreed = 0;
    await fc.assert(
      fc.asyncProperty(exchange, async ({ method, text }) => {
        const { end, status, body } = read(text, { method, closes: true });
        if (end !== 'complete') return;
        agreed++;
        expect(await readByNode(method, text)).toEqual({ status, body });
      }),
      { numRuns: 1_000 },
    );
    expect(agreed).toBeGreaterThan(20);
  });
});

it('each response in a sequence on one connection belongs to its own request, as with Node’s parser', async () => {
  const { backend, pool } = await startPool({ connectionsPerTargetMax: 1 });
  const clock = stopClock();
  const sound = fc.record({
    method: pick('GET', 'GET', 'HEAD', 'POST'),
    text: pick(
      'HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nabcd',
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n0\r\n\r\n',
      'HTTP/1.1 304 X\r\n\r\n',
      'HTTP/1.1 204 X\r\nContent-Length: 4\r\n\r\nabcd',
    ),
  });
  const step = fc.record({
    exchange: fc.oneof(sound, sound, exchange),
    cut: fc.nat(120),
    delayMs: fc.nat(2),
    ends: pick(false, false, false, true),
  });
  let agreed = 0;
  let reused = 0;
  /** The responses that the backend has begun, in all runs, because a run may reuse the connection of the run before. */
  let begun = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 2, maxLength: 6 }), async (steps) => {
      const texts = steps.map(({ exchange: { text } }, i) => text.replaceAll('abcd', `abc${i}`));
      backend.react = ({ target }, socket) => {
        const i = Number(target.slice(1));
        const { cut = 0, delayMs = 0, ends = false } = steps[i] ?? {};
        const own = ++begun;
        const rest = Buffer.from(texts[i]?.slice(cut) ?? '', 'latin1');
        socket.write(texts[i]?.slice(0, cut) ?? '', 'latin1');
        // Once the next response has begun, the backend keeps the connection open, because a close would
        // truncate the next response.
        setTimeout(() => (ends && begun === own ? socket.end(rest) : socket.write(rest)), delayMs);
      };
      for (const [
        i,
        {
          exchange: { method },
        },
      ] of steps.entries()) {
        const sent = send(pool, { method, path: `/${i}` });
        const expiry = setTimeout(() => clock.passUntil(sent.ended, 15_000), 20);
        await sent.ended;
        clearTimeout(expiry);
        if (sent.failure !== undefined) continue;
        agreed++;
        const [earlier, latest] = backend.requests.slice(-2);
        if (latest !== undefined && earlier?.connection === latest.connection) reused++;
        expect({ status: sent.status, body: sent.body }).toEqual(await readByNode(method, texts[i] ?? ''));
      }
    }),
    { numRuns: 100 },
  );
  expect(agreed).toBeGreaterThan(30);
  expect(reused).toBeGreaterThan(5);
});

/** The response according to Node's own client. */
async function readByNode(
  method: string,
  text: string,
): Promise<{ status: number | undefined; body: string }> {
  const socket = new Duplex({ read() {}, write: (_chunk, _encoding, done) => done() });
  const sent = request({ method, createConnection: () => socket }).end();
  // If octets follow the response, Node's client emits an error after the response.
  sent.on('error', () => {});
  socket.push(Buffer.from(text, 'latin1'));
  socket.push(null);
  const [res] = (await once(sent, 'response')) as [IncomingMessage];
  const pieces: Buffer[] = [];
  for await (const piece of res) pieces.push(piece);
  return { status: res.statusCode, body: Buffer.concat(pieces).toString('latin1') };
}
