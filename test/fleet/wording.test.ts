import { expect, it } from 'vitest';
import { laterPlansText } from '../../gateway/fleet/wording.ts';
import { limitChangeTexts } from '../../gateway/keys/limits/limit-texts.ts';
import { limitsOf } from '../support/limits-of.ts';

const a = { operations: ['x', 'y'], perMinute: 5, perDay: 9 };

it('the texts name all changed limits, those of groups last, and a group with other operations', () => {
  const before = limitsOf({ perMinute: 60, groups: { a, old: a } });
  const after = limitsOf({
    perMinute: 40,
    perHour: 70,
    groups: { new: { operations: ['x'], perDay: 1 }, a: { operations: ['x'], perMinute: 6, perDay: 9 } },
  });
  expect(limitChangeTexts(before, after)).toEqual([
    '60 → 40 a minute',
    'no limit → 70 an hour',
    '5 → 6 a minute for the group a',
    'other operations in the group a',
    '5 → no limit a minute for the group old',
    '9 → no limit a day for the group old',
    'no limit → 1 a day for the group new',
  ]);
});

it('no text is about groups and operations in another order', () => {
  const b = { operations: ['x'], perHour: 7 };
  const turned = { ...a, operations: ['y', 'x'] };
  const [before, after] = [
    { a, b },
    { b, a: turned },
  ].map((groups) => limitsOf({ perMinute: 60, groups }));
  expect(limitChangeTexts(before ?? [], after ?? [])).toEqual([]);
});

it.each<[before: unknown, after: unknown, text: string]>([
  [undefined, [{ from: '2027-01-01', plan: 'pro' }], 'plan pro from 2027-01-01'],
  [undefined, ['2027-01-01 pro'], 'plan pro from 2027-01-01'],
  [[], ['2027-01-01T10:00:00Z pro'], 'plan pro from 2027-01-01 10:00 UTC'],
  [['2027-01-01 pro'], [], 'later plan withdrawn'],
  [undefined, ['other words of a client'], 'later plan'],
  [[{ from: '2027-01-01', plan: 'pro' }], '[{"from":"2027-01-01","plan":"pro"},{"from …', 'later plan'],
])('the later plans of a key: from %j to %j', (before, after, text) => {
  expect(laterPlansText(before, after)).toBe(text);
});
