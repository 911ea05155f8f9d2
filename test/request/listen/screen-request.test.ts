import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { screenRequest } from '../../../gateway/request/listen/screen-request.ts';
import { defaultBounds } from '../../../gateway/shared/timeouts-and-sizes.ts';

const plain = { method: 'GET', url: '/v1/pets', httpVersion: '1.1', rawHeaders: ['Host', 'api.example.com'] };

function screen(
  request: Parameters<typeof screenRequest>[0],
  { isHandshake = false, isSecure = false } = {},
) {
  return screenRequest(request, { bounds: defaultBounds, isHandshake, isSecure });
}

function withTarget(url: string) {
  return screen({ ...plain, url });
}

function withFields(...rawHeaders: string[]) {
  return screen({ ...plain, method: 'POST', rawHeaders: [...plain.rawHeaders, ...rawHeaders] });
}

describe('request targets', () => {
  test.each([
    ['/', '/'],
    ['/v1/pets', '/v1/pets'],
    ['/v1/pets/', '/v1/pets/'],
    ['/v1/pets?', '/v1/pets'],
    ['/v1/pets?limit=5&x=%zz//..;\\<>"{}|^`[]', '/v1/pets'],
    ["/v1/pets/~a.b-c_d!$&'()*+,=:@", "/v1/pets/~a.b-c_d!$&'()*+,=:@"],
    ['/v1/.hidden/..a/...', '/v1/.hidden/..a/...'],
    ['/v1/pets/caf%C3%A9%20%3A%3b', '/v1/pets/caf%C3%A9%20%3A%3b'],
    ['/v1/pets/50%25', '/v1/pets/50%25'],
    ['/v1/pets/50%25%32', '/v1/pets/50%25%32'],
    ['/v1/pets?tags[]=a|b', '/v1/pets'],
    ['/v1/tags[0]/a|b', '/v1/tags[0]/a|b'],
    ['/v1/projects/group%2Fname', '/v1/projects/group%2Fname'],
    ['/v1/projects/%2Fetc%2f', '/v1/projects/%2Fetc%2f'],
    ['/v1/pets?next=http://a/../b', '/v1/pets'],
  ])('%s has the path %s', (target, path) => {
    const screened = withTarget(target);
    expect(screened.kind === 'accepted' ? screened.path : undefined).toBe(path);
  });

  test.each([
    ['/v1/%70ets', '/v1/pets'],
    ['/%76%31/pets', '/v1/pets'],
    ['/%7Eada/a%2Db%5Fc%2Ejson', '/~ada/a-b_c.json'],
    ['/%7eada', '/~ada'],
    ['/v1/pets/%2E%2E%2E', '/v1/pets/...'],
    ['/v1/pets/%C3%A9%41', '/v1/pets/%C3%A9A'],
    ['/v1/group%2Fn%61me', '/v1/group%2Fname'],
    ['/v1/50%25%32?a=%41', '/v1/50%252'],
  ])('%s is found as %s, and forwarded as it is', (target, plainPath) => {
    expect(withTarget(target)).toMatchObject({ kind: 'accepted', target, plainPath });
  });

  test.each([
    ['http://api.example.org/v1/pets?limit=5', 'api.example.org', '/v1/pets?limit=5', '/v1/pets'],
    ['HTTP://a:80/v1/pets', 'a:80', '/v1/pets', '/v1/pets'],
    ['http://a:/v1/pets', 'a', '/v1/pets', '/v1/pets'],
    ['http://[::1]:8080/v1/%70ets', '[::1]:8080', '/v1/%70ets', '/v1/%70ets'],
    ['http://a', 'a', '/', '/'],
    ['http://a/', 'a', '/', '/'],
    ['http://a?x=http://b/', 'a', '/?x=http://b/', '/'],
  ])('the absolute form %s has the host %s and the origin form %s', (url, host, target, path) => {
    expect(withTarget(url)).toMatchObject({ kind: 'accepted', host, target, path });
  });

  test('an absolute form with https needs a connection with TLS', () => {
    const request = { ...plain, url: 'https://api.example.com/v1/pets' };
    expect(screen(request, { isSecure: true })).toMatchObject({ kind: 'accepted', target: '/v1/pets' });
    expect(screen(request)).toMatchObject({ kind: 'refused', code: 'invalid_request' });
    expect(screen({ ...plain, url: 'http://a/v1/pets' }, { isSecure: true }).kind).toBe('accepted');
  });

  test('OPTIONS with an absolute form needs a path, because it would mean the whole server', () => {
    expect(screen({ ...plain, method: 'OPTIONS', url: 'http://a' }).kind).toBe('refused');
    expect(screen({ ...plain, method: 'OPTIONS', url: '*' }).kind).toBe('refused');
    expect(screen({ ...plain, method: 'OPTIONS', url: 'http://a/' })).toMatchObject({ target: '/' });
    expect(screen({ ...plain, method: 'OPTIONS', url: 'http://a?x' })).toMatchObject({ target: '/?x' });
  });

  test.each([[[]], [['Host', 'a', 'Host', 'a']], [['Host', 'a b']], [['Host', '']]])(
    'an absolute form does not excuse the fields %j',
    (rawHeaders) => {
      expect(screen({ ...plain, url: 'http://a/v1/pets', rawHeaders }).kind).toBe('refused');
    },
  );

  test.each([
    ['', 'an empty target'],
    ['*', 'the asterisk form'],
    ['ftp://a/v1/pets', 'another scheme'],
    ['ws://a/v1/pets', 'the scheme of WebSockets'],
    ['http:/v1/pets', 'an absolute form without an authority'],
    ['http:///v1/pets', 'an absolute form without a host'],
    ['http://:80/v1/pets', 'an absolute form with a port alone'],
    ['http://ada@a/v1/pets', 'a user'],
    ['http://ada:pass@a/v1/pets', 'a user with a password'],
    ['http://a@/v1/pets', 'a user without a host'],
    ['http://a\\b/v1/pets', 'a backslash in the host'],
    ['http://a%2Fb/v1/pets', 'an escape in the host'],
    ['http://a:123456/v1/pets', 'a long port'],
    ['http://a:x/v1/pets', 'a port that is no number'],
    ['http://a#top', 'a fragment behind the host'],
    ['http://a/v1/pets#top', 'a fragment of an absolute form'],
    ['http://a//v1/pets', 'an empty first segment of an absolute form'],
    ['http://a/v1/../admin', 'a dot segment of an absolute form'],
    ['http://a/http://b/', 'an absolute form in an absolute form'],
    ['evil:443', 'the authority form'],
    ['v1/pets', 'a relative path'],
    ['?limit=5', 'a bare query'],
    ['//evil/v1/pets', 'a leading double slash'],
    ['/v1//pets', 'an empty segment'],
    ['/v1/pets//', 'an empty segment at the end'],
    ['/v1/./pets', 'a dot segment'],
    ['/v1/../admin', 'a double-dot segment'],
    ['/v1/pets/..', 'a double-dot segment at the end'],
    ['/v1/pets/.', 'a dot segment at the end'],
    ['/..?a', 'a dot segment before the query'],
    ['/v1/%2e%2e/admin', 'escaped dots'],
    ['/v1/.%2E/admin', 'half-escaped dots'],
    ['/v1/%2e/admin', 'an escaped dot'],
    ['/v1\\pets', 'a backslash'],
    ['/v1/pets%2F..%2Fadmin', 'dots between escaped slashes'],
    ['/v1/pets/..%2fadmin', 'dots before an escaped slash'],
    ['/v1/pets%2F.', 'a dot behind an escaped slash'],
    ['/v1/pets%2f%2E%2e/admin', 'escaped dots behind an escaped slash'],
    ['/v1/pets%25%32f1', 'a twice-escaped slash with an escaped digit'],
    ['/v1/pets%25%32%66', 'a twice-escaped slash with two escaped digits'],
    ['/v1/pets%5c1', 'an escaped backslash'],
    ['/v1/pets%00', 'an escaped NUL'],
    ['/v1/pets%0d%0aX-Key-Id:1', 'an escaped line end'],
    ['/v1/pets%7f', 'an escaped DEL'],
    ['/v1/pets%252f1', 'a twice-escaped slash'],
    ['/v1/%252e%252e/admin', 'twice-escaped dots'],
    ['/v1/%25252fadmin', 'a thrice-escaped slash'],
    ['/v1/%c0%af', 'an overlong slash'],
    ['/v1/%c0%ae%c0%ae/admin', 'overlong dots'],
    ['/v1/%ff', 'broken UTF-8'],
    ['/v1/pets;a=1', 'a path parameter'],
    ['/v1/..;/admin', 'a path parameter behind dots'],
    ['/v1/pets#top', 'a fragment'],
    ['/v1/pets?a#top', 'a fragment in the query'],
    ['/v1/pets%', 'a bare percent sign'],
    ['/v1/pets%2', 'half an escape'],
    ['/v1/pets%zz', 'an escape that is none'],
    ['/v1/p ets', 'a space'],
    ['/v1/pets?a b', 'a space in the query'],
    ['/v1/pets\t', 'a tab'],
    ['/v1/pets\0', 'a NUL'],
    ['/v1/caf\xe9', 'a byte beyond ASCII'],
    ['/v1/pets?caf\xe9', 'a byte beyond ASCII in the query'],
    ['/v1/<pets>', 'brackets'],
    ['/v1/{petId}', 'braces'],
  ])('%j is refused: %s', (target) => {
    expect(withTarget(target)).toEqual({
      kind: 'refused',
      code: 'invalid_request',
      message: expect.any(String),
    });
  });

  test('the longest URI is accepted, and one byte more is refused', () => {
    const longest = `/${'a'.repeat(defaultBounds.targetBytesMax - 1)}`;
    expect(withTarget(longest).kind).toBe('accepted');
    expect(withTarget(`${longest}a`)).toMatchObject({ kind: 'refused', code: 'uri_too_long' });
  });

  test('no accepted printable URI has a second reading', () => {
    const piece = fc.oneof(
      fc.constantFrom(
        '/',
        '.',
        '..',
        '%2e',
        '%2F',
        '%5c',
        '%00',
        '%25',
        '2f',
        ';',
        '\\',
        '//',
        '#',
        '?',
        '%c0%ae',
      ),
      fc.string({
        unit: fc.integer({ min: 0x20, max: 0x7e }).map((byte) => String.fromCharCode(byte)),
        maxLength: 3,
      }),
    );
    let accepted = 0;
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
        const target = `/${pieces.join('')}`;
        const screened = withTarget(target);
        if (screened.kind === 'refused') return;
        accepted += 1;
        expect(screened.target).toBe(target);
        expect(target.split('?', 1)).toEqual([screened.path]);
        expect(decodeURIComponent(screened.plainPath)).toBe(decodeURIComponent(screened.path));
        expect(screened.plainPath, 'no equivalent spelling is shorter').not.toMatch(
          /%(?:[46][1-9a-f]|[57][0-9a]|3[0-9]|2[de]|5f|7e)/i,
        );
        const url = new URL(target, 'http://gateway');
        expect(url.host).toBe('gateway');
        expect(url.pathname, 'no parser rewrites it').toBe(screened.path);
        const decoded = decodeURIComponent(screened.path);
        const separators = screened.path.split(/\/|%2f/i).length;
        expect(decoded.split('/').length, 'only %2F hides a separator').toBe(separators);
        expect(decoded).not.toMatch(/[\\\0-\x1f\x7f]|\/\.\.?(?:\/|$)/);
      }),
      { numRuns: 5_000 },
    );
    expect(accepted, 'targets that pass').toBeGreaterThan(250);
  });
});

