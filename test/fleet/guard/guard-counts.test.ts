import { describe, expect, it } from 'vitest';
import { addRefusals, byGroup, RequestCounts } from '../../../gateway/fleet/guard/guard-counts.ts';
import { UnsentCounts } from '../../../gateway/fleet/guard/unsent-counts.ts';
import type { Decision } from '../../../gateway/shared/model.ts';
import { tunedBounds } from '../../support/tuned-bounds.ts';
import { decisionOf, guardedEdit } from './guard-fixture.ts';

const bounds = tunedBounds({ guardSlotMs: 10_000, guardSlots: 60, guardKeysPerSlotMax: 256 });
const edit = guardedEdit();

describe('what counts', () => {
  it.each<[name: string, decision: Decision, units: number, counted: [requests: number, refused: number]]>([
    ['an admitted request', decisionOf('admitted'), 1, [1, 0]],
    ['a refusal by the smaller window', decisionOf('refused'), 1, [1, 1]],
    [
      'a refusal by a window that the edit did not change',
      decisionOf('refused', { window: 'day', limit: 1_000 }),
      1,
      [1, 0],
    ],
    ['a refusal by a limit of a grant', decisionOf('refused', { limit: 50 }), 1, [1, 0]],
    ['a refusal by the limit of requests in progress', decisionOf('crowded'), 1, [1, 0]],
    ['a request during a ban', decisionOf('banned'), 1, [0, 0]],
    ['an undecided request', decisionOf('unavailable'), 1, [0, 0]],
    ['a cost between the new and the old limit', decisionOf('admitted', { units: 0 }), 50, [1, 1]],
    ['a cost above the new and the old limit', decisionOf('admitted', { units: 0 }), 70, [1, 0]],
    ['a cost below the new limit', decisionOf('admitted', { units: 30 }), 30, [1, 0]],
  ])('%s', (_, decision, units, counted) => {
    const of = new RequestCounts();
    of.count(edit, { keyId: 'acme', decision, units }, 256);
    const counts = of.byName();
    expect([counts.requests, sumOf(counts.refused)]).toEqual(counted);
    expect(counts.active.size).toBe(counted[0]);
  });

  it('a window that had no limit before is watched', () => {
    const counts = new RequestCounts();
    const daily = guardedEdit({ before: [{ window: 'day', max: 1_000 }] });
    counts.count(daily, { keyId: 'acme', decision: decisionOf('refused'), units: 1 }, 256);
    expect(sumOf(counts.byName().refused)).toBe(1);
  });
});

it('many keys take little memory, and no refusal is lost', () => {
  const of = new RequestCounts();
  for (let key = 0; key < 10_000; key++) {
    of.count(edit, { keyId: `key-${key}`, decision: decisionOf('refused'), units: 1 }, 256);
  }
  const counts = of.byName();
  expect([counts.requests, sumOf(counts.refused), counts.active.size]).toEqual([10_000, 10_000, 5]);
  expect(counts.refused.size).toBeLessThanOrEqual(2 * 256);
  const groups = byGroup(counts.refused);
  expect(groups.size).toBe(256);
  // The names of keys are spread evenly.
  expect(Math.max(...groups.values())).toBeLessThan(3 * (10_000 / 256));
});

it('a key and its group are one group', () => {
  const refused = new Map<string, number>();
  for (const name of ['aa000001', 'aa000002', 'bb000001']) addRefusals(refused, name, 2, 2);
  addRefusals(refused, 'aa000003', 1, 8);
  expect(byGroup(refused)).toEqual(
    new Map([
      ['aa', 5],
      ['bb', 2],
    ]),
  );
});

describe('counts that the store has not confirmed', () => {
  const countOne = (unsent: UnsentCounts, nowMs?: number) =>
    unsent.count('acme', decisionOf('refused', nowMs === undefined ? {} : { nowMs }), 1);
  const shown = ({ number, periods }: ReturnType<UnsentCounts['report']>) => [
    number,
    ...periods.map(({ agoMs, counts }) => `${counts.requests} from ${agoMs} ms ago`),
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
    expect(periods.every(({ counts }) => counts.requests >= 9 && counts.requests <= 10)).toBe(true);
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

function sumOf(refused: ReadonlyMap<string, number>): number {
  return [...refused.values()].reduce((sum, one) => sum + one, 0);
}
