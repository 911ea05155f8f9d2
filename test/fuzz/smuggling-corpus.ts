import { secrets } from './fuzz-keys.ts';
import { smuggled } from './strange-parts.ts';

export interface CorpusCase {
  readonly name: string;
  readonly bytes: string;
  /** The requests that the backend receives. `first-only`: the backend receives the first request, and the gateway refuses the rest. */
  readonly expect: 'refused' | 'admitted-once' | 'admitted-twice' | 'first-only';
  /** The statuses of all responses, in order. */
  readonly responses: readonly number[];
}

const authorized = `Host: api.test\r\nAuthorization: Bearer ${secrets.valid}\r\n`;
const post = `POST /v1/pets HTTP/1.1\r\n${authorized}`;
const get = `GET /v1/pets HTTP/1.1\r\n${authorized}`;
const chunked = 'Transfer-Encoding: chunked\r\n';
const length = (body: string): string => `Content-Length: ${body.length}\r\n`;
/** A chunked body that contains `content`. */
const chunk = (content: string): string => `${content.length.toString(16)}\r\n${content}\r\n0\r\n\r\n`;

/** A GET request with one unusual field line. */
const withField = (line: string): string => `${get}${line}\r\n\r\n`;
/** A POST request with this framing. A parser with different framing finds a second request in the body. */
const framed = (fields: string): string => `${post}${fields}\r\n\r\n0\r\n\r\n${smuggled}`;

const refused = { expect: 'refused', responses: [400] } as const;
const admitted = { expect: 'admitted-once', responses: [200] } as const;
const admittedTwice = { expect: 'admitted-twice', responses: [200, 200] } as const;
const firstOnly = { expect: 'first-only', responses: [200, 400] } as const;

