import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { decideKey, type QuotaOutcome } from '../../gateway/quota/decide-key.ts';
import { emptyQuotaState, expiresMs, type QuotaState } from '../../gateway/quota/hash.ts';
import type { Run } from '../../gateway/quota/runs.ts';
import { fieldOf, numberOf, usedOf } from '../../gateway/quota/windows.ts';
import { type DecidedRun, decidedRuns, decisionAt } from '../../gateway/request/limit/decision-at.ts';
import { limitsOn } from '../../gateway/shared/limits.ts';
import { limitsOf } from '../support/limits-of.ts';
import { oneRun } from '../support/one-run.ts';
import * as arbitrary from './arbitraries.ts';

const windowsMs = { second: 20, minute: 50, hour: 100, day: 200, month: 400 };
const steps = fc.array(
  fc.record({
    pauseMs: fc.integer({ min: 0, max: 40 }),
    runs: arbitrary.runs,
  }),
  { maxLength: 40 },
);

it('requests beyond the concurrency limit are the last of a call, take no unit and are no strike', () => {
  fc.assert(
    fc.property(
      arbitrary.limits,
      arbitrary.bans,
      arbitrary.runs,
      fc.integer({ min: -2, max: 12 }),
      (limits, bans, runs, slots) => {
        let oneByOne: Readonly<QuotaState> = emptyQuotaState;
        const kinds: string[] = [];
        let left = slots;
        for (const run of runs) {
          for (let index = 0; index < run.requests; index++) {
            const call = { keyId: 'k', limits, bans, runs: [{ ...run, requests: 1 }] };
            const single = decideKey(oneByOne, call, windowsMs, 1_000_000, left);
            left -= single.admitted;
            oneByOne = single.state;
            kinds.push(single.crowded ? 'crowded' : single.admitted ? 'admitted' : 'refused');
          }
        }
        const call = { keyId: 'k', limits, bans, runs };
        const { state, crowded, admitted } = decideKey(emptyQuotaState, call, windowsMs, 1_000_000, slots);
        if (kinds.length > 0) expect(state).toEqual(oneByOne);
        expect(crowded).toBe(kinds.filter((kind) => kind === 'crowded').length);
        expect(admitted).toBe(kinds.filter((kind) => kind === 'admitted').length);
        expect(kinds.slice(kinds.length - (crowded ?? 0))).not.toContain('refused');
        expect(kinds.slice(kinds.length - (crowded ?? 0))).not.toContain('admitted');
        expect(admitted).toBeLessThanOrEqual(Math.max(0, slots));
      },
    ),
    { numRuns: 500 },
  );
});

it('deciding n requests of any costs at once equals deciding them one by one, including bans', () => {
  fc.assert(
    fc.property(
      arbitrary.limits,
      arbitrary.bans,
      arbitrary.thresholds,
      steps,
      (limits, bans, thresholds, sequence) => {
        let together: Readonly<QuotaState> = emptyQuotaState;
        let oneByOne: Readonly<QuotaState> = emptyQuotaState;
        let nowMs = 1_000_000;
        for (const { pauseMs, runs } of sequence) {
          nowMs += pauseMs;
          const call = { keyId: 'k', limits, bans, thresholds, runs };
          const batch = decideKey(together, call, windowsMs, nowMs);
          together = batch.state;
          let reached: QuotaOutcome['reached'];
          const decided = decidedRuns(call, batch, { source: 'memory', windowsMs });
          for (const [at, run] of runs.entries()) {
            for (let index = 0; index < run.requests; index++) {
              const request = { ...call, runs: [{ ...run, requests: 1 }] };
              const single = decideKey(oneByOne, request, windowsMs, nowMs);
              oneByOne = single.state;
              reached = single.reached;
              const [alone] = decidedRuns(request, single, { source: 'memory', windowsMs });
              const inBatch = decisionAt(index, decided[at] as DecidedRun);
              const decidedAlone = decisionAt(0, alone as DecidedRun);
              // `expect` takes much longer than a comparison, so it runs only for a difference, which it describes.
              const [batched, one] = [withoutRetry(inBatch), withoutRetry(decidedAlone)];
              if (!isDeepStrictEqual(batched, one)) expect(batched).toEqual(one);
              // Later requests of the batch may have filled another window, or led to a ban.
              if (retryOf(inBatch) < retryOf(decidedAlone)) expect(inBatch).toEqual(decidedAlone);
            }
          }
          if (runs.some(({ requests }) => requests > 0)) {
            expect(oneByOne).toEqual(together);
            expect(reached).toEqual(batch.reached);
          }
        }
      },
    ),
    { numRuns: 500 },
  );
});

