import { expect } from 'vitest';
import type { QuotaCall, QuotaOutcome } from '../../gateway/quota/decide-key.ts';
import { type ThresholdWindow, thresholdWindows } from '../../gateway/quota/thresholds.ts';
import type { QuotaStore } from '../../gateway/request/limit/store/quota-store.ts';
import { noCounts, usedIn } from '../../gateway/shared/calendar-windows.ts';
import { limitsOf } from '../support/limits-of.ts';
import { oneRun } from '../support/one-run.ts';
import { callOf, decide, freshLengths, type Subject } from './quota-store-guarantees.ts';

/** The part of the contract of a QuotaStore that is about thresholds. */
export const thresholdGuarantees: Readonly<Record<string, (subject: Subject) => Promise<void>>> = {
  async 'a threshold is returned with each decision from the request that reaches it, and no more once it is confirmed'(
    subject,
  ) {
    const store = await subject.open(await freshLengths(subject));
    for (const window of thresholdWindows) {
      const call = watched({ [`per${window[0]?.toUpperCase()}${window.slice(1)}`]: 10 });
      expect(percentsOf(await decide(store, { ...call, runs: oneRun(7) }))).toEqual([]);
      const first = await decide(store, { ...call, runs: oneRun(1) });
      const index = first.state[window];
      expect(first.reached).toEqual([{ window, index, percents: [80], used: 8, limit: 10 }]);
      expect(percentsOf(await decide(store, call))).toEqual([80]);
      expect(await confirm(store, call, first, window, 80)).toBe(true);
      expect(percentsOf(await decide(store, { ...call, runs: oneRun(1) }))).toEqual([]);
      const last = await decide(store, { ...call, runs: oneRun(1) });
      expect(last.reached).toEqual([{ window, index, percents: [100], used: 10, limit: 10 }]);
      await confirm(store, call, last, window, 100);
      expect(percentsOf(await decide(store, { ...call, runs: oneRun(1) }))).toEqual([]);
    }
  },

  async 'seconds and minutes have no thresholds, and without thresholds none is returned'(subject) {
    const store = await subject.open(await freshLengths(subject));
    const short = watched({ perSecond: 2, perMinute: 2, perDay: 100 });
    expect((await decide(store, { ...short, runs: oneRun(2) })).reached).toBeUndefined();
    const unwatched = callOf(limitsOf({ perDay: 2 }));
    expect((await decide(store, { ...unwatched, runs: oneRun(2) })).reached).toBeUndefined();
    expect((await decide(store, { ...unwatched, thresholds: [], runs: oneRun(2) })).reached).toBeUndefined();
  },

  async 'a request that crosses several thresholds returns all of them, in ascending order'(subject) {
    const store = await subject.open(await freshLengths(subject));
    const call = { ...watched({ perHour: 10, perDay: 20, perMonth: 10 }), thresholds: [1, 50, 80, 100] };
    const { reached } = await decide(store, { ...call, runs: oneRun(1, 10) });
    expect(reached?.map(({ window, percents }) => [window, percents])).toEqual([
      ['hour', [1, 50, 80, 100]],
      ['day', [1, 50]],
      ['month', [1, 50, 80, 100]],
    ]);
  },

  async 'a call of n requests returns the thresholds that n calls return'(subject) {
    const store = await subject.open(await freshLengths(subject));
    for (const requests of [3, 5, 9, 12]) {
      const [one, other] = [watched({ perDay: 10 }), watched({ perDay: 10 })];
      const together = await decide(store, { ...one, runs: oneRun(requests) });
      const replies = await store.decide(Array(requests).fill({ ...other, runs: oneRun(1) }));
      const last = replies.at(-1);
      if (last?.kind !== 'decided') throw new Error(`no decision: ${JSON.stringify(last)}`);
      expect([requests, together.reached]).toEqual([requests, last.outcome.reached]);
    }
  },

  async 'a threshold is reached by the units that were charged, and not by requests'(subject) {
    const store = await subject.open(await freshLengths(subject));
    const call = watched({ perDay: 100 });
    expect(percentsOf(await decide(store, { ...call, runs: oneRun(1, 79) }))).toEqual([]);
    expect(percentsOf(await decide(store, { ...call, runs: oneRun(1, 22) }))).toEqual([]);
    expect(percentsOf(await decide(store, { ...call, runs: oneRun(1, 1) }))).toEqual([80]);
    expect(percentsOf(await decide(store, { ...call, runs: oneRun(1, 0) }))).toEqual([80]);
    const runs = [...oneRun(1, 0), ...oneRun(1, 0), ...oneRun(2, 10)];
    expect(percentsOf(await decide(store, { ...call, runs }))).toEqual([80, 100]);
  },

  async 'a running grant is the limit of which a threshold is a percentage'(subject) {
    const store = await subject.open(await freshLengths(subject));
    const call = watched({ perDay: 10 });
    const nowMs = await subject.nowMs();
    await store.adjust(call.keyId, {
      grant: { limits: limitsOf({ perDay: 100 }), untilMs: nowMs + 600_000 },
    });
    expect(percentsOf(await decide(store, { ...call, runs: oneRun(79) }))).toEqual([]);
    const raised = await decide(store, { ...call, runs: oneRun(1) });
    expect(raised.reached).toMatchObject([{ percents: [80], used: 80, limit: 100 }]);
    await store.adjust(call.keyId, { grant: { limits: limitsOf({ perDay: 75 }), untilMs: nowMs + 600_000 } });
    expect(percentsOf(await decide(store, { ...call, runs: oneRun(1) }))).toEqual([80, 100]);

    const later = watched({ perDay: 10 });
    const grant = { limits: limitsOf({ perDay: 5 }), fromMs: nowMs + 500_000, untilMs: nowMs + 600_000 };
    await store.adjust(later.keyId, { grant });
    expect(percentsOf(await decide(store, { ...later, runs: oneRun(5) }))).toEqual([]);
  },

  async 'a lowered limit reaches its thresholds with the next request, also with a refused or free request'(
    subject,
  ) {
    const store = await subject.open(await freshLengths(subject));
    for (const units of [1, 0]) {
      const call = watched({ perDay: 100 });
      const before = await decide(store, { ...call, runs: oneRun(85) });
      await confirm(store, call, before, 'day', 80);
      const lowered = { ...call, limits: limitsOf({ perDay: 85 }) };
      const next = await decide(store, { ...lowered, runs: oneRun(1, units) });
      expect([next.refused, next.reached]).toMatchObject([units, [{ percents: [100], used: 85, limit: 85 }]]);
    }
  },

  async 'a threshold that was confirmed is not returned again after an edit'(subject) {
    const store = await subject.open(await freshLengths(subject));
    const call = watched({ perDay: 10 });
    const before = await decide(store, { ...call, runs: oneRun(8) });
    await confirm(store, call, before, 'day', 80);
    const raised = { ...call, limits: limitsOf({ perDay: 20 }) };
    expect(percentsOf(await decide(store, { ...raised, runs: oneRun(9) }))).toEqual([]);
    expect(percentsOf(await decide(store, { ...raised, runs: oneRun(3) }))).toEqual([100]);
    const withLower = { ...raised, thresholds: [50, 80, 100] };
    expect(percentsOf(await decide(store, withLower))).toEqual([100]);
  },

  async 'after a reset each threshold is returned again, and a confirmation of an earlier report has no effect'(
    subject,
  ) {
    const store = await subject.open(await freshLengths(subject));
    const call = watched({ perDay: 10 });
    const before = await decide(store, { ...call, runs: oneRun(8) });
    await confirm(store, call, before, 'day', 80);
    await store.adjust(call.keyId, { reset: true, bans: call.bans });
    expect(await confirm(store, call, before, 'day', 100)).toBe(false);
    expect(percentsOf(await decide(store, { ...call, runs: oneRun(7) }))).toEqual([]);
    expect(await confirm(store, call, before, 'day', 100)).toBe(false);
    const after = await decide(store, { ...call, runs: oneRun(3) });
    expect(percentsOf(after)).toEqual([80, 100]);
    expect(await confirm(store, call, after, 'day', 100)).toBe(true);
    expect(percentsOf(await decide(store, call))).toEqual([]);
  },

  async 'a lifted ban leaves the confirmed thresholds, and a banned key returns its thresholds'(subject) {
    const store = await subject.open(await freshLengths(subject));
    const bans = { after: 1, withinMs: 60_000, forMs: 60_000, maxMs: 600_000 };
    const call = { ...watched({ perDay: 10 }), bans };
    const before = await decide(store, { ...call, runs: oneRun(11) });
    expect(before.banned).toBe(1);
    await confirm(store, call, before, 'day', 80);
    expect(percentsOf(await decide(store, { ...call, runs: oneRun(1) }))).toEqual([100]);
    await store.adjust(call.keyId, { lift: true, bans });
    expect(percentsOf(await decide(store, call))).toEqual([100]);
  },

  async 'a confirmation concerns one window with one number, and never lowers the percentage'(subject) {
    const lengths = await freshLengths(subject);
    const store = await subject.open(lengths);
    const call = watched({ perHour: 10, perDay: 10, perMonth: 10 });
    const full = await decide(store, { ...call, runs: oneRun(10) });
    const { index } = markOf(full, 'day', 100);
    for (const other of [index - 1, index + 1]) {
      const mark = { ...markOf(full, 'day', 100), index: other };
      expect(await store.confirmTold(call.keyId, mark)).toEqual({ kind: 'confirmed', isStored: false });
    }
    expect(percentsOf(await decide(store, call))).toEqual([80, 100, 80, 100, 80, 100]);
    expect(await confirm(store, call, full, 'month', 80)).toBe(true);
    expect(await confirm(store, call, full, 'day', 100)).toBe(true);
    expect(await confirm(store, call, full, 'day', 80)).toBe(true);
    expect(percentsOf(await decide(store, call))).toEqual([80, 100, 100]);
    expect(await confirm(store, call, full, 'hour', 100)).toBe(true);
    expect(percentsOf(await decide(store, call))).toEqual([100]);
    expect(await store.confirmTold('nobody', markOf(full, 'day', 80))).toMatchObject({ isStored: false });
  },

  async 'units that a process counted alone reach a threshold with the report that sends them'(subject) {
    const store = await subject.open(await freshLengths(subject));
    const call = watched({ perDay: 10 });
    const { state } = await decide(store, { ...call, runs: oneRun(1) });
    const generation = { strikes: 0, bannedUntilMs: 0, banLevel: 0, liftedMs: 0, resetMs: 0 };
    const unsent = { ...noCounts, ...generation, day: state.day, [usedIn.day]: 7 };
    expect(percentsOf(await decide(store, { ...call, unsent }))).toEqual([80]);
  },
};

/** A call for a new key, without requests, with the thresholds 80 % and 100 %. */
function watched(limits: Parameters<typeof limitsOf>[0]): QuotaCall {
  return { ...callOf(limitsOf(limits)), thresholds: [80, 100] };
}

function percentsOf({ reached = [] }: QuotaOutcome): number[] {
  return reached.flatMap(({ percents }) => percents);
}

/** Confirms a report that follows from `outcome`. @returns whether the store has stored the mark */
async function confirm(
  store: QuotaStore,
  { keyId }: QuotaCall,
  outcome: QuotaOutcome,
  window: ThresholdWindow,
  percent: number,
): Promise<boolean> {
  const reply = await store.confirmTold(keyId, markOf(outcome, window, percent));
  if (reply.kind === 'failed') throw new Error(reply.reason);
  return reply.isStored;
}

function markOf({ state }: QuotaOutcome, window: ThresholdWindow, percent: number) {
  return { window, index: state[window], percent, resetMs: state.resetMs };
}
