import { secrets } from './fuzz-keys.ts';

/** Parts of requests that parsers interpret in different ways. Text is Latin-1. */

/** Every forged value contains this text. */
export const forgery = 'forged';

export const strangeMethods = [
  'DELETE',
  'OPTIONS',
  'PATCH',
  'TRACE',
  'CONNECT',
  'PRI',
  'QUERY',
  'M-SEARCH',
  'BREW',
  'get',
  'G\0ET',
  'G(T',
  '\tGET',
  '',
];

export const strangeTargets = [
  '/',
  '/v1',
  '/v1/unknown',
  '/v1/pets/',
  '/V1/pets',
  '/v1/Pets',
  '//v1/pets',
  '/v1//pets',
  '/v1/./pets',
  '/v1/x/../pets',
  '/v1/pets/..',
  '/v1/pets/1/../../store/orders',
  '/v1/pets/%2e%2e',
  '/v1/pets/%2E%2E%2Fstore',
  '/v1/pets/a%2fb',
  '/v1/pets/a%5Cb',
  '/v1/pets/a%00b',
  '/v1/pets/%252e',
  '/v1/pets/%c0%af',
  '/v1/pets/%',
  '/v1/%70ets',
  '/v1\\pets',
  '/v1/pets;a=b',
  '/v1/pets/1;/../x',
  '/v1/pets#x',
  '/v1/pets?a#b',
  '/v1/pets?a=\x80',
  '/v1/p\xe9ts',
  '/v1/pets\t',
  '/v1/pets/a b',
  '/healthz',
  '*',
  'v1/pets',
  'http://backend/v1/pets',
  'http://[',
  '//evil/v1/pets',
  'evil:443',
  `/v1/pets/${'9'.repeat(9_000)}`,
];

export const strangeVersions = [
  'HTTP/1.0',
  'HTTP/0.9',
  'HTTP/2.0',
  'HTTP/1.2',
  'http/1.1',
  'HTTP/1.1 ',
  'HTTP/01.1',
  'HTTP/1.10',
  'ICE/1.0',
  '',
];

export const strangeLineEnds = ['\n', '\r', '\r\r\n', '\n\r', '\r\n\r\n', ' \r\n', '\0\r\n'];

export const strangeHosts: readonly string[][] = [
  [],
  ['Host:'],
  ['Host: a', 'Host: b'],
  ['Host: a, b'],
  ['Host: a@b'],
  ['Host: a/b'],
  ['Host: [::1]:80'],
  ['host: a:99999'],
  ['Host : a'],
];

export const strangeAuthorizations: readonly string[][] = [
  [],
  [`Authorization: Bearer ${secrets.valid}`, `Authorization: Bearer ${secrets.other}`],
  [`Authorization: Bearer ${secrets.unknown}`, `Authorization: Bearer ${secrets.valid}`],
  [`authorization:bearer   ${secrets.other}`],
  [`Authorization: Basic ${secrets.valid}`],
  [`Authorization: Bearer ${secrets.valid}, Bearer ${secrets.other}`],
  [`Authorization: Bearer\t${secrets.valid}`],
  [`Authorization: Bearer ${secrets.valid} x`],
  [`Authorization : Bearer ${secrets.valid}`],
  [`Authorization_: Bearer ${secrets.valid}`],
  [`Proxy-Authorization: Bearer ${secrets.valid}`],
  ['Authorization: Bearer __proto__'],
  ['Authorization: Bearer '],
];

/** Fields that the backend may receive only from the gateway. */
export const ownNames = [
  'X-Request-Id',
  'X-Key-Id',
  'X-Plan',
  'X-Forwarded-For',
  'X-Forwarded-Host',
  'X-Forwarded-Proto',
  'X-Forwarded-Port',
  'Forwarded',
];

