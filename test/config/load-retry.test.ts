import { expect, onTestFinished, test, vi } from 'vitest';
import { loadSettings } from '../../gateway/config/load-settings.ts';
import { formatProblems } from '../../gateway/config/problems/format-problems.ts';
import { watchSettings } from '../../gateway/config/watch-settings.ts';
import { defaultBounds } from '../../gateway/shared/timeouts-and-sizes.ts';
import { configFolder, mainDocument } from '../support/config-folder.ts';

test('an edit whose load failed takes effect without another edit, and the failure is reported once', async () => {
  const { file, write } = configFolder();
  // The loader cannot send a function to its thread. Loading with a function in `env` therefore fails as if the thread
  // had died.
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
  await vi.waitFor(() => expect(reports).toEqual([failure]), { timeout: 120_000 });
  // The pause is long enough for several failed attempts.
  await new Promise((resolve) => setTimeout(resolve, 500));
  delete env.BROKEN;
  await vi.waitFor(() => expect(reports).toEqual([failure, 'edited']), { timeout: 120_000 });
});

test('a load that keeps failing is retried with growing pauses', async () => {
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
  const startedMs = performance.now();
  await vi.waitFor(() => expect(tries).toBeGreaterThanOrEqual(5), { timeout: 120_000 });
  // The pauses are 100, 200, 400 and 800 ms, and a timer may fire a little early. A slow machine only makes the pauses
  // longer.
  expect(performance.now() - startedMs).toBeGreaterThan(1_300);
});