/** The known ways to make two parsers of one connection disagree, from RFC 9112 §11.2 and published attacks. */
export const smugglingCorpus: readonly CorpusCase[] = [
  // Two kinds of framing in one request.
  { name: 'CL.TE', bytes: framed('Content-Length: 5\r\nTransfer-Encoding: chunked'), ...refused },
  { name: 'TE.CL', bytes: framed('Transfer-Encoding: chunked\r\nContent-Length: 5'), ...refused },
  {
    name: 'TE.TE, the second unknown',
    bytes: framed('Transfer-Encoding: chunked\r\nTransfer-Encoding: x'),
    ...refused,
  },
  { name: 'CL.CL, different', bytes: framed('Content-Length: 5\r\nContent-Length: 0'), ...refused },
  { name: 'CL.CL, the same', bytes: `${post}Content-Length: 1\r\nContent-Length: 1\r\n\r\nx`, ...refused },
  {
    name: 'CL.0: a GET whose body is a request',
    bytes: `${get}${length(smuggled)}\r\n${smuggled}`,
    ...admitted,
  },
  {
    name: 'TE.0: a chunked GET whose body is a request',
    bytes: `${get}${chunked}\r\n${chunk(smuggled)}`,
    ...admitted,
  },
  { name: '0.CL: a space before the colon', bytes: framed('Content-Length : 5'), ...refused },

  // A Content-Length that only some parsers read as a number.
  { name: 'Content-Length with a sign', bytes: framed('Content-Length: +5'), ...refused },
  { name: 'Content-Length below zero', bytes: framed('Content-Length: -5'), ...refused },
  { name: 'Content-Length as a list', bytes: framed('Content-Length: 5, 5'), ...refused },
  { name: 'Content-Length in hexadecimal', bytes: framed('Content-Length: 0x5'), ...refused },
  { name: 'Content-Length with a space inside', bytes: framed('Content-Length: 5 0'), ...refused },
  { name: 'Content-Length beyond 2^64', bytes: framed('Content-Length: 18446744073709551621'), ...refused },
  { name: 'Content-Length folded', bytes: framed('Content-Length:\r\n 5'), ...refused },

  // A Transfer-Encoding that some parsers read as chunked.
  { name: 'xchunked', bytes: framed('Transfer-Encoding: xchunked'), ...refused },
  { name: 'chunked in quotes', bytes: framed('Transfer-Encoding: "chunked"'), ...refused },
  { name: 'chunked behind a vertical tab', bytes: framed('Transfer-Encoding:\x0bchunked'), ...refused },
  { name: 'chunked on a folded line', bytes: framed('Transfer-Encoding:\r\n chunked'), ...refused },
  { name: 'chunked, then identity', bytes: framed('Transfer-Encoding: chunked, identity'), ...refused },
  { name: 'identity', bytes: framed('Transfer-Encoding: identity'), ...refused },
  { name: 'a space before the colon', bytes: framed('Transfer-Encoding : chunked'), ...refused },
  { name: 'a NUL before the colon', bytes: framed('Transfer-Encoding\0: chunked'), ...refused },
  { name: 'a line feed before the name', bytes: framed('X: x\nTransfer-Encoding: chunked'), ...refused },
  { name: 'a return before the name', bytes: framed('X: x\rTransfer-Encoding: chunked'), ...refused },
  {
    name: 'a tab before the value',
    bytes: `${post}Transfer-Encoding:\tchunked\r\n\r\n${chunk('x')}`,
    ...admitted,
  },
  {
    name: 'Chunked with a capital',
    bytes: `${post}Transfer-Encoding: Chunked\r\n\r\n${chunk('x')}`,
    ...admitted,
  },
  {
    name: 'Transfer_Encoding',
    bytes: `${withField('Transfer_Encoding: chunked')}${get}\r\n`,
    ...admittedTwice,
  },

  // Chunks.
  { name: 'a chunk extension', bytes: `${post}${chunked}\r\n1;a=b\r\nx\r\n0\r\n\r\n`, ...admitted },
  { name: 'a line feed in a chunk extension', bytes: `${post}${chunked}\r\n1;a\nx\r\n0\r\n\r\n`, ...refused },
  { name: 'a return in a chunk extension', bytes: `${post}${chunked}\r\n1;a\rx\r\n0\r\n\r\n`, ...refused },
  { name: 'a chunk size with 0x', bytes: `${post}${chunked}\r\n0x1\r\nx\r\n0\r\n\r\n`, ...refused },
  { name: 'a chunk size with a space', bytes: `${post}${chunked}\r\n1 \r\nx\r\n0\r\n\r\n`, ...refused },
  {
    name: 'a chunk size beyond 2^64',
    bytes: `${post}${chunked}\r\n10000000000000001\r\nx\r\n0\r\n\r\n`,
    ...refused,
  },
  { name: 'a chunk size ended by a line feed', bytes: `${post}${chunked}\r\n1\nx\r\n0\r\n\r\n`, ...refused },
  { name: 'a chunk longer than its size', bytes: `${post}${chunked}\r\n1\r\nxy\r\n0\r\n\r\n`, ...refused },
  { name: 'a chunk ended by a line feed', bytes: `${post}${chunked}\r\n1\r\nx\n0\r\n\r\n`, ...refused },
  {
    name: 'a trailer that forges a key',
    bytes: `${post}${chunked}\r\n1\r\nx\r\n0\r\nX-Key-Id: forged\r\n\r\n`,
    ...admitted,
  },

  // Bytes that some parsers treat as the end of a line or string.
  {
    name: 'a bare line feed behind the request line',
    bytes: `GET /v1/pets HTTP/1.1\n${authorized}\r\n`,
    ...refused,
  },
  { name: 'a bare line feed in a value', bytes: withField('X-A: a\nX-Key-Id: forged'), ...refused },
  { name: 'a bare return in a value', bytes: withField('X-A: a\rX-Key-Id: forged'), ...refused },
  { name: 'a NUL in a value', bytes: withField('X-A: a\0b'), ...refused },
  { name: 'a NUL in the target', bytes: `GET /v1/pets\0 HTTP/1.1\r\n${authorized}\r\n`, ...refused },
  { name: 'a folded value', bytes: withField('X-A: a\r\n X-Key-Id: forged'), ...refused },
  {
    name: 'a folded first field',
    bytes: `GET /v1/pets HTTP/1.1\r\n X-A: a\r\n${authorized}\r\n`,
    ...refused,
  },
  { name: 'a field line without a colon', bytes: withField('X-A'), ...refused },
  { name: 'a field without a name', bytes: withField(': a'), ...refused },
  { name: 'a second request in the target', bytes: `GET /v1/pets?${'\r\n'}${smuggled}`, ...refused },

  // Ambiguous credentials and addresses, which hide the sender of the request.
  { name: 'two keys', bytes: withField(`Authorization: Bearer ${secrets.other}`), ...refused },
  { name: 'two hosts', bytes: withField('Host: other.test'), ...refused },
  {
    name: 'Connection names the key and the framing',
    bytes: `${post}Connection: authorization, content-length\r\n${length('x')}\r\nx`,
    ...admitted,
  },
  {
    name: 'a forged key id',
    bytes: withField('X-Key-Id: forged\r\nx_key_id: forged\r\nX.Key.Id: forged'),
    ...admitted,
  },
  {
    name: 'an absolute target',
    bytes: `GET http://other.test/v1/pets HTTP/1.1\r\n${authorized}\r\n`,
    ...admitted,
  },
  {
    name: 'an absolute target with a user',
    bytes: `GET http://api.test@other.test/v1/pets HTTP/1.1\r\n${authorized}\r\n`,
    ...refused,
  },
  {
    name: 'an absolute target without a host',
    bytes: `GET http:///v1/pets HTTP/1.1\r\n${authorized}\r\n`,
    ...refused,
  },
  {
    name: 'an absolute target with https, without TLS',
    bytes: `GET https://other.test/v1/pets HTTP/1.1\r\n${authorized}\r\n`,
    ...refused,
  },
  {
    name: 'h2c',
    bytes: withField('Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQ'),
    ...admitted,
  },
  {
    name: 'TE.TE, the first unknown',
    bytes: framed('Transfer-Encoding: x\r\nTransfer-Encoding: chunked'),
    ...refused,
  },
  {
    name: 'gzip, chunked, and a whole request behind it',
    bytes: `${post}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n${get}\r\n`,
    ...refused,
  },
  {
    name: 'HTTP/2.0 with keep-alive, and a request behind it',
    bytes: `GET /v1/pets HTTP/2.0\r\n${authorized}Connection: keep-alive\r\n\r\n${get}\r\n`,
    ...refused,
  },
  { name: 'half an HTTP/2 preface', bytes: 'PRI /x\r\nHost: a\r\n\r\n', expect: 'refused', responses: [501] },
  {
    name: 'a request behind an ignored upgrade',
    bytes: `${get}Connection: Upgrade\r\nUpgrade: h2c\r\n\r\n${post}${length(smuggled)}\r\n${smuggled}`,
    ...admitted,
  },
  {
    name: 'HTTP/1.0 with Proxy-Connection, and a request behind it',
    bytes: `GET /v1/pets HTTP/1.0\r\n${authorized}Proxy-Connection: keep-alive\r\n\r\n${get}\r\n`,
    ...admitted,
  },
  { name: 'the HTTP/2 preface', bytes: 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', ...refused },

  // Pipelines.
  { name: 'two requests in one packet', bytes: `${get}\r\n${get}\r\n`, ...admittedTwice },
  { name: 'a request behind a body', bytes: `${post}${length('x')}\r\nx${get}\r\n`, ...admittedTwice },
  {
    name: 'a request behind chunks',
    bytes: `${post}${chunked}\r\n${chunk('x')}${get}\r\n`,
    ...admittedTwice,
  },
  {
    name: 'garbage behind a body',
    bytes: `${post}${length('x')}\r\nxGARBAGE${get}\r\n`,
    expect: 'first-only',
    responses: [200, 501],
  },
  {
    name: 'CL.TE behind a request',
    bytes: `${get}\r\n${framed('Content-Length: 5\r\nTransfer-Encoding: chunked')}`,
    ...firstOnly,
  },
  {
    name: 'a request behind Connection: close',
    bytes: `${get}Connection: close\r\n\r\n${smuggled}`,
    ...admitted,
  },
  {
    name: 'a request behind a refused body',
    bytes: `POST /v1/pets HTTP/1.1\r\nHost: a\r\nContent-Length: 9999\r\n\r\n${smuggled}`,
    expect: 'refused',
    responses: [401],
  },
  {
    name: 'a request in a body that is too large',
    bytes: `${post}Content-Length: 99999\r\n\r\n${smuggled}`,
    expect: 'refused',
    responses: [413],
  },
];
