import { describe, expect, it } from 'vitest';
import { mayRetry, retryPauseMs } from '../../../../gateway/request/forward/upstream/retry-policy.ts';
import type { Reach, TransportFailure } from '../../../../gateway/request/transport/target-request.ts';

function retried(
  kind: TransportFailure['kind'],
  reach: Reach,
  request: { method: string; hasBody?: boolean; attempts?: number; losses?: number },
) {
  const failure = { kind, reach, cause: 'x' };
  return mayRetry({ failure, hasBody: false, losses: 1, attempts: 1, attemptsMax: 3, ...request });
}

describe('a failed attempt', () => {
  it.each([
    ['connect', 'not_reached', 'POST', true, true],
    ['connect', 'not_reached', 'GET', false, true],
    ['closed', 'not_reached', 'POST', false, true],
    // If a new connection breaks before the response, the request may have crashed the target.
    ['lost', 'unanswered_fresh', 'GET', false, false],
    ['lost', 'unanswered_fresh', 'HEAD', false, false],
    ['lost', 'unanswered_reused', 'GET', false, true],
    ['lost', 'unanswered_reused', 'HEAD', false, true],
    ['lost', 'unanswered_reused', 'GET', true, false],
    ['lost', 'unanswered_reused', 'POST', false, false],
    ['lost', 'unanswered_reused', 'DELETE', false, false],
    ['lost', 'answering', 'GET', false, false],
    ['malformed', 'answering', 'GET', false, false],
    ['timeout', 'unanswered_reused', 'GET', false, false],
  ] as const)('%s when %s: retry of %s with body %s: %s', (kind, reach, method, hasBody, expected) => {
    expect(retried(kind, reach, { method, hasBody })).toBe(expected);
  });

  it('is retried up to the limit of attempts', () => {
    expect(retried('connect', 'not_reached', { method: 'GET', attempts: 2 })).toBe(true);
    expect(retried('connect', 'not_reached', { method: 'GET', attempts: 3 })).toBe(false);
  });

  it('is not retried after a second lost connection', () => {
    expect(retried('lost', 'unanswered_reused', { method: 'GET', attempts: 2, losses: 1 })).toBe(true);
    expect(retried('lost', 'unanswered_reused', { method: 'GET', attempts: 2, losses: 2 })).toBe(false);
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
