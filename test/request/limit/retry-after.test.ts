import fc from 'fast-check';
import { expect, it } from 'vitest';
import { decideKey } from '../../../gateway/quota/decide-key.ts';
import { emptyQuotaState, type QuotaState } from '../../../gateway/quota/hash.ts';
import { type DecidedRun, decidedRuns, decisionAt } from '../../../gateway/request/limit/decision-at.ts';
import * as arbitrary from '../../quota/arbitraries.ts';
import { limitsOf } from '../../support/limits-of.ts';
import { oneRun } from '../../support/one-run.ts';

const windowsMs = { second: 20, minute: 50, hour: 100, day: 200, month: 400 };

it('a refused request is admitted at its announced time, although later and cheaper requests of the call were admitted', () => {
  const steps = fc.array(fc.record({ pauseMs: fc.integer({ min: 0, max: 40 }), runs: arbitrary.runs }), {
    maxLength: 20,
  });
  fc.assert(
    fc.property(arbitrary.limits, arbitrary.bans, steps, (limits, bans, sequence) => {
      let state: Readonly<QuotaState> = emptyQuotaState;
      let nowMs = 1_000_000;
      for (const { pauseMs, runs } of sequence) {
        nowMs += pauseMs;
        const call = { keyId: 'k', limits, bans, runs };
        const outcome = decideKey(state, call, windowsMs, nowMs);
        ({ state } = outcome);
        const decided = decidedRuns(call, outcome, { source: 'memory', windowsMs });
        for (const [at, { requests, units }] of runs.entries()) {
          const isPossible = limits.every(({ max }) => units <= max);
          for (let index = 0; index < requests && isPossible; index++) {
            const decision = decisionAt(index, decided[at] as DecidedRun);
            if (decision.kind === 'admitted') continue;
            const again = { keyId: 'k', limits, bans, runs: oneRun(1, units) };
            const { admitted } = decideKey(state, again, windowsMs, decision.retryAtMs);
            expect(admitted).toBe(1);
          }
        }
      }
    }),
    { numRuns: 500 },
  );
});

it('a request that only the minute refused waits for the day if cheaper requests then fill the day', () => {
  const limits = limitsOf({ perMinute: 4, perDay: 6 });
  const bans = { after: 100, withinMs: 1_000, forMs: 1_000, maxMs: 10_000 };
  const call = { keyId: 'k', limits, bans, runs: [...oneRun(1, 5), ...oneRun(3)] };
  const day = { ...windowsMs, minute: 60_000, day: 86_400_000 };
  const outcome = decideKey(emptyQuotaState, call, day, 1_000);
  const filled = { ...call, runs: [...oneRun(1, 3), ...oneRun(1, 4), ...oneRun(3)] };
  expect(outcome.admittedOf).toEqual([0, 3]);
  const [, dear] = decidedRuns(filled, decideKey(emptyQuotaState, filled, day, 1_000), {
    ...{ source: 'memory', windowsMs: day },
  });
  // After 3 units, the minute has no room for 4 units. The later request takes the fourth unit, so the day has room for 2 units only.
  expect(decisionAt(0, dear as DecidedRun)).toMatchObject({ kind: 'refused', retryAtMs: 86_400_000 });
});