describe('methods and versions', () => {
  test.each(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND'])(
    '%s is known',
    (method) => {
      expect(screen({ ...plain, method }).kind).toBe('accepted');
    },
  );

  test.each(['get', 'BREW', 'DESCRIBE', 'CONNECT', 'TRACE', '', '__proto__'])(
    '%j is not implemented',
    (method) => {
      expect(screen({ ...plain, method })).toMatchObject({ code: 'method_not_implemented' });
    },
  );

  test.each([
    ['1.1', 'accepted'],
    ['1.0', 'accepted'],
    ['0.9', 'refused'],
    ['2.0', 'refused'],
    ['1.2', 'refused'],
  ])('HTTP/%s is %s', (httpVersion, kind) => {
    expect(screen({ ...plain, httpVersion }).kind).toBe(kind);
  });
});

describe('the Host field', () => {
  test.each([
    'a',
    'api.example.com',
    'api.example.com:8080',
    '127.0.0.1',
    '[::1]',
    '[::1]:80',
    'my_backend:1',
    'a:',
    '[::1]:',
  ])('%s is accepted', (host) => {
    expect(screen({ ...plain, rawHeaders: ['hOST', host] }).kind).toBe('accepted');
  });

  test.each([
    '',
    ' ',
    'a b',
    'a/b',
    'a@b',
    'a,b',
    ':',
    ':80',
    'a::',
    'a:x',
    'a:123456',
    '[::1',
    '::1',
    'a?b',
    'a#b',
    'caf\xe9',
    'a:1:2',
  ])('%j is refused', (host) => {
    expect(screen({ ...plain, rawHeaders: ['Host', host] })).toMatchObject({
      code: 'invalid_request',
    });
  });

  test('loses the colon of an empty port, and gives way to the host of an absolute form', () => {
    const rawHeaders = ['Host', 'a:'];
    expect(screen({ ...plain, rawHeaders })).toMatchObject({ host: 'a' });
    expect(screen({ ...plain, rawHeaders, url: 'http://b:8080/v1/pets' })).toMatchObject({ host: 'b:8080' });
  });

  test('is required, in HTTP/1.0 too', () => {
    expect(screen({ ...plain, rawHeaders: [] }).kind).toBe('refused');
    expect(screen({ ...plain, rawHeaders: [], httpVersion: '1.0' }).kind).toBe('refused');
  });
});

