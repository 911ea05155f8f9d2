import { describe, expect, it } from 'vitest';
import { classifyFailure, type Reach } from '../../gateway/forward/classify-failure.ts';
import { mayRetry, retryPauseMs } from '../../gateway/forward/retry-policy.ts';

function retried(
  code: string,
  reach: Reach,
  request: { method: string; hasBody?: boolean; attempts?: number },
) {
  const failure = classifyFailure(Object.assign(new Error('x'), { code }), reach);
  return mayRetry({ failure, reach, hasBody: false, attempts: 1, attemptsMax: 3, ...request });
}

describe('a failed attempt', () => {
  it.each([
    ['ECONNREFUSED', 'not_reached', 'POST', true, true],
    ['ECONNREFUSED', 'not_reached', 'GET', false, true],
    ['UND_ERR_CONNECT_TIMEOUT', 'not_reached', 'POST', true, true],
    ['UND_ERR_CLOSED', 'not_reached', 'POST', false, true],
    ['UND_ERR_INVALID_ARG', 'not_reached', 'GET', false, false],
    ['UND_ERR_SOCKET', 'unanswered', 'GET', false, true],
    ['ECONNRESET', 'unanswered', 'HEAD', false, true],
    ['UND_ERR_SOCKET', 'unanswered', 'GET', true, false],
    ['UND_ERR_SOCKET', 'unanswered', 'POST', false, false],
    ['UND_ERR_SOCKET', 'unanswered', 'DELETE', false, false],
    ['UND_ERR_SOCKET', 'answering', 'GET', false, false],
    ['UND_ERR_HEADERS_TIMEOUT', 'unanswered', 'GET', false, false],
  ] as const)('%s when %s: %s with body %s is tried again: %s', (code, reach, method, hasBody, expected) => {
    expect(retried(code, reach, { method, hasBody })).toBe(expected);
  });

  it('is tried again up to the limit of attempts', () => {
    expect(retried('ECONNREFUSED', 'not_reached', { method: 'GET', attempts: 2 })).toBe(true);
    expect(retried('ECONNREFUSED', 'not_reached', { method: 'GET', attempts: 3 })).toBe(false);
  });

  it('is blamed on the target’s connection only when it was one', () => {
    const connect = Object.assign(new Error('x'), { code: 'ECONNREFUSED' });
    expect(classifyFailure(connect, 'not_reached').isConnectFailure).toBe(true);
    expect(classifyFailure(connect, 'unanswered').isConnectFailure).toBe(false);
    const closed = Object.assign(new Error('x'), { code: 'UND_ERR_CLOSED' });
    expect(classifyFailure(closed, 'not_reached').isConnectFailure).toBe(false);
  });

  it('is told by its code, or by its name where it has none', () => {
    const causeOf = (code: unknown) =>
      classifyFailure(Object.assign(new TypeError('x'), { code }), 'unanswered').cause;
    expect(causeOf('ECONNRESET')).toBe('ECONNRESET: x');
    expect(causeOf(undefined)).toBe('TypeError: x');
    expect(classifyFailure(new TypeError('x'), 'unanswered').cause).toBe('TypeError: x');
  });
});

describe('the pause before an attempt', () => {
  it.each([
    [2, 0, 0],
    [2, 0.5, 10],
    [3, 0.5, 20],
    [9, 0.5, 100],
  ])('attempt %i with random %f waits %f ms', (attempt, random, expected) => {
    expect(retryPauseMs({ attempt, baseMs: 10, capMs: 200, random })).toBe(expected);
  });
});
