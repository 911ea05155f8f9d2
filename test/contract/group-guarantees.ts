import { expect } from 'vitest';
import type { QuotaCall, QuotaOutcome } from '../../gateway/quota/decide-key.ts';
import type { Run } from '../../gateway/quota/runs.ts';
import { usedOf } from '../../gateway/quota/windows.ts';
import { noCounts } from '../../gateway/shared/calendar-windows.ts';
import type { Limits } from '../../gateway/shared/model.ts';
import { limitsOf } from '../support/limits-of.ts';
import { callOf, decide, freshLengths, type Subject } from './quota-store-guarantees.ts';

/** The part of the contract of a QuotaStore that is about groups of operations. */
export const groupGuarantees: Readonly<Record<string, (subject: Subject) => Promise<void>>> = {
  async 'a request is charged in the windows of the plan and of its groups, or in none'(subject) {
    const store = await subject.open(await freshLengths(subject));
    const call = callOf(reportsOf({ perDay: 100 }, { perMinute: 3, perDay: 50 }));
    const first = await decide(store, { ...call, runs: [asks('export', 5)] });
    expect([first.admitted, first.refused, ...used(first)]).toEqual([3, 2, ...[3, 3, 3]]);
    // The plan refuses, so the group is not charged.
    const full = callOf(reportsOf({ perDay: 2 }, { perMinute: 50, perDay: 50 }));
    const second = await decide(store, { ...full, runs: [asks('export', 5)] });
    expect([second.admitted, second.refused, ...used(second)]).toEqual([2, 3, ...[2, 2, 2]]);
  },

  async 'a request of another operation is charged in no group, and no group refuses it'(subject) {
    const store = await subject.open(await freshLengths(subject));
    const call = callOf(reportsOf({ perDay: 100 }, { perMinute: 3, perDay: 50 }));
    await decide(store, { ...call, runs: [asks('export', 3)] });
    const other = await decide(store, { ...call, runs: [asks(undefined, 4)] });
    expect([other.admitted, other.refused, ...used(other)]).toEqual([4, 0, ...[7, 3, 3]]);
    expect((await decide(store, { ...call, runs: [asks('export', 1)] })).refused).toBe(1);
  },

  async 'an operation in two groups is charged in both, and the tighter group refuses it'(subject) {
    const store = await subject.open(await freshLengths(subject));
    const groups = {
      reports: { operations: ['export', 'create'], perDay: 9 },
      'big-2': { operations: ['export'], perDay: 4 },
    };
    const call = callOf(limitsOf({ perDay: 100, groups }));
    const both = await decide(store, { ...call, runs: [asks('export', 5)] });
    expect([both.admitted, both.refused, ...used(both, call.limits)]).toEqual([4, 1, ...[4, 4, 4]]);
    const one = await decide(store, { ...call, runs: [asks('create', 6)] });
    expect([one.admitted, one.refused, ...used(one, call.limits)]).toEqual([5, 1, ...[9, 9, 4]]);
  },

  async 'requests of many clients, groups and costs fill no bucket above its limit, and leave no room that a refused request needs'(
    subject,
  ) {
    const lengths = await freshLengths(subject);
    const stores = await Promise.all([1, 2, 3].map(() => subject.open(lengths)));
    const groups = {
      reports: { operations: ['export', 'create'], perMinute: 40 },
      big: { operations: ['create', 'delete'], perMinute: 25 },
    };
    const call = callOf(limitsOf({ perMinute: 70, groups }));
    const runs = Array.from({ length: 240 }, (_, at) =>
      asks(['export', 'create', 'delete', undefined][at % 4], 1, [1, 3, 0, 2, 7][at % 5]),
    );
    const outcomes = await Promise.all(
      runs.map((run, at) => decide(stores[at % 3], { ...call, runs: [run] })),
    );
    const { state } = await decide(stores[0], call);
    for (const limit of call.limits) {
      const charged = runs.filter(({ operation }) => limit.operations?.includes(operation ?? '') ?? true);
      const units = charged.reduce(
        (sum, run) => sum + run.units * (outcomes[runs.indexOf(run)]?.admitted ?? 0),
        0,
      );
      expect([limit.group, usedOf(state, limit)]).toEqual([limit.group, units]);
      expect(units).toBeLessThanOrEqual(limit.max);
    }
    for (const [at, { units, operation }] of runs.entries()) {
      if (outcomes[at]?.refused !== 1) continue;
      const left = call.limits
        .filter(({ operations }) => operations?.includes(operation ?? '') ?? true)
        .map((limit) => limit.max - usedOf(state, limit));
      expect(Math.min(...left)).toBeLessThan(units);
    }
  },

  async 'a refusal by a group is one strike, and a ban refuses every operation'(subject) {
    const store = await subject.open(await freshLengths(subject));
    const bans = { after: 3, withinMs: 60_000, forMs: 60_000, maxMs: 600_000 };
    const call = { ...callOf(reportsOf({ perDay: 100 }, { perDay: 2 })), bans };
    const struck = await decide(store, { ...call, runs: [asks('export', 4)] });
    expect([struck.admitted, struck.refused, struck.state.strikes]).toEqual([2, 2, 2]);
    expect((await decide(store, { ...call, runs: [asks('export', 1)] })).banned).toBe(1);
    expect((await decide(store, { ...call, runs: [asks(undefined, 1)] })).banned).toBe(1);
  },

  async 'a grant raises the limit of the group that it names, and no other'(subject) {
    const store = await subject.open(await freshLengths(subject));
    const call = callOf(reportsOf({ perDay: 5 }, { perMinute: 3, perDay: 3 }));
    await decide(store, { ...call, runs: [asks('export', 3)] });
    const untilMs = (await subject.nowMs()) + 600_000;
    const limits = [
      { window: 'minute', group: 'reports', max: 9 },
      { window: 'day', group: 'reports', max: 9 },
    ] as const;
    await store.adjust(call.keyId, { grant: { limits, untilMs } });
    const granted = await decide(store, { ...call, runs: [asks('export', 4)] });
    expect([granted.admitted, granted.refused, granted.state.grant]).toEqual([2, 2, { limits, untilMs }]);
  },

  async 'a trial may try a limit of a group, with other operations than in the plan, and refuses nothing'(
    subject,
  ) {
    const store = await subject.open(await freshLengths(subject));
    const limits = reportsOf({ perDay: 100 }, { perDay: 50 });
    const groups = { reports: { operations: ['export', 'create'], perDay: 3 } };
    const call = { ...callOf(limits), trial: limitsOf({ perDay: 100, groups }) };
    const first = await decide(store, { ...call, runs: [asks('export', 2), asks('create', 2)] });
    expect([first.admitted, first.refused, ...used(first)]).toEqual([4, 0, ...[4, 2]]);
    expect([first.trial?.admitted, first.trial?.refused, ...usedInTrial(first)]).toEqual([3, 1, ...[3, 3]]);
    const other = await decide(store, { ...call, runs: [asks(undefined, 2)] });
    expect([other.trial?.admitted, ...usedInTrial(other)]).toEqual([2, ...[5, 3]]);
  },

  async 'units are taken back in each named window while it is open, and never more than its used units'(
    subject,
  ) {
    const store = await subject.open(await freshLengths(subject));
    const limits = reportsOf({ perDay: 100 }, { perDay: 50 });
    const call = { ...callOf(limits), trial: limits };
    const { day } = (await decide(store, { ...call, runs: [asks('export', 9)] })).state;
    const units = [
      ...[['day', day, 1] as const, ['reports:day', day, 2] as const],
      ...[['trial:day', day, 4] as const, ['trial:reports:day', day, 99] as const],
    ];
    await store.adjust(call.keyId, { units });
    const after = await decide(store, call);
    expect([...used(after), ...usedInTrial(after)]).toEqual([...[8, 7], ...[5, 0]]);
    await store.adjust(call.keyId, { units: units.map(([field]) => [field, day - 1, 1]) });
    const later = await decide(store, call);
    expect([...used(later), ...usedInTrial(later)]).toEqual([...[8, 7], ...[5, 0]]);
  },

  async 'a reset resets the groups too'(subject) {
    const store = await subject.open(await freshLengths(subject));
    const limits = reportsOf({ perDay: 100 }, { perDay: 2 });
    const call = { ...callOf(limits), trial: limits };
    await decide(store, { ...call, runs: [asks('export', 3)] });
    await store.adjust(call.keyId, { reset: true, bans: call.bans });
    const after = await decide(store, { ...call, runs: [asks('export', 3)] });
    expect([after.admitted, after.trial?.admitted, ...used(after), ...usedInTrial(after)]).toEqual([
      ...[2, 2],
      ...[2, 2, 2, 2],
    ]);
  },

  async 'decisions that a process made alone count in their groups'(subject) {
    const store = await subject.open(await freshLengths(subject));
    const call = callOf(reportsOf({ perDay: 100 }, { perDay: 6 }));
    const { state } = await decide(store, { ...call, runs: [asks('export', 1)] });
    const unsent = {
      ...{ ...noCounts, strikes: 0, bannedUntilMs: 0, banLevel: 0, liftedMs: 0, resetMs: 0 },
      ...{ day: state.day, dayUsed: 5, 'reports:day': state.day, 'reports:dayUsed': 3 },
    };
    const merged = await decide(store, { ...call, runs: [asks('export', 4)], unsent });
    expect([merged.admitted, merged.refused, ...used(merged)]).toEqual([2, 2, ...[8, 6]]);
  },
};

type Fields = Parameters<typeof limitsOf>[0];

function reportsOf(plan: Fields, reports: Fields): Limits {
  return limitsOf({ ...plan, groups: { reports: { operations: ['export'], ...reports } } });
}

function asks(operation: string | undefined, requests: number, units = 1): Run {
  return { requests, units, operation };
}

/** The used units of the plan's day, and of each window of the group `reports`; of all limits if they are given. */
function used({ state }: Pick<QuotaOutcome, 'state'>, limits?: QuotaCall['limits']): readonly number[] {
  if (limits !== undefined) return limits.map((limit) => usedOf(state, limit));
  const ofGroup = (['minute', 'day'] as const).map((window) => state[`reports:${window}Used`]);
  return [state.dayUsed, ...ofGroup].filter((units) => units !== undefined);
}

function usedInTrial({ trial }: QuotaOutcome): readonly number[] {
  if (trial === undefined) throw new Error('no trial');
  return used(trial);
}
