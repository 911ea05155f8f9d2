import { describe, expect, it } from 'vitest';
import { guardedEditOf } from '../../../../gateway/capabilities/guard/guarded-edit.ts';
import {
  addCounts,
  type GuardCounts,
  type KeyCounts,
  RequestCounts,
} from '../../../../gateway/capabilities/guard/process/guard-counts.ts';
import { UnsentCounts } from '../../../../gateway/capabilities/guard/process/unsent-counts.ts';
import type { Decision } from '../../../../gateway/shared/model.ts';
import { limitsOf } from '../../../support/limits-of.ts';
import { tunedBounds } from '../../../support/tuned-bounds.ts';
import { decisionOf, guardedEdit } from './guard-fixture.ts';

const bounds = tunedBounds({ guardSlotMs: 10_000, guardSlots: 60, guardKeysPerSlotMax: 64 });
const edit = guardedEdit();

describe('what the watched windows decide', () => {
  const [admitted, refused, neither] = [{ requests: 1, refused: 0 }, { requests: 1, refused: 1 }, undefined];
  it.each<[name: string, decision: Decision, units: number, counted: KeyCounts | undefined]>([
    ['an admitted request', decisionOf('admitted', { remaining: 39 }), 1, admitted],
    ['a refusal by the smaller window', decisionOf('refused'), 1, refused],
    ['an admitted request without a cost', decisionOf('admitted', { units: 0 }), 0, neither],
    [
      'a refusal by a window that the edit did not change',
      decisionOf('refused', { remaining: 5, dayRemaining: 0 }),
      1,
      neither,
    ],
    ['a refusal by both windows', decisionOf('refused', { dayRemaining: 0 }), 1, neither],
    [
      'a refusal by the smaller window, because the request costs more than remains',
      decisionOf('refused', { units: 5, remaining: 4, dayRemaining: 5 }),
      5,
      refused,
    ],
    [
      'a refusal of a cost that the other window has no room for either',
      decisionOf('refused', { units: 5, remaining: 4, dayRemaining: 4 }),
      5,
      neither,
    ],
    ['a refusal by a limit of a grant', decisionOf('refused', { limit: 50 }), 1, neither],
    ['an admitted request under a grant', decisionOf('admitted', { limit: 50, remaining: 9 }), 1, neither],
    ['a refusal by the limit of requests in progress', decisionOf('crowded'), 1, neither],
    ['a request during a ban', decisionOf('banned'), 1, neither],
    ['an undecided request', decisionOf('unavailable'), 1, neither],
    ['a cost between the new and the old limit', decisionOf('admitted', { units: 0 }), 50, refused],
    ['a cost above the new and the old limit', decisionOf('admitted', { units: 0 }), 70, neither],
    ['a cost below the new limit', decisionOf('admitted', { units: 30, remaining: 10 }), 30, admitted],
  ])('%s', (_, decision, units, counted) => {
    const of = new RequestCounts();
    of.count(edit, { keyId: 'acme', decision, units }, 64);
    expect([...of.byName().values()]).toEqual(counted === undefined ? [] : [counted]);
  });

  it('a cost between the new and the old limit, but above a limit that the edit did not change', () => {
    const of = new RequestCounts();
    const decision = decisionOf('admitted', { units: 0, dayLimit: 45 });
    of.count(edit, { keyId: 'acme', decision, units: 50 }, 64);
    expect(of.byName().size).toBe(0);
  });

  it('a cost above a group counts as refused by the edit, if the group did not count the operation before', () => {
    const reports = (...operations: string[]) => ({ reports: { operations, perMinute: 5 } });
    const before = limitsOf({ perDay: 9, groups: reports('exportReport') });
    const limits = limitsOf({ perDay: 9, groups: reports('exportReport', 'createReport') });
    const plan = { name: 'free', isCustom: false, limits, operations: undefined };
    const wider = guardedEditOf({ ...plan, guard: { before, refusedShareMax: 0.03, untilMs: 1 } }, limits);
    if (wider === undefined) throw new Error('the group counts a further operation');
    const window = {
      name: 'minute',
      group: 'reports',
      limit: 5,
      remaining: 5,
      resetMs: 1,
      windowSeconds: 60,
    } as const;
    const rateLimit = { nowMs: 0, windows: [window], inForce: window };
    const decision: Decision = { kind: 'admitted', units: 0, rateLimit, source: 'shared' };
    const countsOfOperation = (operation: string) => {
      const of = new RequestCounts();
      of.count(wider, { keyId: 'acme', decision, units: 7, operation }, 64);
      return [...of.byName().values()];
    };
    expect(countsOfOperation('createReport')).toEqual([{ requests: 1, refused: 1 }]);
    expect(countsOfOperation('exportReport')).toEqual([]);
  });

  it('a window that had no limit before is watched', () => {
    const counts = new RequestCounts();
    const daily = guardedEdit({ before: [{ window: 'day', max: 1_000 }] });
    counts.count(daily, { keyId: 'acme', decision: decisionOf('refused'), units: 1 }, 64);
    expect([...counts.byName().values()]).toEqual([{ requests: 1, refused: 1 }]);
  });
});

