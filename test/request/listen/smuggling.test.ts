import { expect, test } from 'vitest';
import type { ErrorCode } from '../../../gateway/shared/errors.ts';
import { expectRejection, startListener } from '../../support/listener-fixture.ts';
import { exchangeRaw } from '../../support/raw-http.ts';

/**
 * A second request that the server must never serve. In each case, the second request is in the body of the first request, or follows the
 * malformed part of the first request.
 */
const smuggled = 'GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n';

function post(fields: string, body: string): string {
  return `POST /v1/pets HTTP/1.1\r\nHost: a\r\n${fields}\r\n${body}`;
}

const chunked = 'Transfer-Encoding: chunked\r\n';

const corpus: readonly [name: string, bytes: string, code?: ErrorCode][] = [
  ['CL.TE', post(`Content-Length: 6\r\n${chunked}`, `0\r\n\r\n${smuggled}`)],
  ['TE.CL', post(`${chunked}Content-Length: 3\r\n`, `1\r\nG\r\n0\r\n\r\n${smuggled}`)],
  ['TE twice', post(chunked + chunked, `0\r\n\r\n${smuggled}`)],
  ['TE twice, the second unknown', post(`${chunked}Transfer-Encoding: cow\r\n`, `0\r\n\r\n${smuggled}`)],
  ['TE xchunked', post('Transfer-Encoding: xchunked\r\n', `0\r\n\r\n${smuggled}`)],
  ['TE gzip, chunked', post('Transfer-Encoding: gzip, chunked\r\n', `0\r\n\r\n${smuggled}`)],
  ['TE chunked, identity', post('Transfer-Encoding: chunked, identity\r\n', `0\r\n\r\n${smuggled}`)],
  ['TE identity with CL', post('Transfer-Encoding: identity\r\nContent-Length: 1\r\n', `G${smuggled}`)],
  ['TE with a quoted value', post('Transfer-Encoding: "chunked"\r\n', `0\r\n\r\n${smuggled}`)],
  ['TE with a vertical tab', post('Transfer-Encoding: \x0bchunked\r\n', `0\r\n\r\n${smuggled}`)],
  ['TE with a space before its colon', post('Transfer-Encoding : chunked\r\n', `0\r\n\r\n${smuggled}`)],
  ['TE folded', post('Transfer-Encoding:\r\n chunked\r\n', `0\r\n\r\n${smuggled}`)],
  ['TE behind a bare CR', post('X: a\rTransfer-Encoding: chunked\r\n', `0\r\n\r\n${smuggled}`)],
  ['TE behind a bare LF', post('X: a\nTransfer-Encoding: chunked\r\n', `0\r\n\r\n${smuggled}`)],
  ['TE in HTTP/1.0', post(chunked, `0\r\n\r\n${smuggled}`).replace('HTTP/1.1', 'HTTP/1.0')],
  ['a leading space in the first field', `GET / HTTP/1.1\r\n Host: a\r\n\r\n${smuggled}`],
  ['CL twice, alike', post('Content-Length: 1\r\nContent-Length: 1\r\n', `G${smuggled}`)],
  ['CL twice, different', post('Content-Length: 0\r\nContent-Length: 36\r\n', smuggled)],
  ['CL as a list', post('Content-Length: 0, 36\r\n', smuggled)],
  ['CL with a plus', post('Content-Length: +0\r\n', smuggled)],
  ['CL with a minus', post('Content-Length: -1\r\n', smuggled)],
  ['CL with leading zeros', post('Content-Length: 00\r\n', smuggled)],
  ['CL in hexadecimal', post('Content-Length: 0x0\r\n', smuggled)],
  ['CL with a space inside', post('Content-Length: 1 2\r\n', smuggled)],
  ['CL empty', post('Content-Length: \r\n', smuggled)],
  ['CL beyond 2^64', post('Content-Length: 18446744073709551616\r\n', smuggled)],
  ['CL with a space before its colon', post('Content-Length : 36\r\n', smuggled)],
  ['CL folded', post('Content-Length:\r\n 36\r\n', smuggled)],
  ['a chunk size in 0x', post(chunked, `0x0\r\n\r\n${smuggled}`)],
  ['a chunk size with a sign', post(chunked, `+0\r\n\r\n${smuggled}`)],
  ['a chunk size beyond 2^64', post(chunked, `10000000000000000\r\n${smuggled}`)],
  ['a chunk size with a trailing space', post(chunked, `0 \r\n\r\n${smuggled}`)],
  ['a chunk size ended by LF', post(chunked, `0\n\n${smuggled}`)],
  ['a chunk size ended by CR', post(chunked, `0\r\r\n${smuggled}`)],
  ['no chunk size', post(chunked, `\r\n${smuggled}`)],
  ['a chunk longer than its size', post(chunked, `1\r\nGG\r\n0\r\n\r\n${smuggled}`)],
  ['a chunk ended by LF', post(chunked, `1\r\nG\n0\r\n\r\n${smuggled}`)],
  ['a chunk extension with a bare LF', post(chunked, `0;a\n\r\n${smuggled}`)],
  ['a trailer with a space before its colon', post(chunked, `0\r\nX : a\r\n\r\n${smuggled}`)],
  ['lines ended by LF', `GET / HTTP/1.1\nHost: a\n\n${smuggled}`],
  ['a head ended by LF', `GET / HTTP/1.1\r\nHost: a\r\n\n${smuggled}`],
  ['a space before the colon of Host', `GET / HTTP/1.1\r\nHost : a\r\n\r\n${smuggled}`],
  ['a NUL in a value', `GET / HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n${smuggled}`],
  ['a NUL in a name', `GET / HTTP/1.1\r\nHost: a\r\nX\0: a\r\n\r\n${smuggled}`],
  ['a field without a colon', `GET / HTTP/1.1\r\nHost: a\r\nX\r\n\r\n${smuggled}`],
  ['a field without a name', `GET / HTTP/1.1\r\nHost: a\r\n: a\r\n\r\n${smuggled}`],
  ['a folded field', `GET / HTTP/1.1\r\nHost: a\r\nX: a\r\n b\r\n\r\n${smuggled}`],
  ['two Hosts', `GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n${smuggled}`],
  ['no Host', `GET / HTTP/1.1\r\n\r\n${smuggled}`],
  ['no Host in HTTP/1.0', `GET / HTTP/1.0\r\n\r\n`],
  [
    'two Authorizations',
    `GET / HTTP/1.1\r\nHost: a\r\nAuthorization: x\r\nauthorization: y\r\n\r\n${smuggled}`,
  ],
  ['an absolute target with a user', `GET http://a@evil/ HTTP/1.1\r\nHost: a\r\n\r\n${smuggled}`],
  ['an absolute target with two Hosts', `GET http://a/ HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n${smuggled}`],
  ['OPTIONS for a server', `OPTIONS http://a HTTP/1.1\r\nHost: a\r\n\r\n${smuggled}`],
  ['OPTIONS *', `OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n${smuggled}`],
  ['a target with a tab', `GET /\ta HTTP/1.1\r\nHost: a\r\n\r\n${smuggled}`],
  ['a target beyond ASCII', `GET /\xff HTTP/1.1\r\nHost: a\r\n\r\n${smuggled}`],
  ['no version', `GET /\r\nHost: a\r\n\r\n${smuggled}`],
  ['HTTP/0.9', `GET / HTTP/0.9\r\nHost: a\r\n\r\n${smuggled}`],
  ['HTTP/1.2', `GET / HTTP/1.2\r\nHost: a\r\n\r\n${smuggled}`],
  ['HTTP/2.0', `GET / HTTP/2.0\r\nHost: a\r\n\r\n${smuggled}`],
  ['the preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
  ['the hello of TLS', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03'],
  ['a text that is no request', 'hello, gateway\r\n\r\n'],
  ['an unknown method', `BREW / HTTP/1.1\r\nHost: a\r\n\r\n${smuggled}`, 'method_not_implemented'],
  ['a method in lower case', `get / HTTP/1.1\r\nHost: a\r\n\r\n${smuggled}`, 'method_not_implemented'],
  ['TRACE', `TRACE / HTTP/1.1\r\nHost: a\r\n\r\n${smuggled}`, 'method_not_implemented'],
  ['CONNECT', `CONNECT evil:443 HTTP/1.1\r\nHost: evil\r\n\r\n${smuggled}`, 'method_not_implemented'],
  [
    'an unknown expectation',
    `GET / HTTP/1.1\r\nHost: a\r\nExpect: tea\r\n\r\n${smuggled}`,
    'expectation_failed',
  ],
  ['a chunk extension without end', post(chunked, `1;${'a'.repeat(20_000)}`), 'payload_too_large'],
];

test.each(corpus)(
  '%s gets one error and the end of the connection, and smuggles no request',
  async (_, bytes, code) => {
    const { port, served } = await startListener();
    const responses = await exchangeRaw(port, bytes);
    expect(responses).toHaveLength(1);
    expectRejection(responses[0], code ?? 'invalid_request');
    expect(served.filter((request) => request.includes('smuggled'))).toEqual([]);
  },
);

test.each(corpus)(
  '%s behind a good request gets an error after the good response',
  async (_, bytes, code) => {
    const { port, served } = await startListener();
    const [good, bad, ...more] = await exchangeRaw(port, `GET /good HTTP/1.1\r\nHost: a\r\n\r\n${bytes}`);
    expect(good?.status).toBe(200);
    expectRejection(bad, code ?? 'invalid_request');
    expect(more).toEqual([]);
    expect(served.filter((request) => request.includes('smuggled'))).toEqual([]);
  },
);

test('the preface of HTTP/2 gets an error that names the version of this listener', async () => {
  const { port } = await startListener();
  const [response] = await exchangeRaw(port, 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
  expect(JSON.parse(response?.body ?? '').message).toBe(
    'This is HTTP/2, and the gateway speaks HTTP/1.1 only.',
  );
});
