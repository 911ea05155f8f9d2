import { expect, onTestFinished, test, vi } from 'vitest';
import { loadSettings } from '../../gateway/config/load-settings.ts';
import { formatProblems } from '../../gateway/config/problems/format-problems.ts';
import { watchSettings } from '../../gateway/config/watch-settings.ts';
import { defaultBounds } from '../../gateway/timeouts-and-sizes.ts';
import { configFolder, mainDocument } from '../support/config-folder.ts';

test('an edit whose load failed takes effect without another edit, and the failure is reported once', async () => {
  const { file, write } = configFolder();
  // A value that cannot be sent to the thread makes a load throw, as a thread that dies does.
  const env: Record<string, string> = { BROKEN: (() => {}) as unknown as string };
  const reports: string[] = [];
  const watch = watchSettings({
    file,
    env,
    initial: loadSettings({ file, env: {} }),
    bounds: { ...defaultBounds, configPollIntervalMs: 20, configRetryPauseMs: 100 },
    onValid: ({ settings }) => reports.push(settings.environment),
    onInvalid: ({ problems }) => reports.push(formatProblems(problems)),
  });
  onTestFinished(() => watch.stop());

  write('tollgate.yaml', mainDocument.replace('test', 'edited'));
  const failure = expect.stringMatching(/^\S+:1:1: the configuration cannot be loaded: /);
  await vi.waitFor(() => expect(reports).toEqual([failure]), { timeout: 15_000 });
  // Long enough for several failed loads.
  await new Promise((resolve) => setTimeout(resolve, 500));
  delete env.BROKEN;
  await vi.waitFor(() => expect(reports).toEqual([failure, 'edited']), { timeout: 15_000 });
});

test('a load that keeps failing is retried less and less often', async () => {
  const { file, write } = configFolder();
  let tries = 0;
  const env = {
    get BROKEN() {
      tries += 1;
      return (() => {}) as unknown as string;
    },
  };
  const ignore = () => {};
  const initial = loadSettings({ file, env: {} });
  const watch = watchSettings({
    file,
    env,
    initial,
    bounds: { ...defaultBounds, configPollIntervalMs: 5, configRetryPauseMs: 100 },
    onValid: ignore,
    onInvalid: ignore,
  });
  onTestFinished(() => watch.stop());

  write('tollgate.yaml', mainDocument.replace('test', 'edited'));
  await vi.waitFor(() => expect(tries).toBeGreaterThan(0), { timeout: 15_000 });
  await new Promise((resolve) => setTimeout(resolve, 1_600));
  // The pauses are 100, 200, 400 and 800 ms. With pauses of 100 ms there would be fifteen tries.
  expect(tries).toBeGreaterThan(1);
  expect(tries).toBeLessThanOrEqual(6);
});
