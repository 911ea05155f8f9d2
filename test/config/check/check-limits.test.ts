import { expect, it } from 'vitest';
import { loadSettings } from '../../../gateway/config/load-settings.ts';
import { apiDocument, configFolder, mainDocument } from '../../support/config-folder.ts';

/** The warnings about a plan with the given limits. */
function warningsOf(limits: string): readonly string[] {
  const { file } = configFolder({
    'tollgate.yaml': mainDocument.replace('perMinute: 60, perDay: 1000', limits),
  });
  const loaded = loadSettings({ file, env: {} });
  if (loaded.kind === 'invalid') throw new Error(loaded.problems.map(({ message }) => message).join('\n'));
  return loaded.warnings.map((warning) => warning.slice(warning.indexOf('tollgate.yaml')));
}

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
