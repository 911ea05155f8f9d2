import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { GuardCounts } from '../../../../gateway/capabilities/guard/process/guard-counts.ts';
import { BusiestRefusals } from '../../../../gateway/capabilities/guard/what-if/busiest-refusals.ts';
import { defaultBounds } from '../../../../gateway/shared/timeouts-and-sizes.ts';
import { KeyMinutesBuilder } from '../../../../gateway/usage/read/key-minutes.ts';
import { outcomes } from '../../../../gateway/usage/tally.ts';
import { addReport } from '../process/guard-model.ts';

const rules = { stepMinutes: 5, requestsMin: 100, partsMax: 5 };

/** The requests of one key in one minute. */
interface Minute {
  readonly minute: number;
  readonly offered: number;
  readonly refused: number;
  /** Requests without a decision. They are part of `offered` and of `refused`. */
  readonly undecided?: number;
}

function shareOf(keys: readonly (readonly Minute[])[], fromMinute = 0, lastMinute = 1_440): number {
  const busiest = new BusiestRefusals(fromMinute, lastMinute, rules);
  for (const minutes of keys) {
    const builder = new KeyMinutesBuilder();
    for (const { minute, offered, refused, undecided = 0 } of minutes) {
      if (offered > undecided) builder.add(minute, outcomes.indexOf('admitted'), offered - undecided);
      if (undecided > 0) builder.add(minute, outcomes.indexOf('undecided'), undecided);
      if (refused > 0) busiest.onRefused(minute, refused);
    }
    busiest.add('free', builder.finish());
  }
  return busiest.shareOf('free');
}

const same = (keys: number, minutes: readonly Minute[]) => Array.from({ length: keys }, () => minutes);

it.each([
  ['without requests it is 0', [], 0],
  [
    'the busiest ten minutes count, and not the average of the day',
    same(10, [
      ...Array.from({ length: 1_000 }, (_, minute) => ({ minute, offered: 10, refused: 0 })),
      ...Array.from({ length: 10 }, (_, minute) => ({ minute: 1_200 + minute, offered: 10, refused: 4 })),
    ]),
    0.4,
  ],
  [
    'ten minutes with fewer than 100 requests do not count',
    same(9, [{ minute: 3, offered: 11, refused: 11 }]),
    0,
  ],
  [
    'ten minutes count that begin in the middle of others',
    same(10, [
      { minute: 9, offered: 5, refused: 1 },
      { minute: 10, offered: 5, refused: 1 },
    ]),
    0.2,
  ],
  [
    'refusals more than ten minutes apart do not add up',
    same(10, [
      { minute: 4, offered: 10, refused: 1 },
      { minute: 15, offered: 10, refused: 1 },
    ]),
    0.1,
  ],
  [
    'a key that refuses almost everything does not count alone',
    [
      ...same(9, [{ minute: 0, offered: 100, refused: 0 }]),
      [{ minute: 0, offered: 100_000, refused: 99_000 }],
    ],
    0,
  ],
  [
    'four keys do not count without others',
    [
      ...same(9, [{ minute: 0, offered: 100, refused: 0 }]),
      ...same(4, [{ minute: 0, offered: 1_000, refused: 900 }]),
    ],
    0,
  ],
  ['of a single active key all refusals count', same(1, [{ minute: 0, offered: 200, refused: 50 }]), 0.25],
  [
    'of two active keys each counts for a half',
    [[{ minute: 0, offered: 100, refused: 80 }], [{ minute: 0, offered: 100, refused: 10 }]],
    0.1,
  ],
  [
    'a key that sends most requests counts for a fifth of the requests',
    [...same(9, [{ minute: 0, offered: 100, refused: 20 }]), [{ minute: 0, offered: 100_000, refused: 0 }]],
    // 900 requests are four fifths, and 180 of them are refused.
    0.16,
  ],
  [
    'requests without a decision do not count',
    same(5, [{ minute: 0, offered: 60, refused: 50, undecided: 40 }]),
    0.5,
  ],
] as const)('the share that a guard must allow: %s', (_, keys, share) => {
  expect(shareOf(keys as readonly (readonly Minute[])[])).toBeCloseTo(share, 10);
});

it('requests that cost nothing do not count', () => {
  const busiest = new BusiestRefusals(0, 10, rules);
  for (let key = 0; key < 10; key++) {
    const builder = new KeyMinutesBuilder();
    builder.add(0, outcomes.indexOf('admitted'), 100, 0, 80);
    busiest.onRefused(0, 10);
    busiest.add('free', builder.finish());
  }
  expect(busiest.shareOf('free')).toBeCloseTo(0.5, 10);
});

it('minutes before the period are left out', () => {
  const keys = same(10, [
    { minute: 0, offered: 100, refused: 0 },
    { minute: 100, offered: 100, refused: 10 },
  ]);
  expect(shareOf(keys, 100, 100)).toBeCloseTo(0.1, 10);
});

/** Whether a guard reverts the plan when it receives these counts. */
function guardReverts(counts: GuardCounts, refusedShareMax: number): boolean {
  const report = { keysMin: 1, periods: [{ agoMs: 0, counts }] };
  const model = { slots: new Map(), revert: undefined };
  return addReport(model, report, refusedShareMax, 1, defaultBounds).hasChanged;
}

it('a guard with a larger share would not have reverted the plan in any of the judged ten minutes', () => {
  const minute = fc.option(fc.integer({ min: 10, max: 200 }), { nil: 0 });
  const key = fc.record({
    offered: fc.array(minute, { minLength: 20, maxLength: 30 }),
    refusedPart: fc.constantFrom(0, 0.01, 0.1, 0.5, 1),
  });
  const seen = { exact: 0, bound: 0 };
  fc.assert(
    fc.property(fc.array(key, { minLength: 1, maxLength: 12, size: 'max' }), (random) => {
      const keys = random.map(({ offered, refusedPart }) =>
        offered
          .map((requests, minute) => ({
            minute,
            offered: requests,
            refused: Math.floor(requests * refusedPart),
          }))
          .filter((one) => one.offered > 0),
      );
      const share = shareOf(keys);
      const reverts = (allowed: number) =>
        [0, 5, 10, 15, 20, 25].some((from) => {
          const ofKeys = keys.map((minutes) =>
            minutes.filter((one) => one.minute >= from && one.minute < from + 10),
          );
          const sum = (minutes: readonly Minute[], of: 'offered' | 'refused') =>
            minutes.reduce((all, one) => all + one[of], 0);
          const counts: GuardCounts = new Map();
          for (const [key, minutes] of ofKeys.entries()) {
            if (minutes.length === 0) continue;
            const [requests, refused] = [sum(minutes, 'offered'), sum(minutes, 'refused')];
            counts.set(`key-${key}`, { requests, refused });
          }
          return guardReverts(counts, allowed);
        });
      expect(reverts(share * 1.000001 + 1e-9)).toBe(false);
      if (share === 0) return;
      // If few keys cause most refusals, a smaller share may be enough, because the result is a bound.
      seen[reverts(share * 0.999999) ? 'exact' : 'bound'] += 1;
    }),
    { numRuns: 300 },
  );
  expect(Math.min(...Object.values(seen))).toBeGreaterThan(0);
});