export const strangeFields = [
  'Connection: close',
  'Connection: keep-alive',
  'Connection: authorization, content-length, transfer-encoding, host',
  'Connection: x-request-id, x-key-id, x-plan, via',
  'Connection: close, X-Forwarded-For',
  'Connection: Upgrade, HTTP2-Settings',
  'Keep-Alive: timeout=1',
  'TE: trailers',
  'Trailer: X-Key-Id',
  'Upgrade: h2c\r\nConnection: Upgrade',
  'Upgrade: websocket\r\nConnection: Upgrade',
  'HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA',
  'Expect: 100-continue',
  'Expect: something',
  'Proxy-Connection: keep-alive',
  'X Y: a',
  'X-Colon : a',
  ': a',
  'nocolon',
  ' X-Fold: a',
  'X-Folded: a\r\n b',
  'X-Nul: a\0b',
  'X-Return: a\rb',
  `X-Feed: a\nX-Key-Id: ${forgery}`,
  'X-Latin: \xe9\xff',
  'X-Delete: \x7f',
  'X-Empty:',
  '__proto__: a',
  'constructor: a',
  'Content_Length: 0',
  'Transfer_Encoding: chunked',
  `X-Large: ${'x'.repeat(33_000)}`,
  Array.from({ length: 120 }, (_, i) => `X-Many-${i}: a`).join('\r\n'),
];

export const framingFields = [
  'Content-Length: 5',
  'Content-Length: 0',
  'Content-Length: 005',
  'Content-Length: +5',
  'Content-Length: -1',
  'Content-Length: 5, 5',
  'Content-Length: 5,6',
  'Content-Length: 5 6',
  'Content-Length: 0x5',
  'Content-Length:',
  'Content-Length : 5',
  'Content-Length: 99999999999999999999',
  'Content-Length: 3000',
  'Transfer-Encoding: chunked',
  'Transfer-Encoding: Chunked',
  'Transfer-Encoding: xchunked',
  'Transfer-Encoding: chunked, chunked',
  'Transfer-Encoding: gzip, chunked',
  'Transfer-Encoding: chunked, identity',
  'Transfer-Encoding: identity',
  'Transfer-Encoding: "chunked"',
  'Transfer-Encoding: chunked;q=1',
  'Transfer-Encoding:\x0bchunked',
  'Transfer-Encoding:\tchunked',
  'Transfer-Encoding : chunked',
  'Transfer-Encoding\r\n: chunked',
  'Transfer-Encoding:\r\n chunked',
  'Transfer-Encoding:',
  'X: x\nTransfer-Encoding: chunked',
];

/** Size lines of a chunk whose true size is `hex`. */
export const strangeSizes: readonly ((hex: string) => string)[] = [
  (hex) => hex.toUpperCase().padStart(4, '0'),
  (hex) => `${hex};name=value`,
  (hex) => `${hex};q="a\\"b"`,
  (hex) => `${hex};${'e'.repeat(20_000)}`,
  (hex) => `${hex} ;name`,
  (hex) => `${hex};a\nb`,
  (hex) => `${hex};a\rb`,
  (hex) => `${hex} `,
  (hex) => ` ${hex}`,
  (hex) => `0x${hex}`,
  (hex) => `+${hex}`,
  (hex) => `-${hex}`,
  (hex) => `1${'0'.repeat(15)}${hex}`,
  (hex) => `${hex}g`,
  () => '',
];

export const strangeLastChunks = [
  '',
  '0',
  '0\r\n',
  '00\r\n\r\n',
  '0;x\r\n\r\n',
  `0\r\nX-Key-Id: ${forgery}\r\n\r\n`,
  '0\r\nContent-Length: 5\r\n\r\n',
  '0\n\n',
  '0\r\n\r',
  '0\r\n X: folded\r\n\r\n',
  '0\r\nHost : a\r\n\r\n',
];

/** A body that a parser with different framing reads as a request. */
export const smuggled = `GET /v1/pets/666 HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${secrets.valid}\r\nX-Key-Id: ${forgery}\r\n\r\n`;

export const contents = [
  '',
  'x',
  '{"name":"Rex","categoryId":1}',
  smuggled,
  `0\r\n\r\n${smuggled}`,
  `1\r\nZ\r\n0\r\n\r\n${smuggled}`,
];
