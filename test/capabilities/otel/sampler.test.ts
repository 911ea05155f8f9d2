import { randomBytes, randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { createSampler } from '../../../gateway/capabilities/otel/traces/sampler.ts';
import { tunedBounds } from '../../support/tuned-bounds.ts';

const bounds = tunedBounds({ otelFlaggedPerSecondMax: 10, otelChosenPerSecondMax: 10 });
const origin = (trustedPeer: boolean) => ({
  address: '192.0.2.1',
  trustedPeer,
  forwardedFor: '192.0.2.1',
  forwardedHost: undefined,
  forwardedProto: 'http',
});
const request = (startedMs: number, trusted = false) => ({
  id: randomUUID(),
  origin: origin(trusted),
  startedMs,
});
const parent = (traceId: string, flags = 0) => ({ traceId, spanId: 'a'.repeat(16), flags });
const always = `${'0'.repeat(18)}${'f'.repeat(14)}`;
const never = `${'f'.repeat(18)}${'0'.repeat(13)}1`;

/** How many of so many calls return true. */
function countOf(calls: number, isTrue: (index: number) => boolean): number {
  let count = 0;
  for (let index = 0; index < calls; index++) if (isTrue(index)) count += 1;
  return count;
}

describe('the trace id decides', () => {
  it('by its last 56 bits, and the same id always in the same way', () => {
    const { samples } = createSampler(bounds);
    expect(samples(request(0), parent(always), 0.0001)).toBe(true);
    expect(samples(request(0), parent(never), 0.9999)).toBe(false);
    // The threshold of a share of a half is 0x80000000000000.
    expect(samples(request(0), parent(`${'0'.repeat(18)}8${'0'.repeat(13)}`), 0.5)).toBe(true);
    expect(samples(request(0), parent(`${'0'.repeat(18)}7${'f'.repeat(13)}`), 0.5)).toBe(false);
  });

  it('for the stated share of requests, with and without a traceparent', () => {
    const { samples } = createSampler(bounds);
    const calls = 20_000;
    const own = countOf(calls, (index) => samples(request(index), undefined, 0.1));
    const given = countOf(calls, (index) =>
      samples(request(index), parent(randomBytes(16).toString('hex')), 0.1),
    );
    // Five standard deviations are 212.
    for (const count of [own, given]) expect(Math.abs(count - calls * 0.1)).toBeLessThan(220);
  });

  it('never at 0 %, and always at 100 %', () => {
    const { samples } = createSampler(bounds);
    expect(countOf(1_000, (index) => samples(request(index), undefined, 0))).toBe(0);
    expect(countOf(1_000, (index) => samples(request(index), parent(never), 1))).toBe(1_000);
  });
});

describe('a flood', () => {
  it('of chosen ids gets at most its bound and three times the share', () => {
    const { samples } = createSampler(bounds);
    const taken = countOf(10_000, (index) => samples(request(index / 10), parent(always), 0.01));
    expect(taken).toBeGreaterThan(100);
    expect(taken).toBeLessThan(10 + 200 + 150);
  });

  it('of flags gets nothing from an untrusted peer, and its bound a second from a trusted one', () => {
    const { samples } = createSampler(bounds);
    const flood = (trusted: boolean) =>
      countOf(3_000, (index) => samples(request(index, trusted), parent(never, 1), 0.01));
    expect(flood(false)).toBe(0);
    expect(flood(true)).toBe(30);
  });

  it('of slow requests, whose time is earlier, does not begin a second again', () => {
    const { samples } = createSampler(bounds);
    const times = (index: number) => (index % 2 === 0 ? 5_000 : 1_000);
    expect(countOf(1_000, (index) => samples(request(times(index), true), parent(never, 1), 0.01))).toBe(10);
  });
});
