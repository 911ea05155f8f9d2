import { describe, expect, it } from 'vitest';
import type { Attempt } from '../../../gateway/capabilities/webhooks/sender/post-delivery.ts';
import { settlementOf } from '../../../gateway/capabilities/webhooks/sender/retry-schedule.ts';
import { defaultBounds as bounds } from '../../../gateway/shared/timeouts-and-sizes.ts';

const nowMs = Date.UTC(2026, 2, 1);
const daysMs = 86_400_000;

function after(
  attempt: Attempt | number,
  { attempts = 0, sinceFirstMs = 0, random = 0, retryAfter = undefined as string | undefined } = {},
) {
  const full =
    typeof attempt === 'number' ? { kind: 'response' as const, status: attempt, retryAfter } : attempt;
  return settlementOf(full, { attempts, sinceFirstMs }, { nowMs, random, bounds });
}

function pauseAfter(...args: Parameters<typeof after>): number {
  const settlement = after(...args);
  if (settlement.kind !== 'retry') throw new Error(`expected a retry: ${settlement.kind}`);
  return settlement.pauseMs;
}

describe('the schedule of retries', () => {
  it('retries after at most 5 s, with growing pauses of at most six hours, for three days', () => {
    for (const random of [0, 0.5, 0.999]) {
      const pauses: number[] = [];
      let sinceFirstMs = 0;
      for (let attempts = 0; sinceFirstMs < 3 * daysMs; attempts++) {
        const pauseMs = pauseAfter(500, { attempts, sinceFirstMs, random });
        pauses.push(pauseMs);
        sinceFirstMs += pauseMs;
      }
      // A process claims due deliveries once a second.
      expect(pauses[0]).toBeLessThanOrEqual(5_000 - bounds.webhookPollMs);
      expect(pauses.slice(0, -1)).toEqual(pauses.slice(0, -1).toSorted((a, b) => a - b));
      expect(Math.max(...pauses)).toBeLessThanOrEqual(6 * 3_600_000);
      expect(pauses.length).toBeGreaterThan(15);
      expect(pauses.length).toBeLessThan(30);
      // The last attempt takes place three days after the first.
      expect(sinceFirstMs).toBe(3 * daysMs);
      expect(after(500, { attempts: pauses.length, sinceFirstMs })).toMatchObject({
        kind: 'failed',
        status: 500,
      });
    }
  });

  it('keeps deliveries apart that have failed at the same time', () => {
    const pauses = [0, 0.25, 0.5, 0.75].map((random) => pauseAfter(500, { attempts: 5, random }));
    expect(new Set(pauses).size).toBe(4);
  });

  it.each([200, 201, 202, 204, 299])('counts status %i as a success', (status) => {
    expect(after(status)).toEqual({ kind: 'delivered', status });
  });

  it.each([199, 301, 302, 307, 400, 401, 404, 429, 500, 502, 503, 504, 999])(
    'repeats an attempt after status %i',
    (status) => {
      expect(after(status)).toMatchObject({
        kind: 'retry',
        status,
        error: expect.stringContaining(`status ${status}`),
      });
    },
  );

  it('repeats an attempt without a response, and does not count a cancelled attempt', () => {
    const error = 'no response within 15 s';
    expect(after({ kind: 'no_response', error })).toMatchObject({ kind: 'retry', status: undefined, error });
    expect(after({ kind: 'cancelled' })).toEqual({ kind: 'returned' });
  });

  it('does not repeat an attempt after 410', () => {
    expect(after(410)).toMatchObject({ kind: 'failed', status: 410 });
  });

  it('waits as long as a busy receiver requests, up to an hour, and within the three days', () => {
    expect(pauseAfter(503, { retryAfter: '120' })).toBe(120_000);
    expect(pauseAfter(429, { retryAfter: new Date(nowMs + 300_000).toUTCString() })).toBe(300_000);
    expect(pauseAfter(429, { retryAfter: '999999999' })).toBe(3_600_000);
    expect(pauseAfter(503, { retryAfter: '120', sinceFirstMs: 3 * daysMs - 1_000 })).toBe(1_000);
    const usual = pauseAfter(503);
    for (const retryAfter of ['0', '-5', '1e9', 'soon', '', new Date(nowMs - 1_000).toUTCString()]) {
      expect(pauseAfter(503, { retryAfter })).toBe(usual);
    }
    expect(pauseAfter(500, { retryAfter: '120' })).toBe(usual);
  });
});
