import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { adjust, type Change } from '../../gateway/quota/adjust.ts';
import { decideKey } from '../../gateway/quota/decide-key.ts';
import { applyGrant } from '../../gateway/quota/grants.ts';
import { emptyQuotaState, expiresMs, type QuotaState } from '../../gateway/quota/hash.ts';
import type { Run } from '../../gateway/quota/runs.ts';
import { type DecidedRun, decidedRuns, decisionAt } from '../../gateway/request/limit/decision-at.ts';
import { limitsOn } from '../../gateway/shared/limits.ts';
import type { BanPolicy, Decision, Limits } from '../../gateway/shared/model.ts';
import { limitsOf } from '../support/limits-of.ts';
import { oneRun } from '../support/one-run.ts';
import * as arbitrary from './arbitraries.ts';

const windowsMs = { second: 20, minute: 50, hour: 100, day: 200, month: 400 };

const step = fc.record({
  pauseMs: fc.integer({ min: 0, max: 40 }),
  verb: fc.constantFrom(
    ...Array<'decide'>(12).fill('decide'),
    'lift' as const,
    'reset' as const,
    'grant' as const,
  ),
  runs: arbitrary.runs,
  grant: fc.record({
    limits: arbitrary.limits,
    afterMs: fc.integer({ min: -1, max: 40 }),
    forMs: fc.nat({ max: 60 }),
  }),
  slots: fc.option(fc.integer({ min: -2, max: 12 }), { nil: undefined, freq: 2 }),
});

/** The limits of a plan and of its trial, the ban policy, and at most `maxLength` steps. */
const sequencesOf = (maxLength: number) =>
  [arbitrary.limits, arbitrary.limits, arbitrary.bans, fc.array(step, { maxLength })] as const;

it('a trial decides as a plan with its limits, and does not change the decisions of its own plan', () => {
  fc.assert(
    fc.property(...sequencesOf(40), (limits, trial, bans, sequence) => {
      const tried = oneKey(limits, bans, trial);
      const untried = oneKey(limits, bans);
      const second = oneKey(trial, bans);
      let nowMs = 1_000_000;
      for (const { pauseMs, verb, runs, grant } of sequence) {
        nowMs += pauseMs;
        const given = { limits: grant.limits, fromMs: nowMs + grant.afterMs, untilMs: nowMs + grant.forMs };
        const all = [tried, untried, second];
        if (verb === 'lift') for (const key of all) key.change({ lift: true, bans }, nowMs);
        else if (verb === 'reset') for (const key of all) key.change({ reset: true, bans }, nowMs);
        else if (verb === 'grant') for (const key of all) key.change({ grant: given }, nowMs);
        else {
          const ofTrial = tried.decide(runs, nowMs);
          expect(ofTrial.map(({ trial: _, ...decision }) => decision)).toEqual(untried.decide(runs, nowMs));
          expect(ofTrial.map((decision) => decision.trial)).toEqual(second.decideAsGateway(runs, nowMs));
        }
      }
    }),
    { numRuns: 500 },
  );
});

it('a trial decides n requests of any costs at once as it decides them one by one, also at the concurrency limit', () => {
  fc.assert(
    fc.property(...sequencesOf(30), (limits, trial, bans, sequence) => {
      const together = oneKey(limits, bans, trial);
      const oneByOne = oneKey(limits, bans, trial);
      let nowMs = 1_000_000;
      for (const { pauseMs, runs, slots } of sequence) {
        nowMs += pauseMs;
        const batch = together.decide(runs, nowMs, slots);
        let left = slots;
        const singles = runs.flatMap((run) =>
          Array.from({ length: run.requests }, () => {
            const [single] = oneByOne.decide([{ ...run, requests: 1 }], nowMs, left);
            if (single?.kind === 'admitted' && left !== undefined) left -= 1;
            return single;
          }),
        );
        const trialsOf = (decisions: readonly (Decision | undefined)[]) => decisions.map((one) => one?.trial);
        if (!isDeepStrictEqual(trialsOf(batch), trialsOf(singles)))
          expect(trialsOf(batch)).toEqual(trialsOf(singles));
      }
    }),
    { numRuns: 500 },
  );
});

it('the concurrency limit refuses the same requests with and without a trial, unless the trial has banned the key', () => {
  const bans = { after: 2, withinMs: 1_000, forMs: 1_000, maxMs: 10_000 };
  const key = oneKey(limitsOf({ perHour: 100 }), bans, limitsOf({ perHour: 3 }));
  const at = (requests: number, slots: number) =>
    key.decide(oneRun(requests), 1_000, slots).map(({ trial }) => trial);
  expect(at(4, 2)).toEqual(['admitted', 'admitted', 'concurrent', 'concurrent']);
  expect(at(3, 2)).toEqual(['admitted', 'hour', 'concurrent']);
  expect(at(3, 2)).toEqual(['banned', 'banned', 'banned']);
});

