import { describe, expect, it } from 'vitest';
import { responseFields } from '../../gateway/forward/response-fields.ts';

const cached = ['Cache-Control', 'private'];

function fieldsOf(fields: string[], { status = 200, ownFields = [] as string[] } = {}): string[] {
  return responseFields({ status, fields, ownFields });
}

describe('the head of an answer', () => {
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

  it('replaces the backend’s copies of our fields, and sets Link beside its own', () => {
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

  it('keeps the backend’s Deprecation when we set none', () => {
    expect(fieldsOf(['Deprecation', '@1'])).toEqual(['Deprecation', '@1', ...cached]);
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
