import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { Duplex } from 'node:stream';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readAnswer } from './read-answer.ts';

const read = (text: string, { method = 'GET', closes = false } = {}) =>
  readAnswer({ method, reads: [text], closes });

describe('an answer', () => {
  it.each([
    ['a length', 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi'],
    ['chunks', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nh\r\n0001;a="b"\r\ni\r\n0\r\n\r\n'],
    [
      'chunks and trailers',
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nX: y\r\nZ:\r\n\r\n',
    ],
    [
      'interim answers first',
      'HTTP/1.1 103 X\r\nA: b\r\n\r\nHTTP/1.1 100 C\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi',
    ],
  ])('with %s is read whole, and what follows is surplus', (_what, text) => {
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

  it('to HEAD has no body, whatever follows', () => {
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

it('the content of all chunks of a read is one piece', () => {
  const chunks = '1\r\nx\r\n'.repeat(1_000);
  const text = `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${chunks}0\r\n\r\n`;
  expect(read(text)).toMatchObject({ end: 'complete', body: 'x'.repeat(1_000), pieces: 1 });
});

describe('the limit', () => {
  const headBytesMax = 100;
  const chunked = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n';
  const end = (text: string) => readAnswer({ method: 'GET', reads: [text], closes: false, headBytesMax }).end;

  it('holds for a head, complete or not', () => {
    const head = (length: number) => `HTTP/1.1 204 OK\r\nX: ${'x'.repeat(length - 20)}\r\n\r\n`;
    expect(end(head(headBytesMax))).toBe('complete');
    expect(end(head(headBytesMax + 1))).toBe('malformed');
    expect(end(head(headBytesMax).slice(0, -4))).toBe('open');
    expect(end(head(headBytesMax + 50).slice(0, -4))).toBe('malformed');
  });

  it('holds for the extensions of a chunk', () => {
    expect(end(`${chunked}2;${'x'.repeat(headBytesMax - 4)}\r\n`)).toBe('open');
    expect(end(`${chunked}2;${'x'.repeat(headBytesMax - 3)}\r\n`)).toBe('malformed');
    expect(end(`${chunked}2;${'x'.repeat(headBytesMax)}`)).toBe('malformed');
  });

  it('holds for all trailers together', () => {
    expect(end(`${chunked}0\r\n${'X: y\r\n'.repeat(10)}\r\n`)).toBe('complete');
    expect(end(`${chunked}0\r\n${'X: y\r\n'.repeat(20)}\r\n`)).toBe('malformed');
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
const answer = fc
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
const exchange = fc.record({ method: pick('GET', 'GET', 'HEAD', 'POST'), text: answer });

describe('any octets', () => {
  it('mean the same however they are cut into reads', () => {
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
        expect(readAnswer({ method, reads, closes: true })).toMatchObject({ end, status, body });
      }),
      { numRuns: 3_000 },
    );
  });

  it('are an answer only where Node’s parser reads the same one', async () => {
    let agreed = 0;
    await fc.assert(
      fc.asyncProperty(exchange, async ({ method, text }) => {
        const { end, status, body } = read(text, { method, closes: true });
        if (end !== 'complete') return;
        agreed++;
        expect(await readByNode(method, text)).toEqual({ status, body });
      }),
      { numRuns: 3_000 },
    );
    expect(agreed).toBeGreaterThan(100);
  });
});

/** What Node's own client makes of these octets. */
async function readByNode(
  method: string,
  text: string,
): Promise<{ status: number | undefined; body: string }> {
  const socket = new Duplex({ read() {}, write: (_chunk, _encoding, done) => done() });
  const sent = request({ method, createConnection: () => socket }).end();
  socket.push(Buffer.from(text, 'latin1'));
  socket.push(null);
  const [res] = (await once(sent, 'response')) as [IncomingMessage];
  const pieces: Buffer[] = [];
  for await (const piece of res) pieces.push(piece);
  return { status: res.statusCode, body: Buffer.concat(pieces).toString('latin1') };
}