it('a decision never charges above a limit or for a refusal, leaves no room for a refused request, and expires no sooner than its last window', () => {
  fc.assert(
    fc.property(arbitrary.limits, arbitrary.bans, steps, (limits, bans, sequence) => {
      let state: Readonly<QuotaState> = emptyQuotaState;
      const chargedIn = new Map<string, number>();
      let nowMs = 1_000_000;
      for (const { pauseMs, runs } of sequence) {
        nowMs += pauseMs;
        const outcome = decideKey(state, { keyId: 'k', limits, bans, runs }, windowsMs, nowMs);
        state = outcome.state;
        if (outcome.refused > 0) {
          const hasNoRoom = ({ units, operation }: Run) =>
            limitsOn(limits, operation).some((limit) => usedOf(state, limit) + units > limit.max);
          expect(runs.some(hasNoRoom)).toBe(true);
        }
        for (const limit of limits) {
          const charged = runs.reduce((sum, { units, operation }, at) => {
            const isCharged = limitsOn([limit], operation).length === 1;
            return sum + (isCharged ? units * (outcome.admittedOf[at] ?? 0) : 0);
          }, 0);
          const name = `${fieldOf(limit)} ${numberOf(state, limit)}`;
          chargedIn.set(name, (chargedIn.get(name) ?? 0) + charged);
          expect(usedOf(state, limit)).toBe(chargedIn.get(name));
          expect(usedOf(state, limit)).toBeLessThanOrEqual(limit.max);
        }
        expect(expiresMs(state, bans, windowsMs)).toBeGreaterThan(nowMs);
      }
    }),
    { numRuns: 500 },
  );
});

it('a decision never returns to an earlier window', () => {
  const call = {
    keyId: 'k',
    limits: limitsOf({ perMinute: 2, perDay: 9 }),
    bans: farAway,
    runs: oneRun(2),
  };
  const { state } = decideKey(emptyQuotaState, call, windowsMs, 1_000_000);
  const older = decideKey(state, call, windowsMs, 1_000_000 - 500);
  expect([older.refused, older.state.minute, older.state.day]).toEqual([2, state.minute, state.day]);
});

it('strikes count in a fixed span that begins with the first refusal', () => {
  const bans = { after: 3, withinMs: 100, forMs: 10, maxMs: 100 };
  const day = { ...windowsMs, minute: 1_000_000, day: 1_000_000 };
  const call = { keyId: 'k', limits: limitsOf({ perMinute: 1, perDay: 1 }), bans, runs: oneRun(1) };
  let { state } = decideKey(emptyQuotaState, call, day, 1_000_000);
  const kinds = [0, 99, 100, 150, 199].map((offsetMs) => {
    const outcome = decideKey(state, call, day, 1_000_000 + offsetMs);
    state = outcome.state;
    return kindOf(outcome);
  });
  expect(kinds).toEqual(['refused', 'refused', 'refused', 'refused', 'banned']);
});

type Decided = ReturnType<typeof decisionAt>;

function withoutRetry({ rateLimit, ...decision }: Decided): object {
  const { ban, ...windows } = rateLimit;
  return { ...decision, retryAtMs: 0, rateLimit: windows, bannedUntilMs: ban?.untilMs };
}

function retryOf(decision: Decided): number {
  return decision.kind === 'admitted' ? 0 : decision.retryAtMs;
}

const farAway = { after: 1000, withinMs: 60_000, forMs: 60_000, maxMs: 600_000 };

function kindOf({ admitted, refused }: QuotaOutcome): string {
  return admitted === 1 ? 'admitted' : refused === 1 ? 'refused' : 'banned';
}
