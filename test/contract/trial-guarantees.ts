import { expect } from 'vitest';
import type { QuotaCall, QuotaOutcome, TrialDecided } from '../../gateway/quota/decide-key.ts';
import { noCounts } from '../../gateway/shared/calendar-windows.ts';
import { limitsOf } from '../support/limits-of.ts';
import { oneRun } from '../support/one-run.ts';
import { callOf, decide, freshLengths, type Subject } from './quota-store-guarantees.ts';

type Stated = Parameters<typeof limitsOf>[0];

/** The part of the contract of a QuotaStore that is about trials. */
export const trialGuarantees: Readonly<Record<string, (subject: Subject) => Promise<void>>> = {
  async 'a trial refuses what a plan with its limits refuses, and is charged only for what it admits'(
    subject,
  ) {
    const store = await subject.open(await freshLengths(subject));
    const tried = triedCall({ perMinute: 100, perDay: 100 }, { perMinute: 9, perDay: 20 });
    const second = callOf(limitsOf({ perMinute: 9, perDay: 20 }));
    for (const [requests, units] of [
      [3, 2],
      [2, 2],
      [2, 1],
      [1, 5],
      [2, 0],
      [3, 1],
    ] as const) {
      const ofTrial = trialOf(await decide(store, { ...tried, runs: oneRun(requests, units) }));
      const ofSecond = await decide(store, { ...second, runs: oneRun(requests, units) });
      expect([ofTrial.admitted, ofTrial.refused]).toEqual([ofSecond.admitted, ofSecond.refused]);
      expect(countsOf(ofTrial)).toEqual(countsOf(ofSecond));
    }
  },

  async 'a trial changes no decision of its plan'(subject) {
    const store = await subject.open(await freshLengths(subject));
    const bans = { after: 4, withinMs: 60_000, forMs: 60_000, maxMs: 600_000 };
    const tried = { ...triedCall({ perMinute: 9, perDay: 20 }, { perMinute: 2, perDay: 20 }), bans };
    const untried = { ...callOf(limitsOf({ perMinute: 9, perDay: 20 })), bans };
    for (const requests of [3, 5, 2, 1, 2, 1]) {
      const { state, ...one } = await decide(store, { ...tried, runs: oneRun(requests) });
      const other = await decide(store, { ...untried, runs: oneRun(requests) });
      expect([one.admitted, one.refused, one.banned]).toEqual([other.admitted, other.refused, other.banned]);
      expect([state.minuteUsed, state.strikes, state.banLevel]).toEqual([
        ...[other.state.minuteUsed, other.state.strikes, other.state.banLevel],
      ]);
    }
  },

  async 'the refusals of a trial lead to a ban of the trial, which refuses nothing else'(subject) {
    const store = await subject.open(await freshLengths(subject));
    const bans = { after: 3, withinMs: 60_000, forMs: 60_000, maxMs: 600_000 };
    const call = { ...triedCall({ perDay: 100 }, { perDay: 2 }), bans };
    expect(kindsOf(await decide(store, { ...call, runs: oneRun(3) }))).toEqual([2, 1, 0]);
    expect(kindsOf(await decide(store, { ...call, runs: oneRun(1) }))).toEqual([0, 1, 0]);
    const banned = await decide(store, { ...call, runs: oneRun(3) });
    expect(kindsOf(banned)).toEqual([0, 0, 3]);
    expect(trialOf(banned).state.bannedUntilMs).toBe(banned.nowMs + 60_000);
    // A free request is refused only by the ban.
    const free = await decide(store, { ...call, runs: oneRun(1, 0) });
    expect([free.admitted, free.state.bannedUntilMs, ...kindsOf(free)]).toEqual([1, 0, 0, 0, 1]);
  },

  async 'a trial begins with the counts of the plan'(subject) {
    const store = await subject.open(await freshLengths(subject));
    const call = triedCall({ perDay: 4 }, { perDay: 6 });
    await decide(store, { ...call, trial: undefined, runs: oneRun(5) });
    const first = await decide(store, { ...call, runs: oneRun(3) });
    expect([first.refused, ...kindsOf(first), trialOf(first).state.strikes]).toEqual([3, 2, 1, 0, 2]);
  },

  async 'a trial that is larger than its plan charges what only the trial admits'(subject) {
    const store = await subject.open(await freshLengths(subject));
    const call = triedCall({ perDay: 2 }, { perDay: 5 });
    expect(kindsOf(await decide(store, { ...call, runs: oneRun(4) }))).toEqual([4, 0, 0]);
    const next = await decide(store, { ...call, runs: oneRun(3) });
    expect([next.refused, ...kindsOf(next)]).toEqual([3, 1, 2, 0]);
    expect([next.state.dayUsed, trialOf(next).state.dayUsed]).toEqual([2, 5]);
  },

  async 'a trial may limit a window that its plan does not limit, and a grant does not limit this window in the plan'(
    subject,
  ) {
    const store = await subject.open(await freshLengths(subject));
    const call = triedCall({ perDay: 100 }, { perMinute: 3, perDay: 100 });
    expect(kindsOf(await decide(store, { ...call, runs: oneRun(4) }))).toEqual([3, 1, 0]);
    const untilMs = (await subject.nowMs()) + 600_000;
    await store.adjust(call.keyId, { grant: { limits: limitsOf({ perMinute: 5 }), untilMs } });
    const granted = await decide(store, { ...call, runs: oneRun(4) });
    expect([granted.admitted, ...kindsOf(granted)]).toEqual([4, 2, 2, 0]);
  },

  async 'a lifted ban is lifted in the trial too'(subject) {
    const store = await subject.open(await freshLengths(subject));
    const bans = { after: 1, withinMs: 60_000, forMs: 60_000, maxMs: 600_000 };
    const call = { ...triedCall({ perDay: 100 }, { perDay: 2 }), bans };
    expect(kindsOf(await decide(store, { ...call, runs: oneRun(3) }))).toEqual([2, 0, 1]);
    await store.adjust(call.keyId, { lift: true, bans });
    expect(kindsOf(await decide(store, { ...call, runs: oneRun(1, 0) }))).toEqual([1, 0, 0]);
    expect(trialOf(await decide(store, call)).state.dayUsed).toBe(2);
  },

  async 'a reset resets the trial too'(subject) {
    const store = await subject.open(await freshLengths(subject));
    const call = triedCall({ perDay: 100 }, { perDay: 2 });
    await decide(store, { ...call, runs: oneRun(3) });
    await store.adjust(call.keyId, { reset: true, bans: call.bans });
    const after = await decide(store, { ...call, runs: oneRun(3) });
    expect([...kindsOf(after), trialOf(after).state.strikes]).toEqual([2, 1, 0, 1]);
  },

  async 'decisions that a process made alone count in the trial as in the plan'(subject) {
    const store = await subject.open(await freshLengths(subject));
    const call = triedCall({ perDay: 100 }, { perDay: 6 });
    const { state } = await decide(store, { ...call, runs: oneRun(1) });
    const alone = { ...nothingUnsent, day: state.day, dayUsed: 5 };
    const merged = await decide(store, { ...call, runs: oneRun(5), unsent: alone });
    expect([merged.state.dayUsed, merged.state.strikes]).toEqual([11, 0]);
    expect([...kindsOf(merged), trialOf(merged).state.dayUsed, trialOf(merged).state.strikes]).toEqual([
      ...[0, 5, 0],
      ...[6, 5],
    ]);
    const struck = await decide(store, {
      ...call,
      unsent: { ...nothingUnsent, day: state.day, dayUsed: 4, strikes: 1 },
    });
    expect([struck.state.dayUsed, trialOf(struck).state.dayUsed, trialOf(struck).state.strikes]).toEqual([
      15, 10, 6,
    ]);
  },

  async 'the concurrency limit refuses the same requests in the trial'(subject) {
    const store = await subject.open(await freshLengths(subject));
    const call = triedCall({ perDay: 100 }, { perDay: 3 });
    const concurrency = { max: 2, process: 'one', active: 0, leaseMs: 60_000 };
    const first = await decide(store, { ...call, runs: oneRun(4), concurrency });
    expect([first.admitted, first.crowded, ...kindsOf(first)]).toEqual([2, 2, 2, 0, 0]);
    const second = await decide(store, { ...call, runs: oneRun(4), concurrency });
    expect([second.admitted, second.crowded, ...kindsOf(second)]).toEqual([2, 2, 1, 1, 0]);
  },

  async 'a trial counts exactly up to the largest limit'(subject) {
    const store = await subject.open(await freshLengths(subject));
    const limit = 999_999_999_999_999;
    const call = triedCall({ perDay: limit }, { perDay: 1 });
    const first = await decide(store, { ...call, runs: oneRun(limit) });
    expect([first.admitted, first.state.dayUsed, trialOf(first).state.dayUsed]).toEqual([limit, limit, 1]);
    const again = triedCall({ perDay: 1 }, { perDay: limit });
    await decide(store, { ...again, runs: oneRun(limit) });
    const last = await decide(store, { ...again, runs: oneRun(1) });
    expect([last.state.dayUsed, trialOf(last).refused, trialOf(last).state.dayUsed]).toEqual([1, 1, limit]);
  },
};

const nothingUnsent = { ...noCounts, strikes: 0, bannedUntilMs: 0, banLevel: 0, liftedMs: 0, resetMs: 0 };

function triedCall(plan: Stated, trial: Stated): QuotaCall {
  return { ...callOf(limitsOf(plan)), limits: limitsOf(plan), trial: limitsOf(trial) };
}

function trialOf({ trial }: QuotaOutcome): TrialDecided {
  if (trial === undefined) throw new Error('no outcome of the trial');
  return trial;
}

/** The numbers of requests that the trial admitted, refused and banned. */
function kindsOf(outcome: QuotaOutcome): number[] {
  const { admitted, refused, banned } = trialOf(outcome);
  return [admitted, refused, banned];
}

function countsOf({ state }: Pick<QuotaOutcome, 'state'>): number[] {
  return [state.minuteUsed, state.dayUsed, state.strikes];
}