it('a trial begins with the counts, strikes and bans of the plan, and so does each further window', () => {
  const bans = { after: 9, withinMs: 1_000, forMs: 1_000, maxMs: 10_000 };
  const limits = limitsOf({ perHour: 5 });
  const call = { keyId: 'k', bans };
  const first = decideKey(emptyQuotaState, { ...call, limits, runs: oneRun(7) }, windowsMs, 1_000);
  const tried = (before: Readonly<QuotaState>, trial: Limits, requests: number) =>
    decideKey(before, { ...call, limits, trial, runs: oneRun(requests) }, windowsMs, 1_000);
  const larger = tried(first.state, limitsOf({ perHour: 9 }), 6);
  expect(larger.trial).toMatchObject({ admitted: 4, refused: 2, state: { hourUsed: 9, strikes: 4 } });
  // The limit of the trial is edited: its counts stay.
  expect(tried(larger.state, limitsOf({ perHour: 10 }), 1).trial).toMatchObject({ admitted: 1 });
  const ofTwo = limitsOf({ perHour: 5, perDay: 90 });
  const before = decideKey(larger.state, { ...call, limits: ofTwo, runs: [] }, windowsMs, 1_000);
  const counted = { ...before.state, dayUsed: 7 };
  const further = decideKey(counted, { ...call, limits: ofTwo, trial: ofTwo, runs: [] }, windowsMs, 1_000);
  expect(further.trial?.state).toMatchObject({ hourUsed: 9, dayUsed: 7, strikes: 4 });
});

it('a state is kept until the refusals and the ban of the trial have expired', () => {
  const bans = { after: 3, withinMs: 5_000, forMs: 1_000, maxMs: 10_000 };
  const call = {
    keyId: 'k',
    bans,
    limits: limitsOf({ perSecond: 9 }),
    trial: limitsOf({ perSecond: 1 }),
  };
  const refused = decideKey(emptyQuotaState, { ...call, runs: oneRun(2) }, windowsMs, 1_000);
  expect(expiresMs(refused.state, bans, windowsMs)).toBe(6_000);
  const banned = decideKey(emptyQuotaState, { ...call, runs: oneRun(4) }, windowsMs, 1_000);
  expect(expiresMs(banned.state, bans, windowsMs)).toBe(12_000);
});

it('a request that is decided without the trial does not count in the trial', () => {
  const limits = limitsOf({ perHour: 10 });
  const call = { keyId: 'k', bans: farAway, limits };
  const tried = { ...call, trial: limitsOf({ perHour: 3 }) };
  const before = decideKey(emptyQuotaState, { ...tried, runs: oneRun(2) }, windowsMs, 1_000);
  const without = decideKey(before.state, { ...call, runs: oneRun(2) }, windowsMs, 1_000);
  const after = decideKey(without.state, { ...tried, runs: [] }, windowsMs, 1_000);
  expect([after.state.hourUsed, after.trial?.state.hourUsed]).toEqual([4, 2]);
});

const farAway = { after: 1000, withinMs: 60_000, forMs: 60_000, maxMs: 600_000 };

/** A key whose requests are decided by the pure functions. */
function oneKey(limits: Limits, bans: BanPolicy, trial?: Limits) {
  let state: Readonly<QuotaState> = emptyQuotaState;
  return {
    /**
     * Decides requests with their cost in the trial one after the other, like a gateway. A request that costs more than a limit is decided
     * with the cost 0, and then gets 403. Returns what the responses name.
     */
    decideAsGateway(runs: readonly Run[], nowMs: number): readonly string[] {
      return runs.flatMap(({ requests, units: ofPlan, trialUnits: units = ofPlan, operation }) =>
        Array.from({ length: requests }, () => {
          const charged = limitsOn(limits, operation);
          const inForce = applyGrant(charged, state.grant, nowMs);
          const least = inForce.reduce((one, other) => (other.max < one.max ? other : one));
          const isDear = charged.some(({ max }) => max < units) && least.max < units;
          const run = { requests: 1, units: isDear ? 0 : units, operation };
          const [decision] = this.decide([run], nowMs);
          if (decision?.kind === 'admitted' && isDear)
            return least.group === undefined ? least.window : 'group';
          if (decision?.kind !== 'refused') return decision?.kind ?? '';
          const { name, group } = decision.rateLimit.inForce;
          return group === undefined ? name : 'group';
        }),
      );
    },
    change(change: Change, nowMs: number): void {
      ({ state } = adjust(state, change, nowMs));
    },
    decide(
      runs: readonly Run[],
      nowMs: number,
      slots?: number,
    ): readonly Exclude<Decision, { kind: 'unavailable' }>[] {
      const call = { keyId: 'k', limits, trial, bans, runs };
      const outcome = decideKey(state, call, windowsMs, nowMs, slots);
      ({ state } = outcome);
      const decided = decidedRuns(call, outcome, { source: 'memory', windowsMs });
      return runs.flatMap(({ requests }, at) =>
        Array.from({ length: requests }, (_, index) => decisionAt(index, decided[at] as DecidedRun)),
      );
    },
  };
}