describe('framing', () => {
  test.each([
    [],
    ['Content-Length', '0'],
    ['content-length', '12'],
    ['Transfer-Encoding', 'chunked'],
    ['TRANSFER-ENCODING', 'Chunked'],
  ])('%j, %j frames a body unambiguously', (...fields) => {
    expect(withFields(...fields)).toMatchObject({ kind: 'accepted' });
  });

  test.each([
    '',
    '-1',
    '+1',
    '1.0',
    '003',
    '0x10',
    '1e3',
    ' 1',
    '1 ',
    '1, 1',
    '1;1',
    '9'.repeat(16),
    '\u0661',
  ])('Content-Length %j is refused', (value) => {
    expect(withFields('Content-Length', value).kind).toBe('refused');
  });

  test.each([
    '',
    'gzip',
    'gzip, chunked',
    'chunked, chunked',
    'xchunked',
    'chunked;q=1',
    'identity',
    '\tchunked',
    'chunked ',
  ])('Transfer-Encoding %j is refused', (value) => {
    expect(withFields('Transfer-Encoding', value).kind).toBe('refused');
  });

  test('both framings together are refused in either order', () => {
    expect(withFields('Content-Length', '3', 'Transfer-Encoding', 'chunked').kind).toBe('refused');
    expect(withFields('Transfer-Encoding', 'chunked', 'Content-Length', '3').kind).toBe('refused');
  });

  test('Transfer-Encoding in HTTP/1.0 is refused', () => {
    const rawHeaders = ['Host', 'a', 'Transfer-Encoding', 'chunked'];
    expect(screen({ ...plain, httpVersion: '1.0', rawHeaders }).kind).toBe('refused');
  });
});

