import { expect, onTestFinished, test, vi } from 'vitest';
import { loadSettings } from '../../gateway/config/load-settings.ts';
import { formatProblems } from '../../gateway/config/problems/format-problems.ts';
import { watchSettings } from '../../gateway/config/watch-settings.ts';
import { defaultBounds } from '../../gateway/shared/timeouts-and-sizes.ts';
import { configFolder, mainDocument } from '../support/config-folder.ts';

test('a text that needs more memory than its thread may use is reported, and its repair takes effect at once', async () => {
  const { file, write } = configFolder();
  const reports: string[] = [];
  const watch = watchSettings({
    file,
    env: {},
    initial: loadSettings({ file, env: {} }),
    bounds: {
      ...defaultBounds,
      configPollIntervalMs: 20,
      configThreadHeapMebibytes: 40,
      configRetryPauseMs: 600_000,
    },
    onValid: ({ settings }) => reports.push(settings.environment),
    onInvalid: ({ problems }) => reports.push(formatProblems(problems)),
  });
  onTestFinished(() => watch.stop());

  write('tollgate.yaml', mainDocument + 'x: y\n'.repeat(400_000));
  const failure = expect.stringMatching(/^\S+:1:1: the configuration cannot be loaded: .* memory/);
  await vi.waitFor(() => expect(reports).toEqual([failure]), { timeout: 120_000 });
  write('tollgate.yaml', mainDocument.replace('test', 'edited'));
  await vi.waitFor(() => expect(reports).toEqual([failure, 'edited']), { timeout: 120_000 });
});
