import { describe, expect, it } from 'vitest';
import { responseHead } from '../../gateway/forward/response-head.ts';

const cached = ['Cache-Control', 'private'];

function fieldsOf(
  headers: Record<string, string | string[]>,
  { status = 200, ownFields = [] as string[] } = {},
): string[] {
  const head = responseHead({ status, headers, ownFields });
  if (head.kind === 'broken') throw new Error(head.cause);
  return head.fields;
}

describe('the head of an answer', () => {
  it('keeps every line of a repeated field', () => {
    expect(fieldsOf({ 'set-cookie': ['a=1', 'b=2'] })).toEqual([
      'set-cookie',
      'a=1',
      'set-cookie',
      'b=2',
      ...cached,
    ]);
  });

  it('drops hop-by-hop fields and those that Connection names', () => {
    const headers = {
      connection: 'close, X-Hop',
      'keep-alive': 'timeout=5',
      'transfer-encoding': 'chunked',
      trailer: 'x',
      upgrade: 'h2c',
      'x-hop': '1',
      server: 'store',
    };
    expect(fieldsOf(headers)).toEqual(['server', 'store', ...cached]);
  });

  it('replaces the backend’s copies of our fields, and sets Link beside its own', () => {
    const headers = {
      'x-ratelimit-limit': '9',
      'x-ratelimit-anything': '9',
      ratelimit: 'x',
      'ratelimit-policy': 'x',
      'x-request-id': 'theirs',
      deprecation: '@1',
      link: '<a>; rel="next"',
    };
    const ownFields = ['X-Request-Id', 'ours', 'Deprecation', '@2', 'Link', '<b>; rel="successor-version"'];
    expect(fieldsOf(headers, { ownFields })).toEqual(['link', '<a>; rel="next"', ...cached, ...ownFields]);
  });

  it('keeps the backend’s Deprecation when we set none', () => {
    expect(fieldsOf({ deprecation: '@1' })).toEqual(['deprecation', '@1', ...cached]);
  });

  it('gives a 204 no Content-Length', () => {
    expect(fieldsOf({ 'content-length': '0' }, { status: 204 })).toEqual(cached);
    expect(fieldsOf({ 'content-length': '0' })).toEqual(['content-length', '0', ...cached]);
  });

  it.each([0, 99, 100, 101, 199, 600, 999])('calls status %i broken', (status) => {
    expect(responseHead({ status, headers: {}, ownFields: [] }).kind).toBe('broken');
  });

  it.each([200, 599])('takes status %i', (status) => {
    expect(responseHead({ status, headers: {}, ownFields: [] }).kind).toBe('ok');
  });

  it.each(['a\0b', 'a\rb', 'a\nb', 'a\x7fb', 'a\u0100b'])('calls the value %j broken', (value) => {
    expect(responseHead({ status: 200, headers: { x: value }, ownFields: [] }).kind).toBe('broken');
    expect(responseHead({ status: 200, headers: { x: ['a', value] }, ownFields: [] }).kind).toBe('broken');
  });

  it('calls a transfer coding that would be lost broken', () => {
    const headers = { 'transfer-encoding': 'gzip, chunked' };
    expect(responseHead({ status: 200, headers, ownFields: [] }).kind).toBe('broken');
  });
});
