import { describe, expect, it } from 'vitest';
import { privateCacheControl, responseFields } from '../../../gateway/request/forward/response-fields.ts';

const cached = ['Cache-Control', 'private'];

function fieldsOf(fields: string[], { status = 200, ownFields = [] as string[] } = {}): string[] {
  return responseFields({ status, fields, ownFields });
}

describe('the head of a response', () => {
  it('keeps every line of a repeated field', () => {
    const fields = ['Set-Cookie', 'a=1', 'set-cookie', 'b=2'];
    expect(fieldsOf(fields)).toEqual([...fields, ...cached]);
  });

  it('drops hop-by-hop fields and those that Connection names', () => {
    const fields = [
      ['Connection', 'close, X-Hop'],
      ['X-Hop', '1'],
      ['Keep-Alive', 'timeout=5'],
      ['Transfer-Encoding', 'chunked'],
      ['Trailer', 'x'],
      ['Upgrade', 'h2c'],
      ['CONNECTION', 'x-hop-too'],
      ['X-Hop-Too', '2'],
      ['Server', 'store'],
    ];
    expect(fieldsOf(fields.flat())).toEqual(['Server', 'store', ...cached]);
  });

  it('replaces the backend’s copies of the gateway’s fields, and adds Link to its own', () => {
    const fields = [
      ['X-RateLimit-Limit', '9'],
      ['x-ratelimit-anything', '9'],
      ['RateLimit', 'x'],
      ['RateLimit-Policy', 'x'],
      ['X-Request-ID', 'theirs'],
      ['DEPRECATION', '@1'],
      ['Link', '<a>; rel="next"'],
    ];
    const ownFields = ['X-Request-Id', 'ours', 'Deprecation', '@2', 'Link', '<b>; rel="successor-version"'];
    expect(fieldsOf(fields.flat(), { ownFields })).toEqual([
      'Link',
      '<a>; rel="next"',
      ...cached,
      ...ownFields,
    ]);
  });

  it.each(['Deprecation', 'DEPRECATION', 'Sunset', 'X-Stability', 'x-stability'])(
    'drops the backend’s %s, even if the gateway sets none',
    (name) => {
      expect(fieldsOf([name, 'theirs', 'Server', 'store'])).toEqual(['Server', 'store', ...cached]);
    },
  );

  it.each([
    'Age',
    'Content-Disposition',
    'Content-Location',
    'Content-Range',
    'Content-Type',
    'Date',
    'ETag',
    'Expires',
    'Last-Modified',
    'Location',
    'Retry-After',
  ])('keeps only the first %s, for any spelling of the others', (name) => {
    const fields = [name, 'first', 'Server', 'store', name.toUpperCase(), 'second', name, 'third'];
    expect(fieldsOf(fields)).toEqual([name, 'first', 'Server', 'store', ...cached]);
  });

  it.each(['Content-Encoding', 'Content-Language', 'Vary', 'Via', 'WWW-Authenticate', 'X-Key-Id'])(
    'keeps every %s, which may be a list',
    (name) => {
      const fields = [name, 'first', name, 'second'];
      expect(fieldsOf(fields)).toEqual([...fields, ...cached]);
    },
  );

  it('keeps the representation fields of a 304', () => {
    const fields = [
      'ETag',
      '"a"',
      'Last-Modified',
      'x',
      'Content-Length',
      '17',
      'Content-Type',
      'text/plain',
    ];
    expect(fieldsOf(fields, { status: 304 })).toEqual([...fields, ...cached]);
  });

  it('gives a 204 no Content-Length', () => {
    const fields = ['Content-Length', '0'];
    expect(fieldsOf(fields, { status: 204 })).toEqual(cached);
    expect(fieldsOf(fields)).toEqual([...fields, ...cached]);
  });

  it('joins the lines of Cache-Control before it makes them private', () => {
    const fields = ['Cache-Control', 'no-cache', 'cache-control', 'max-age=5'];
    expect(fieldsOf(fields)).toEqual(['Cache-Control', expect.stringContaining('no-cache, max-age=5')]);
  });
});

it.each([
  [undefined, 'private'],
  ['', 'private'],
  ['private', 'private'],
  ['Private, max-age=5', 'Private, max-age=5'],
  ['no-store', 'no-store'],
  ['max-age=5,\t private\t', 'max-age=5,\t private\t'],
  ['private\u00a0', 'private, private\u00a0'],
  ['no-cache', 'private, no-cache'],
  ['public, max-age=60', 'private, max-age=60'],
  [' public\t, , max-age=60', 'private, max-age=60'],
  ['s-maxage=60, Public, must-revalidate', 'private, must-revalidate'],
  ['private="x-field"', 'private, private="x-field"'],
])('a response with Cache-Control %j is sent with %j', (sent, expected) => {
  expect(privateCacheControl(sent)).toBe(expected);
});
