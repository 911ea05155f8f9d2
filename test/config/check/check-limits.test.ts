import { describe, expect, it } from 'vitest';
import { loadSettings } from '../../../gateway/config/load-settings.ts';
import { apiDocument, configFolder, mainDocument } from '../../support/config-folder.ts';
import { group, misspelt, ofCreate, problemsOf, warningsOf } from './check-limits-fixture.ts';

it.each([
  [
    'perMinute: 60, perDay: 50',
    'tollgate.yaml:5:34: `plans.free.perDay` (50) is below perMinute (60), which can therefore never be used in full',
  ],
  [
    'perHour: 10, perDay: 241',
    'tollgate.yaml:5:32: `plans.free.perDay` (241) can never be reached: perHour (10) admits at most 240 in a day',
  ],
  [
    'perDay: 1, perMonth: 32',
    'tollgate.yaml:5:32: `plans.free.perMonth` (32) can never be reached: perDay (1) admits at most 31 in a month',
  ],
])('a limit without effect gets a warning with its place and the reason: %s', (limits, warning) => {
  expect(warningsOf(limits)).toEqual([warning]);
});

it.each(['perMinute: 60, perDay: 60', 'perHour: 10, perDay: 240', 'perSecond: 2, perHour: 7', 'perMonth: 1'])(
  'limits that make sense together get no warning: %s',
  (limits) => {
    expect(warningsOf(limits)).toEqual([]);
  },
);

it.each([
  [
    'perMinute: 60, perDay: 1000, trial: { perMinute: 40 }',
    'tollgate.yaml:5:47: `plans.free.trial` has no `perDay`, so it tries the plan without this limit; if the limit stays, write `perDay: 1000`',
  ],
  [
    'perDay: 9, changes: [{ from: 2000-01-01, perMinute: 3 }, { from: 2100-01-01, perHour: 7 }], trial: { perDay: 9 }',
    'tollgate.yaml:5:110: `plans.free.trial` has no `perMinute`, so it tries the plan without this limit; if the limit stays, write `perMinute: 3`',
  ],
  [
    'perDay: 9, trial: { perHour: 10, perDay: 9 }',
    'tollgate.yaml:5:52: `plans.free.trial.perDay` (9) is below perHour (10), which can therefore never be used in full',
  ],
])('a trial that probably is a mistake gets a warning: %s', (limits, warning) => {
  expect(warningsOf(limits)).toContain(warning);
});

it('a trial gets no warning if it limits all windows of the plan, or further windows', () => {
  expect(warningsOf('perMinute: 60, trial: { perSecond: 3, perMinute: 40 }')).toEqual([]);
});

it('an operation that costs more than a limit of a trial gets a warning', () => {
  const { file } = configFolder({
    'openapi.yaml': apiDocument.replace('operationId: createPet', 'operationId: createPet, x-cost: 41'),
    'tollgate.yaml': mainDocument.replace(
      'perDay: 1000',
      'perDay: 1000, trial: { perMinute: 40, perDay: 1000 }',
    ),
  });
  const loaded = loadSettings({ file, env: {} });
  expect(loaded.kind === 'valid' && loaded.warnings).toEqual([
    expect.stringMatching(
      /`plans\.free\.trial\.perMinute` \(40\) is below the cost of `createPet` \(41 units\); its requests would get 403$/,
    ),
  ]);
});

it('an operation that costs more than a limit of a plan gets a warning, unless the plan has another scope', () => {
  const withCost = (operations: string) =>
    configFolder({
      'openapi.yaml': apiDocument.replace('operationId: createPet', 'operationId: createPet, x-cost: 61'),
      'tollgate.yaml': mainDocument.replace('perDay: 1000', `perDay: 1000${operations}`),
    });
  const [warned, silent] = ['', ', operations: [listPets]'].map((operations) =>
    loadSettings({ file: withCost(operations).file, env: {} }),
  );
  expect(warned?.kind === 'valid' && warned.warnings).toEqual([
    expect.stringMatching(
      /tollgate\.yaml:5:22: `plans\.free\.perMinute` \(60\) is below the cost of `createPet` \(61 units\); its requests get 403$/,
    ),
  ]);
  expect(silent?.kind === 'valid' && silent.warnings).toEqual([]);
});

it('a warning about the limits of a key names their line', () => {
  const { file } = configFolder({
    'keys.yaml': '- { id: big, plan: enterprise, secrets: [], limits: { perSecond: 5, perMinute: 4 } }\n',
  });
  const loaded = loadSettings({ file, env: {} });
  expect(loaded.kind === 'valid' && loaded.warnings).toEqual([
    expect.stringMatching(/keys\.yaml:1:80: `\[0\]\.limits\.perMinute` \(4\) is below perSecond \(5\)/),
  ]);
});

