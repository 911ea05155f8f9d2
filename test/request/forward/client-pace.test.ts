import { describe, expect, it } from 'vitest';
import { ClientPace } from '../../../gateway/request/forward/client-pace.ts';

const bounds = { clientBytesPerSecondMin: 500, clientGraceMs: 5_000 };
const aheadMaxMs = 30_000;

/**
 * Returns the number of seconds after which the gateway considers a client too slow. In this simulation, the gateway always waits for
 * octets from the client, and checks the client once a second for two minutes.
 */
function foundAfterSeconds(bytesAt: (second: number) => number): number | undefined {
  const pace = new ClientPace(bounds, { startedMs: 0, aheadMaxMs });
  for (let second = 1; second <= 120; second++) {
    if (pace.isTooSlow({ nowMs: second * 1000, isAwaited: true, bytes: bytesAt(second) })) return second;
  }
  return undefined;
}

describe('a client is too slow', () => {
  it.each([
    ['sends nothing', () => 0, 6],
    ['sends one octet a second', (second: number) => second, 6],
    ['sends 400 octets a second', (second: number) => 400 * second, 26],
    ['sends 499 octets a second', (second: number) => 499 * second, undefined],
    ['sends 500 octets a second', (second: number) => 500 * second, undefined],
    ['sends 2,500 octets every five seconds', (second: number) => 2_500 * Math.floor(second / 5), undefined],
    // Each octet adds 2 ms to the grace period, so 1,000 octets add two seconds.
    ['sends 1,000 octets and stops', () => 1_000, 8],
    ['sends a gigabyte and stops', () => 1e9, 32],
    [
      'is fast and pauses for 29 s',
      (second: number) => (second < 60 ? 1e6 * second : second < 89 ? 6e7 : 1e6 * second),
      undefined,
    ],
  ])('that %s', (_what, bytesAt, seconds) => {
    expect(foundAfterSeconds(bytesAt)).toBe(seconds);
  });

  it('only while the gateway waits for it, and after a new grace period', () => {
    const pace = new ClientPace(bounds, { startedMs: 0, aheadMaxMs });
    for (let second = 1; second <= 100; second++) {
      expect(pace.isTooSlow({ nowMs: second * 1000, isAwaited: false, bytes: 0 })).toBe(false);
    }
    expect(pace.isTooSlow({ nowMs: 105_000, isAwaited: true, bytes: 0 })).toBe(false);
    expect(pace.isTooSlow({ nowMs: 105_001, isAwaited: true, bytes: 0 })).toBe(true);
  });

  it('even after many octets before the first check', () => {
    const pace = new ClientPace(bounds, { startedMs: 0, bytesBefore: 1e9, aheadMaxMs });
    expect(pace.isTooSlow({ nowMs: 5_001, isAwaited: true, bytes: 1e9 })).toBe(true);
  });
});
