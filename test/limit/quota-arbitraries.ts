import fc from 'fast-check';
import type { BanPolicy, Limits } from '../../gateway/model.ts';

export const limits: fc.Arbitrary<Limits> = fc.record({
  perMinute: fc.integer({ min: 1, max: 12 }),
  perDay: fc.integer({ min: 1, max: 30 }),
});

/** Ban ladders short enough that a run of a few hundred ms climbs them. */
export const bans: fc.Arbitrary<BanPolicy> = fc.record({
  after: fc.integer({ min: 1, max: 8 }),
  withinMs: fc.integer({ min: 1, max: 60 }),
  forMs: fc.integer({ min: 1, max: 20 }),
  maxMs: fc.integer({ min: 20, max: 60 }),
});

/** Relative to the windows of the moment: of this one or the one before. */
export const unsent = fc.record({
  minutesBack: fc.integer({ min: 0, max: 1 }),
  minuteUsed: fc.integer({ min: 0, max: 5 }),
  daysBack: fc.integer({ min: 0, max: 1 }),
  dayUsed: fc.integer({ min: 0, max: 5 }),
  strikes: fc.integer({ min: 0, max: 10 }),
  bannedForMs: fc.integer({ min: -10, max: 30 }),
  banLevel: fc.integer({ min: 0, max: 4 }),
});