describe('groups of operations', () => {
  const costs = (cost: number) => ({
    'openapi.yaml': apiDocument.replace('operationId: createPet', `operationId: createPet, x-cost: ${cost}`),
  });

  it.each([
    [
      `perMinute: 60, ${ofCreate('perMinute: 60')}`,
      'tollgate.yaml:5:83: `plans.free.groups.reports.perMinute` (60) can never refuse a request, because perMinute (60) of all operations refuses it first',
    ],
    [
      `perMinute: 2, ${ofCreate('perHour: 120')}`,
      'tollgate.yaml:5:80: `plans.free.groups.reports.perHour` (120) can never refuse a request, because perMinute (2) of all operations refuses it first',
    ],
    [
      `perDay: 9, ${ofCreate('perMinute: 9')}`,
      'tollgate.yaml:5:79: `plans.free.groups.reports.perMinute` (9) can never refuse a request, because perDay (9) of all operations refuses it first',
    ],
    [
      `perMinute: 60, ${ofCreate('perMinute: 5, perDay: 4')}`,
      'tollgate.yaml:5:94: `plans.free.groups.reports.perDay` (4) is below perMinute (5), which can therefore never be used in full',
    ],
    [
      `perMinute: 60, operations: [listPets], ${ofCreate('perMinute: 5')}`,
      'tollgate.yaml:5:69: `plans.free.groups.reports` can never refuse a request, because the keys of the plan may call none of its operations',
    ],
    [
      `perMinute: 60, operations: [listPets], trial: { perMinute: 50, ${ofCreate('perMinute: 5')} }`,
      'tollgate.yaml:5:93: `plans.free.trial.groups.reports` can never refuse a request, because the keys of the plan may call none of its operations',
    ],
    [
      `perMinute: 60, operations: [listPets], changes: [{ from: 2100-01-01, perMinute: 9, ${ofCreate('perMinute: 5')} }]`,
      'tollgate.yaml:5:113: `plans.free.changes[0].groups.reports` can never refuse a request, because the keys of the plan may call none of its operations',
    ],
    [
      `perMinute: 60, ${ofCreate('perMinute: 5')}, trial: { perMinute: 60 }`,
      'tollgate.yaml:5:97: `plans.free.trial` has no `groups.reports.perMinute`, so it tries the plan without this limit; if the limit stays, write `groups.reports.perMinute: 5`',
    ],
  ])('a mistake in a group gets one warning with its place and the reason: %s', (limits, warning) => {
    expect(warningsOf(limits)).toEqual([warning]);
  });

  it.each([
    ['the limit is one below the limit of the plan', `perMinute: 60, ${ofCreate('perMinute: 59')}`],
    ['the limit is one below what the plan admits', `perMinute: 2, ${ofCreate('perHour: 119')}`],
    ['the plan has no limit of this window', `perMonth: 9000, ${ofCreate('perMinute: 100')}`],
    [
      'the keys may call one of the operations',
      `perMinute: 60, operations: [listPets], ${group('reports', 'operations: [createPet, listPets], perMinute: 5')}`,
    ],
    [
      'two groups have the same operation',
      'perMinute: 60, groups: { a: { operations: [listPets], perMinute: 5 }, b: { operations: [listPets], perDay: 9 } }',
    ],
  ])('a group gets no warning if %s', (_, limits) => {
    expect(warningsOf(limits)).toEqual([]);
  });

  it('a group gets a warning if all its operations cost 0 units', () => {
    const limits = `perMinute: 60, ${ofCreate('perMinute: 5')}, trial: { perMinute: 60, ${ofCreate('perMinute: 4')} }`;
    expect(warningsOf(limits, costs(0))).toEqual([
      'tollgate.yaml:5:45: `plans.free.groups.reports` can never refuse a request, because its operations cost 0 units',
      'tollgate.yaml:5:133: `plans.free.trial.groups.reports` can never refuse a request, because its operations cost 0 units',
    ]);
  });

  it('an operation gets a warning if it costs more than the limit of its group', () => {
    expect(warningsOf(`perMinute: 60, ${ofCreate('perMinute: 7')}`, costs(7))).toEqual([]);
    expect(warningsOf(`perMinute: 60, ${ofCreate('perMinute: 6')}`, costs(7))).toEqual([
      'tollgate.yaml:5:83: `plans.free.groups.reports.perMinute` (6) is below the cost of `createPet` (7 units); its requests get 403',
    ]);
    const ofOther = group('reports', 'operations: [listPets], perMinute: 6');
    expect(warningsOf(`perMinute: 60, ${ofOther}`, costs(7))).toEqual([]);
  });

  it('a warning about a group of a key names its line', () => {
    const limits = 'limits: { perMinute: 5 }, groups: { reports: { operations: [createPet], perMinute: 5 } }';
    const keys = `- { id: big, plan: enterprise, secrets: [], ${limits} }\n`;
    expect(warningsOf('perMinute: 60', { 'keys.yaml': keys })).toEqual([
      'keys.yaml:1:128: `[0].groups.reports.perMinute` (5) can never refuse a request, because perMinute (5) of all operations refuses it first',
    ]);
  });

  it.each([
    ['groups', `perMinute: 60, ${misspelt}`],
    ['changes[0].groups', `perMinute: 60, changes: [{ from: 2100-01-01, perMinute: 9, ${misspelt} }]`],
    ['trial.groups', `perMinute: 60, trial: { perMinute: 9, ${misspelt} }`],
  ])('an unknown operation in %s of a plan is refused with the closest name', (path, limits) => {
    expect(problemsOf(limits)).toEqual([
      `\`plans.free.${path}.reports.operations[0]\` names no operation of the API document; did you mean \`createPet\`?`,
    ]);
  });

  it('an unknown operation in a group of a key is refused with the closest name', () => {
    expect(
      problemsOf('perMinute: 60', { 'keys.yaml': `- { id: a, plan: free, secrets: [], ${misspelt} }\n` }),
    ).toEqual([
      '`[0].groups.reports.operations[0]` names no operation of the API document; did you mean `createPet`?',
    ]);
  });

  it('a group without an API document may have the operation any only', () => {
    const withoutApi = (operation: string) => ({
      'tollgate.yaml': mainDocument
        .replace('api: openapi.yaml', '')
        .replace('perDay: 1000', group('reports', `operations: [${operation}], perMinute: 5`)),
    });
    expect(problemsOf('', withoutApi('any'))).toEqual([]);
    expect(problemsOf('', withoutApi('listPets'))).toEqual([
      '`plans.free.groups.reports.operations[0]` needs `api`, the API document with the operations; without it the only operation is `any`',
    ]);
  });

  it.each([
    ...['account', 'address', 'ban', 'balance', 'concurrent', 'group', 'plan', 'trial'],
    ...['second', 'minute', 'hour', 'day', 'month'],
  ])('a group may not have the name %s', (name) => {
    expect(problemsOf(`perMinute: 60, ${group(name, 'operations: [listPets], perMinute: 5')}`)).toEqual([
      `\`plans.free.groups.${name}\` must not be \`${name}\`, which has another meaning; write another name`,
    ]);
  });

  it.each(['Reports', 'a_b', 'a.b', 'a b', 'é', 'x'.repeat(41)])(
    'a group may not have the name %s',
    (name) => {
      expect(problemsOf(`perMinute: 60, ${group(name, 'operations: [listPets], perMinute: 5')}`)).toEqual([
        `\`plans.free.groups.${name}\` must be a name of 1 to 40 of the characters a-z 0-9 -`,
      ]);
    },
  );

  it('the report about a wrong name in a key does not show the name, which may be a secret', () => {
    const keys = `- { id: a, plan: free, secrets: [], ${group('Sekret_1', 'operations: [listPets], perMinute: 5')} }\n`;
    expect(problemsOf('perMinute: 60', { 'keys.yaml': keys })).toEqual([
      '`[0].groups` must have names of 1 to 40 of the characters a-z 0-9 -',
    ]);
  });

  it('a plan may have 20 groups, and not 21', () => {
    const many = (number: number) =>
      Array.from({ length: number }, (_, index) => `g${index}: { operations: [listPets], perMinute: 5 }`);
    const withGroups = (number: number) => `perMinute: 60, groups: { ${many(number).join(', ')} }`;
    expect(problemsOf(withGroups(20))).toEqual([]);
    expect(problemsOf(withGroups(21))).toEqual([
      '`plans.free.groups` must be a mapping of at most 20 groups',
    ]);
  });

  it.each([
    [
      'operations: [], perMinute: 5',
      '`plans.free.groups.reports.operations` must be a list of at least one operationId',
    ],
    ['perMinute: 5', '`plans.free.groups.reports.operations` is missing; write a list of operationIds'],
    [
      'operations: [listPets]',
      '`plans.free.groups.reports` must be a mapping with operations and at least one of perSecond, perMinute, perHour, perDay, perMonth',
    ],
  ])('an incomplete group is refused: %s', (members, problem) => {
    expect(problemsOf(`perMinute: 60, ${group('reports', members)}`)).toEqual([problem]);
  });

  it('a plan may not have groups only', () => {
    expect(problemsOf(group('reports', 'operations: [listPets], perMinute: 5'))).toEqual([
      '`plans.free` must be a mapping with at least one of perSecond, perMinute, perHour, perDay, perMonth, or the word custom',
    ]);
  });
});
