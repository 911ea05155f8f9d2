import { expect, it } from 'vitest';
import type { Guard } from '../../../gateway/capabilities/guard/guard.ts';
import { guardedEditOf } from '../../../gateway/capabilities/guard/guarded-edit.ts';
import { smallerLimits } from '../../../gateway/shared/limits.ts';
import type { Limits } from '../../../gateway/shared/model.ts';
import { limitsOf } from '../../support/limits-of.ts';

const reports = (perMinute: number, ...operations: string[]) => ({ reports: { operations, perMinute } });
const withReports = (perMinute: number, ...operations: string[]) =>
  limitsOf({ perMinute: 60, groups: reports(perMinute, ...operations) });

it.each<[name: string, before: Limits, now: Limits, smaller: string[]]>([
  ['a smaller limit of a group', withReports(6, 'a'), withReports(5, 'a'), ['reports']],
  ['a new group', limitsOf({ perMinute: 60 }), withReports(5, 'a'), ['reports']],
  ['a group with a further operation', withReports(5, 'a'), withReports(5, 'a', 'b'), ['reports']],
  ['a group with an operation less', withReports(5, 'a', 'b'), withReports(5, 'b'), []],
  ['the same operations in another order', withReports(5, 'a', 'b'), withReports(5, 'b', 'a'), []],
  ['a removed group', withReports(5, 'a'), limitsOf({ perMinute: 60 }), []],
])('the limits that an edit makes smaller: %s', (_, before, now, smaller) => {
  expect(smallerLimits(before, now).map(({ group }) => group)).toEqual(smaller);
});

function identityOf(limits: Limits, before: Limits): string | undefined {
  const guard: Guard = { before, refusedShareMax: 0.03, untilMs: 1_800_000_000_000 };
  return guardedEditOf({ name: 'free', isCustom: false, limits, operations: undefined, guard }, limits)
    ?.identity;
}

it('the identity of an edit without groups stays as it is stored in Redis', () => {
  expect(identityOf(limitsOf({ perMinute: 40 }), limitsOf({ perMinute: 60 }))).toBe('9aa97384dff35a98');
});

it('an edit of a group has an identity of its own, and the order of groups and operations has no meaning', () => {
  const a = { operations: ['x', 'y'], perMinute: 5 };
  const b = { operations: ['x'], perDay: 9 };
  const before = limitsOf({ perMinute: 60 });
  const identity = identityOf(limitsOf({ perMinute: 40, groups: { a, b } }), before);
  const turned = { ...a, operations: ['y', 'x'] };
  expect(identityOf(limitsOf({ perMinute: 40, groups: { b, a: turned } }), before)).toBe(identity);
  for (const groups of [{ a }, { a: { ...a, perMinute: 6 }, b }, { a, b: { ...b, operations: ['y'] } }]) {
    expect(identityOf(limitsOf({ perMinute: 40, groups }), before)).not.toBe(identity);
  }
});
