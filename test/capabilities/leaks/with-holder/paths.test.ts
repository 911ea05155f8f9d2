import { expect, test } from 'vitest';
import { loadSettings } from '../../../../gateway/config/load-settings.ts';
import { configFolder, mainDocument } from '../../../support/config-folder.ts';
import { makeReporter } from '../../../support/leak-report.ts';

test('the path of the limits conflicts with the path for reports of leaked secrets', () => {
  const lines =
    'leaksPath: /limits\nlimitsPath: /limits\nleaks: { onLeak: report, github: { keysFile: github.json } }\n';
  const { file } = configFolder({
    'tollgate.yaml': mainDocument + lines,
    'github.json': makeReporter().publicKeys,
  });
  const loaded = loadSettings({ file, env: {} });
  expect(loaded.kind === 'invalid' && loaded.problems.map(({ message }) => message)).toEqual([
    '`limitsPath` is also a path of `leaksPath`; write another path',
  ]);
});