it('many keys take little memory, and no request is lost', () => {
  const of = new RequestCounts();
  for (let key = 0; key < 10_000; key++) {
    of.count(edit, { keyId: `key-${key}`, decision: decisionOf('refused'), units: 1 }, 64);
  }
  const counts = of.byName();
  expect(counts.size).toBeLessThanOrEqual(2 * 64);
  const groups: GuardCounts = new Map();
  addCounts(groups, counts, 64);
  expect(groups.size).toBe(16);
  expect(requestsOf(groups)).toBe(10_000);
  // The names of keys are spread evenly.
  expect(Math.max(...groups.values().map(({ refused }) => refused))).toBeLessThan(1.5 * (10_000 / 16));
});

it('a key and its group become one group when too many keys have requests', () => {
  const counted = (...names: string[]): GuardCounts =>
    new Map(names.map((name) => [name, { requests: 2, refused: 1 }]));
  const slot = counted('a0000001', 'a0000002');
  addCounts(slot, counted('b0000001'), 2);
  addCounts(slot, counted('a0000003'), 2);
  expect(slot).toEqual(
    new Map([
      ['a', { requests: 6, refused: 3 }],
      ['b', { requests: 2, refused: 1 }],
    ]),
  );
});

describe('counts that the store has not confirmed', () => {
  const countOne = (unsent: UnsentCounts, nowMs?: number) =>
    unsent.count({
      keyId: 'acme',
      decision: decisionOf('refused', nowMs === undefined ? {} : { nowMs }),
      units: 1,
    });
  const shown = ({ number, periods }: ReturnType<UnsentCounts['report']>) => [
    number,
    ...periods.map(({ agoMs, counts }) => `${requestsOf(counts)} from ${agoMs} ms ago`),
  ];

  it('are sent again with the same number, and later counts have the next number', () => {
    const unsent = new UnsentCounts(edit, 0, bounds);
    expect(shown(unsent.report(1_000))).toEqual([0]);
    countOne(unsent);
    expect(shown(unsent.report(2_000))).toEqual([1, '1 from 1000 ms ago']);
    countOne(unsent);
    countOne(unsent);
    expect(shown(unsent.report(3_000))).toEqual([1, '1 from 2000 ms ago']);
    unsent.confirm(1);
    expect(shown(unsent.report(4_000))).toEqual([2, '2 from 2000 ms ago']);
    unsent.confirm(1);
    expect(shown(unsent.report(4_500))).toEqual([2, '2 from 2500 ms ago']);
    unsent.confirm(2);
    expect(shown(unsent.report(5_000))).toEqual([2]);
  });

  it('wait in one period for each slot, for ten minutes', () => {
    const unsent = new UnsentCounts(edit, 0, bounds);
    countOne(unsent);
    unsent.report(1_000);
    for (let second = 2; second <= 3_000; second++) {
      countOne(unsent);
      unsent.report(second * 1_000);
    }
    unsent.confirm(1);
    const { periods } = unsent.report(3_000_500);
    expect(periods.length).toBe(60);
    expect(periods.every(({ counts }) => [9, 10].includes(requestsOf(counts)))).toBe(true);
    expect(periods[0]?.agoMs).toBeLessThanOrEqual(600_500);
  });

  it('are dropped when they no longer matter, and are not counted after the end of the guard', () => {
    const unsent = new UnsentCounts(edit, 0, bounds);
    countOne(unsent);
    unsent.report(1_000);
    countOne(unsent);
    unsent.clear();
    countOne(unsent, edit.guard.untilMs);
    expect(unsent.report(2_000).periods).toEqual([]);
  });
});

function requestsOf(counts: GuardCounts): number {
  return counts.values().reduce((sum, { requests }) => sum + requests, 0);
}
