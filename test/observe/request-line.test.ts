import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { requestLine } from '../../gateway/observe/request-line.ts';

const usual = {
  time: '2026-11-21T10:02:17.123Z',
  requestId: '6f1f2f3a-0000-4000-8000-000000000001',
  method: 'GET',
  path: '/v1/pets',
  status: 200,
  keyId: 'acme',
  plan: 'free',
  address: '127.0.0.1',
  source: 'shared',
  window: 'minute',
  limit: 60,
  remaining: 59,
  target: '127.0.0.1:3000',
  upstreamMs: 1.936,
  totalMs: 2.812,
};
const plain = { columns: 100, colours: false, times: 1 };

/** The line without its time, which depends on the machine's time zone. */
function shown(entry: Record<string, unknown>, options: Partial<typeof plain> = {}): string {
  return requestLine({ ...usual, ...entry }, { ...plain, ...options }).replace(/^\[\d\d:\d\d:17\.123\] /, '');
}

describe('a request at a terminal', () => {
  it('is one line of at most 100 columns, or the width of the terminal, for any content', () => {
    const text = fc.string({ unit: fc.constantFrom('a', '/', '-', 'é'), maxLength: 300 });
    const entry = fc.record(
      {
        method: fc.constantFrom('GET', 'OPTIONS', undefined),
        path: text,
        error: fc.constantFrom('invalid_key', 'upstream_unavailable', undefined),
        keyStatus: fc.constantFrom('unknown', undefined),
        keyId: text,
        plan: text,
        address: fc.ipV6(),
        limit: fc.nat(999_999_999),
        target: text,
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(entry, fc.integer({ min: 60, max: 200 }), fc.nat(100_000), (found, columns, times) => {
        const line = requestLine({ ...usual, ...found }, { columns, colours: false, times });
        expect(line.length).toBeLessThanOrEqual(columns);
        expect(line).toMatch(/^\[\d\d:\d\d:\d\d\.\d{3}\] 200 /);
      }),
    );
  });

  it('shows everything if there is room, with the whole request id last', () => {
    expect(shown({}, { columns: 200 })).toBe(
      '200 GET /v1/pets  acme (free)  minute 59/60 left  2.8 ms (1.9 at 127.0.0.1:3000)  6f1f2f3a-0000-4000-8000-000000000001',
    );
  });

  it('omits the least important parts first: the end of the id, the target, the plan, the id, the duration, a word', () => {
    expect(shown({}, { columns: 110 })).toBe(
      '200 GET /v1/pets  acme (free)  minute 59/60 left  2.8 ms (1.9 at 127.0.0.1:3000)  6f1f2f3a',
    );
    expect(shown({}, { columns: 90 })).toBe(
      '200 GET /v1/pets  acme (free)  minute 59/60 left  2.8 ms  6f1f2f3a',
    );
    expect(shown({}, { columns: 75 })).toBe('200 GET /v1/pets  acme  minute 59/60 left  2.8 ms  6f1f2f3a');
    expect(shown({}, { columns: 70 })).toBe('200 GET /v1/pets  acme  minute 59/60 left  2.8 ms');
    expect(shown({}, { columns: 57 })).toBe('200 GET /v1/pets  acme  minute 59/60 left');
    expect(shown({}, { columns: 54 })).toBe('200 GET /v1/pets  acme  minute 59/60');
  });

  it('keeps both ends of a long path', () => {
    const line = shown({ path: `/v1/${'orders/'.repeat(30)}end-of-it` });
    expect(line).toMatch(/^200 GET \/v1\/orders\S+…\S+end-of-it {2}acme {2}minute 59\/60$/);
  });

  it('has the number of its requests instead of the id, also when narrow', () => {
    expect(shown({}, { times: 60 })).toMatch(/ {2}×60$/);
    expect(shown({ path: `/v1/${'orders/'.repeat(30)}` }, { times: 60 })).toMatch(/ {2}×60$/);
  });

  it('shows why a request was refused', () => {
    expect(shown({ status: 429, error: 'rate_limited', remaining: 0 })).toMatch(
      /^429 GET \/v1\/pets rate_limited {2}acme \(free\) {2}minute 0\/60 left/,
    );
    const stranger = { keyId: undefined, plan: undefined, target: undefined, window: 'address', limit: 30 };
    expect(shown({ ...stranger, status: 401, error: 'invalid_key', keyStatus: 'unknown' })).toMatch(
      /^401 GET \/v1\/pets invalid_key \(unknown\) {2}127\.0\.0\.1 {2}address 59\/30 left {2}2\.8 ms/,
    );
    expect(shown({ source: 'local' })).toContain('minute 59/60 left (Redis away)');
  });

  it.each([
    [200, '\u001b[32m200\u001b[39m '],
    [304, '\u001b[36m304\u001b[39m '],
    [429, '\u001b[33m429\u001b[39m '],
    [499, '\u001b[33m499\u001b[39m '],
    [502, '\u001b[31m502\u001b[39m '],
  ])('colours %i by its class, and nothing without colours', (status, start) => {
    expect(shown({ status }, { colours: true }).startsWith(start)).toBe(true);
    expect(shown({ status })).not.toContain('\u001b');
  });
});
