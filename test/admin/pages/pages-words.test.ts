import { describe, expect, it } from 'vitest';
import { isStale } from '../../../gateway/admin/pages/browser/api.js';
import * as formats from '../../../gateway/admin/pages/browser/formats.js';
import * as figures from '../../../gateway/shared/words/figures.js';

describe('how the pages write', () => {
  it.each([
    [figures.figure(1_234_567), '1,234,567'],
    [figures.figure(undefined), '–'],
    [figures.rate(0), '0'],
    [figures.rate(0.04), '0.0'],
    [figures.rate(9.96), '10.0'],
    [figures.rate(1_204.4), '1,204'],
    [figures.percent(0), '0 %'],
    [figures.percent(0.0004), '< 0.1 %'],
    [figures.percent(0.008), '0.8 %'],
    // A share below 1 is never shown as 100 %.
    [figures.percent(0.9996), '99 %'],
    [figures.percent(1), '100 %'],
    [figures.milliseconds(0.256), '0.26'],
    [figures.milliseconds(1.94), '1.9'],
    [figures.milliseconds(1_250), '1,250'],
    [figures.duration(-1), '0 s'],
    [figures.duration(59_999), '59 s'],
    [figures.duration(60_000), '1 min'],
    [figures.duration(48_480_000), '13 h 28 min'],
    [figures.duration(172_800_000), '2 days'],
    [figures.relative(1_000_000, 1_000_500), 'now'],
    [figures.relative(1_024_000, 1_000_000), 'in 24 s'],
    [figures.relative(988_000, 1_000_000), '12 s ago'],
    [
      formats.utcClock(Date.parse('2026-11-28T10:31:07Z'), Date.parse('2026-11-28T23:59:59Z')),
      '10:31:07 UTC',
    ],
    [
      formats.utcClock(Date.parse('2026-11-28T23:59:59Z'), Date.parse('2026-11-29T00:00:00Z')),
      '28 Nov 23:59:59 UTC',
    ],
    [figures.counted(1, 'key'), '1 key'],
    [figures.counted(1_000, 'process', 'processes'), '1,000 processes'],
  ])('%s', (written, expected) => {
    expect(written).toBe(expected);
  });

  it('a complete time is written in UTC', () => {
    expect(formats.fullInstant(Date.parse('2026-11-22T10:31:07Z'))).toBe('Sun, 22 Nov 2026, 10:31:07 UTC');
  });
});

it.each([
  { everyMs: 1_000, ageMs: 5_001, stale: true },
  { everyMs: 30_000, ageMs: 30_500, stale: false },
  { everyMs: 30_000, ageMs: 31_001, stale: true },
  { everyMs: 30_000, ageMs: 5_001, error: { status: 0, message: 'away' }, stale: true },
])('a response is stale when the next one is overdue: %j', ({ everyMs, ageMs, error, stale }) => {
  expect(isStale({ body: {}, atMs: 0, everyMs, error }, ageMs)).toBe(stale);
});