describe('header fields', () => {
  test.each(['Host', 'Authorization', 'Content-Type', 'Content-Length', 'Transfer-Encoding', 'Expect'])(
    'a second %s is refused, even with the same value and in any spelling',
    (name) => {
      const value =
        { Host: 'api.example.com', 'Content-Length': '3', 'Transfer-Encoding': 'chunked' }[name] ?? 'x';
      const first = name === 'Host' ? [] : [name, value];
      expect(withFields(...first, name.toUpperCase(), value)).toMatchObject({ code: 'invalid_request' });
    },
  );

  test('fields with a list as value may come twice', () => {
    expect(withFields('Accept', 'a/b', 'Accept', 'c/d', 'Cookie', 'a=1', 'Cookie', 'b=2').kind).toBe(
      'accepted',
    );
  });

  test.each(['', 'X Y', 'X:', 'X\0', 'X\r', 'Caf\xe9', 'X(', '"X"'])('the name %j is refused', (name) => {
    expect(withFields(name, 'a').kind).toBe('refused');
  });

  test.each(['a\0b', 'a\rb', 'a\nb', 'a\r\n b', 'a\x1bb', 'a\x7fb', 'a\u0100b'])(
    'the value %j is refused',
    (value) => {
      expect(withFields('X-Note', value).kind).toBe('refused');
    },
  );

  test('tabs and bytes beyond ASCII are accepted in values', () => {
    expect(withFields('X-Note', 'a\tb \xe9\xff').kind).toBe('accepted');
  });

  test('the largest number of header fields is accepted, and one more is refused', () => {
    const most = Array.from({ length: defaultBounds.headersCountMax - 1 }, (_, i) => [`X-${i}`, '1']).flat();
    expect(withFields(...most).kind).toBe('accepted');
    expect(withFields(...most, 'X-More', '1')).toMatchObject({ code: 'headers_too_large' });
  });

  test.each<[string, string[], string | undefined]>([
    ['one', ['Sec-WebSocket-Protocol', 'tollgate, tollgate.bearer.tg_1'], 'Bearer tg_1'],
    [
      'one on a line of its own',
      ['Sec-WebSocket-Protocol', 'a', 'sec-websocket-protocol', 'tollgate.bearer.x'],
      'Bearer x',
    ],
    [
      'one with all characters of a token',
      ['Sec-WebSocket-Protocol', "\ttollgate.bearer.!#$%&'*+-.^_`|~9aZ ,,a"],
      "Bearer !#$%&'*+-.^_`|~9aZ",
    ],
    ['none', ['Sec-WebSocket-Protocol', 'tollgate, a.tollgate.bearer.x'], undefined],
    ['Authorization alone', ['Sec-WebSocket-Protocol', 'tollgate', 'Authorization', 'Bearer y'], 'Bearer y'],
  ])(
    'the secret in the subprotocols of a WebSocket is returned as Authorization: %s',
    (_what, fields, authorization) => {
      const handshake = { ...plain, rawHeaders: [...plain.rawHeaders, ...fields] };
      expect(screen(handshake, { isHandshake: true })).toMatchObject({
        kind: 'accepted',
        authorization,
      });
    },
  );

  test.each<[string, string[]]>([
    ['two subprotocols', ['Sec-WebSocket-Protocol', 'tollgate.bearer.x, tollgate.bearer.x']],
    [
      'subprotocols of two lines',
      ['Sec-WebSocket-Protocol', 'tollgate.bearer.x', 'sec-websocket-protocol', 'Tollgate.Bearer.y'],
    ],
    [
      'Authorization and a subprotocol',
      ['Authorization', 'Basic a', 'Sec-WebSocket-Protocol', 'tollgate.bearer.x'],
    ],
  ])(
    'a WebSocket that presents secrets in %s is refused, and its secret is not repeated',
    (_what, fields) => {
      const handshake = { ...plain, rawHeaders: [...plain.rawHeaders, ...fields] };
      expect(screen(handshake, { isHandshake: true })).toEqual({
        kind: 'refused',
        code: 'invalid_request',
        message: 'A WebSocket must present one secret: in Authorization or in one subprotocol.',
      });
    },
  );

  test.each([
    'chat room',
    'chat;v=2',
    '"chat"',
    'chat, {a}',
    'caf\xe9',
    'tollgate.bearer.tg_1=',
    'tollgate.bearer.a b',
  ])(
    'a WebSocket that offers the subprotocols %j, which are no tokens, is refused, and they are not repeated',
    (offer) => {
      const rawHeaders = [
        ...plain.rawHeaders,
        'Sec-WebSocket-Protocol',
        'chat',
        'Sec-WebSocket-Protocol',
        offer,
      ];
      expect(screen({ ...plain, rawHeaders }, { isHandshake: true })).toEqual({
        kind: 'refused',
        code: 'invalid_request',
        message: 'Sec-WebSocket-Protocol must be a list of tokens.',
      });
      expect(screen({ ...plain, rawHeaders }, { isHandshake: false }).kind).toBe('accepted');
    },
  );

  test.each(['', ',', 'chat,,superchat', ' chat ,\tv2.chat-x ', "!#$%&'*+-.^_`|~"])(
    'a WebSocket that offers the subprotocols %j is accepted',
    (offer) => {
      const rawHeaders = [...plain.rawHeaders, 'Sec-WebSocket-Protocol', offer];
      expect(screen({ ...plain, rawHeaders }, { isHandshake: true }).kind).toBe('accepted');
    },
  );

  test('the raw Authorization value is returned', () => {
    expect(withFields('authorization', 'Bearer  abc')).toMatchObject({ authorization: 'Bearer  abc' });
    expect(withFields()).toMatchObject({ authorization: undefined });
  });

  test('only 100-continue can be expected', () => {
    expect(withFields('Expect', '100-Continue')).toMatchObject({ kind: 'accepted' });
    expect(withFields('Expect', '100-continue, x')).toMatchObject({ code: 'expectation_failed' });
    expect(withFields('Expect', '')).toMatchObject({ code: 'expectation_failed' });
    const old = { ...plain, httpVersion: '1.0', rawHeaders: ['Host', 'a', 'Expect', '100-continue'] };
    expect(screen(old)).toMatchObject({ code: 'expectation_failed' });
  });
});
