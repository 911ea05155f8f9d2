import { describe, expect, it, test } from 'vitest';
import { parse } from 'yaml';
import { loadSettings } from '../../../gateway/config/load-settings.ts';
import { plansAt } from '../../../gateway/keys/plans/plans.ts';
import {
  group,
  misspelt,
  ofCreate,
  problemsOf,
  warningsOf,
} from '../../config/check/check-limits-fixture.ts';
import { isValidForEditors, keyFields, load, withPlan } from '../../config/plans-fixture.ts';
import { configFolder } from '../../support/config-folder.ts';
import { limitsOf } from '../../support/limits-of.ts';

const aPercentage =
  'a percentage above 0 % and up to 100 % with at most three decimals, such as 3 % or 0.5 %';

test('a plan may have a guard', () => {
  const written =
    '{ perHour: 5, guard: { before: { perHour: 6, perDay: 7 }, refusedAtMost: 0.5%, until: 2100-01-01 } }';
  const settings = load(written);
  if (typeof settings !== 'object') throw new Error(settings);
  expect(plansAt(settings, 0).get('enterprise')).toMatchObject({
    name: 'enterprise',
    isCustom: false,
    limits: limitsOf({ perHour: 5 }),
    guard: {
      before: limitsOf({ perHour: 6, perDay: 7 }),
      refusedShareMax: 0.005,
      untilMs: Date.parse('2100-01-01'),
    },
  });
  expect(isValidForEditors(parse(withPlan(written)))).toBe(true);
});

test.each([
  [
    'a guard on a custom plan',
    '{ custom: true, guard: { before: { perDay: 9 }, refusedAtMost: 3 %, until: 2100-01-01 } }',
    '6:38: `plans.enterprise.guard` is not for a custom plan, whose keys state their own limits; remove it, or `custom`',
  ],
  [
    'a guard without a share',
    '{ perDay: 9, guard: { before: { perDay: 10 }, until: 2100-01-01 } }',
    `6:28: \`plans.enterprise.guard.refusedAtMost\` is missing; write ${aPercentage}`,
  ],
  [
    'a guard without the limits before',
    '{ perDay: 9, guard: { before: {}, refusedAtMost: 3 %, until: 2100-01-01 } }',
    `6:45: \`plans.enterprise.guard.before\` must be a mapping with ${keyFields}`,
  ],
  ...['0 %', '0.0%', '100.1 %', '101 %', '3', '-1 %', 'a %'].map((share) => [
    `a guard with a share of ${share}`,
    `{ perDay: 9, guard: { before: { perDay: 10 }, refusedAtMost: ${share}, until: 2100-01-01 } }`,
    `6:76: \`plans.enterprise.guard.refusedAtMost\` must be ${aPercentage}`,
  ]),
])('a plan of %s is reported with its place and a correction', (_, written, report) => {
  expect(load(written)).toBe(`tollgate.yaml:${report}`);
  expect(isValidForEditors(parse(withPlan(written)))).toBe(false);
});

test.each([
  [
    'has ended',
    '{ before: { perDay: 10 }, refusedAtMost: 100 %, until: 2001-01-01 }',
    '6:90: `plans.enterprise.guard.until` is past, so the guard has ended; remove the guard if the new limits shall stay',
  ],
  [
    'has nothing to watch',
    '{ before: { perDay: 9 }, refusedAtMost: 99.9 %, until: 2100-01-01 }',
    '6:35: `plans.enterprise.guard` has nothing to watch, because no limit of the plan is smaller than in `before`; remove the guard, or write the limits before the edit',
  ],
])('the check explains a guard that %s', (_, guard, warning) => {
  const folder = configFolder({ 'tollgate.yaml': withPlan(`{ perDay: 9, guard: ${guard} }`) });
  const loaded = loadSettings({ file: folder.file, env: {} });
  expect(loaded.kind === 'valid' && loaded.warnings).toEqual([`${folder.file}:${warning}`]);
});

test('a guard may watch a scheduled change', () => {
  const plan =
    '{ perDay: 9, changes: [{ from: 2090-01-01, perDay: 8 }], guard: { before: { perDay: 9 }, refusedAtMost: 3 %, until: 2100-01-01 } }';
  const folder = configFolder({ 'tollgate.yaml': withPlan(plan) });
  const loaded = loadSettings({ file: folder.file, env: {} });
  expect(loaded.kind === 'valid' && loaded.warnings).toEqual([]);
});

describe('a guard of a plan with groups', () => {
  it('gets a warning if it has nothing to watch', () => {
    const limits = `perMinute: 60, ${ofCreate('perMinute: 5')}, guard: { before: { perMinute: 60, ${ofCreate('perMinute: 5')} }, refusedAtMost: 3 %, until: 2100-01-01 }`;
    expect(warningsOf(limits)).toEqual([
      'tollgate.yaml:5:97: `plans.free.guard` has nothing to watch, because no limit of the plan is smaller than in `before`; remove the guard, or write the limits before the edit',
    ]);
  });

  it('gets no warning if it watches an operation that the group did not count before', () => {
    const limits = `perMinute: 60, ${ofCreate('perMinute: 5')}, guard: { before: { perMinute: 60, ${group('reports', 'operations: [listPets], perMinute: 5')} }, refusedAtMost: 3 %, until: 2100-01-01 }`;
    expect(warningsOf(limits)).toEqual([]);
  });

  it('is refused if it names an unknown operation, with the closest name', () => {
    const limits = `perMinute: 60, guard: { before: { perMinute: 90, ${misspelt} }, refusedAtMost: 3 %, until: 2100-01-01 }`;
    expect(problemsOf(limits)).toEqual([
      '`plans.free.guard.before.groups.reports.operations[0]` names no operation of the API document; did you mean `createPet`?',
    ]);
  });
});
