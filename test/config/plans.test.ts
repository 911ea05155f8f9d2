import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { loadSettings } from '../../gateway/config/load-settings.ts';
import { plansAt } from '../../gateway/keys/plans/plans.ts';
import { configFolder } from '../support/config-folder.ts';
import { limitsOf } from '../support/limits-of.ts';
import { isValidForEditors, keyFields, load, withPlan } from './plans-fixture.ts';

const own = 'limits: { perDay: 7 }';

test.each([
  ['limits of windows', '{ perHour: 5 }', '', { limits: limitsOf({ perHour: 5 }) }],
  ['limits, and the word that says so', '{ custom: false, perHour: 5 }', '', { isCustom: false }],
  [
    'limits and operations',
    '{ perHour: 5, operations: [getPet, getPet] }',
    '',
    { limits: limitsOf({ perHour: 5 }), operations: ['getPet'] },
  ],
  [
    'changes at instants, the last of which has taken effect',
    '{ perHour: 5, changes: [{ from: 1969-12-31, perHour: 6 }, { from: 1970-01-01, perDay: 7 }, { from: 2100-01-01, perDay: 8 }] }',
    '',
    { limits: limitsOf({ perDay: 7 }) },
  ],
  [
    'a trial',
    '{ perHour: 5, trial: { perMinute: 2, perHour: 9 } }',
    '',
    { limits: limitsOf({ perHour: 5 }), trial: limitsOf({ perMinute: 2, perHour: 9 }) },
  ],
  ['the word custom', 'custom', own, { isCustom: true, limits: [], operations: undefined }],
  ['custom as a member', '{ custom: true }', own, { isCustom: true, limits: [], operations: undefined }],
  ['custom by a variable', '\n    custom: $' + '{CUSTOM}', own, { isCustom: true, limits: [] }],
  [
    'custom with operations',
    '{ custom: true, operations: [getPet] }',
    own,
    { isCustom: true, limits: [], operations: ['getPet'] },
  ],
])('a plan may have %s', (_, written, key, plan) => {
  const settings = load(written, key);
  if (typeof settings !== 'object') throw new Error(settings);
  const made = plansAt(settings, 0).get('enterprise');
  expect(made).toMatchObject({ name: 'enterprise', isCustom: key !== '', ...plan });
  expect(settings.keys.get('acme')).toEqual(
    key === ''
      ? undefined
      : {
          id: 'acme',
          plan: 'enterprise',
          limits: limitsOf({ perDay: 7 }),
          ...(made?.operations && { operations: made.operations }),
          disabled: false,
        },
  );
  expect(isValidForEditors(parse(withPlan(written)))).toBe(true);
});

const aPlan =
  'a mapping with at least one of perSecond, perMinute, perHour, perDay, perMonth, or the word custom';

test.each([
  ['another word', 'costum', `6:15: \`plans.enterprise\` must be ${aPlan}`],
  ['nothing', '', `6:3: \`plans.enterprise\` must be ${aPlan}`],
  ['an empty mapping', '{}', `6:15: \`plans.enterprise\` must be ${aPlan}`],
  ['operations alone', '{ operations: [getPet] }', `6:15: \`plans.enterprise\` must be ${aPlan}`],
  ['custom: false alone', '{ custom: false }', `6:15: \`plans.enterprise\` must be ${aPlan}`],
  ['custom: yes', '{ custom: yes }', '6:25: `plans.enterprise.custom` must be true or false'],
  [
    'limits on a custom plan',
    '{ custom: true, perDay: 9 }',
    '6:39: `plans.enterprise.perDay` is not for a custom plan, whose keys state their own limits; remove it, or `custom`',
  ],
  [
    'changes on a custom plan',
    '{ custom: true, changes: [{ from: 2100-01-01, perDay: 9 }] }',
    '6:40: `plans.enterprise.changes` is not for a custom plan, whose keys state their own limits; remove it, or `custom`',
  ],
  [
    'a trial on a custom plan',
    '{ custom: true, trial: { perDay: 9 } }',
    '6:38: `plans.enterprise.trial` is not for a custom plan, whose keys state their own limits; remove it, or `custom`',
  ],
  [
    'a trial without limits',
    '{ perDay: 9, trial: {} }',
    `6:35: \`plans.enterprise.trial\` must be a mapping with ${keyFields}`,
  ],
  [
    'no change',
    '{ perDay: 9, changes: [] }',
    '6:37: `plans.enterprise.changes` must be a list of at least one mapping with from and limits',
  ],
  [
    'a change without limits',
    '{ perDay: 9, changes: [{ from: 2100-01-01 }] }',
    `6:38: \`plans.enterprise.changes[0]\` must be a mapping with from and ${keyFields}`,
  ],
  [
    'a member that is unknown',
    '{ custom: true, operation: [getPet] }',
    '6:31: the field `operation` is unknown; did you mean `operations`?',
  ],
])('a plan of %s is reported with its place and a correction', (_, written, report) => {
  expect(load(written)).toBe(`tollgate.yaml:${report}`);
  expect(isValidForEditors(parse(withPlan(written)))).toBe(false);
});

test.each([
  [
    'an operation that does not exist, on a custom plan',
    '{ custom: true, operations: [getPets] }',
    own,
    'tollgate.yaml:6:44: `plans.enterprise.operations[0]` names no operation of the API document; did you mean `getPet`?',
  ],
  [
    'a key without limits on a custom plan',
    '{ custom: true }',
    'disabled: true',
    `keys.yaml:1:21: \`[0]\` is on a custom plan; write its \`limits: { … }\` with ${keyFields}`,
  ],
  [
    'limits of a key on a plan with its own',
    '{ custom: false, perDay: 9 }',
    own,
    'keys.yaml:1:46: `[0].limits` is for custom plans only; remove it or choose a custom plan',
  ],
])('%s is reported with its place and a correction', (_, written, key, report) => {
  expect(load(written, key)).toBe(report);
});

test('changes that are not in the order of their instants are reported', () => {
  const entries = '[{ from: 2100-01-01T00:00:00Z, perDay: 9 }, { from: 2100-01-01, perDay: 8 }]';
  expect(load(`{ perDay: 9, changes: ${entries} }`)).toBe(
    'tollgate.yaml:6:89: `plans.enterprise.changes[1].from` must be later than the `from` of the entry before; sort the entries by `from`',
  );
});

test('the check explains the last change of a plan that has taken effect', () => {
  const entries =
    '[{ from: 2001-01-01, perDay: 9 }, { from: 2002-01-01, perDay: 8 }, { from: 2100-01-01, perDay: 7 }]';
  const folder = configFolder({ 'tollgate.yaml': withPlan(`{ perDay: 9, changes: ${entries} }`) });
  const loaded = loadSettings({ file: folder.file, env: {} });
  expect(loaded.kind === 'valid' && loaded.warnings).toEqual([
    `${folder.file}:6:71: \`plans.enterprise.changes[1]\` has applied since 2002-01-01T00:00:00Z; write its limits as the limits of the plan, and remove the first 2 entries`,
  ]);
});
