import { expect, it } from 'vitest';
import { loadSettings } from '../../gateway/config/load-settings.ts';
import { configFolder, mainDocument } from '../support/config-folder.ts';

/** The warnings about a plan with these limits. */
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

it('a warning about the limits of a key has their place', () => {
  const { file } = configFolder({
    'keys.yaml': '- { id: big, plan: enterprise, secrets: [], limits: { perSecond: 5, perMinute: 4 } }\n',
  });
  const loaded = loadSettings({ file, env: {} });
  expect(loaded.kind === 'valid' && loaded.warnings).toEqual([
    expect.stringMatching(/keys\.yaml:1:80: `\[0\]\.limits\.perMinute` \(4\) is below perSecond \(5\)/),
  ]);
});
