import { appendFileSync, mkdirSync, renameSync, rmSync, symlinkSync, utimesSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test, vi } from 'vitest';
import { type LoadOptions, loadSettings } from '../../gateway/config/load-settings.ts';
import { createSettingsLoader } from '../../gateway/config/loader/settings-loader.ts';
import {
  applyMessage,
  fullMessage,
  type SettingsMessage,
} from '../../gateway/config/loader/settings-message.ts';
import { formatProblems } from '../../gateway/config/problems/format-problems.ts';
import { watchSettings } from '../../gateway/config/watch-settings.ts';
import type { Settings } from '../../gateway/shared/model.ts';
import { defaultBounds } from '../../gateway/shared/timeouts-and-sizes.ts';
import {
  apiDocument,
  type ConfigFolder,
  configFolder,
  keysDocument,
  mainDocument,
} from '../support/config-folder.ts';
import { keysView } from '../support/loaded-view.ts';
import { sharedLoader } from '../support/shared-loader.ts';
import { until } from '../support/until.ts';

/**
 * Watches a folder and collects the reports. After a valid load, the report is the Free plan's minute limit. After
 * an invalid load, the report is the first problem. `slow` collects the files that take long to load, and
 * `abandoned` is the number of cancelled attempts.
 */
function watch({ file }: Pick<ConfigFolder, 'file'>, intervalMs = 40, slowAfterMs?: number) {
  const reports: (number | string)[] = [];
  const slow: string[] = [];
  const read: string[] = [];
  let unfinished = 0;
  // A cancellation ends the thread, so a test with cancellations does not use the shared thread.
  const loader = slowAfterMs === undefined ? sharedLoader : createSettingsLoader(defaultBounds);
  const initial = loadSettings({ file, env: {} });
  // The settings of a simulated second process, which applies every message.
  let relayed = initial.kind === 'valid' ? copied(fullMessage(initial.settings)) : undefined;
  const started = watchSettings({
    file,
    env: {},
    initial,
    loader: {
      async load(options, base) {
        unfinished += 1;
        return loader.load({ ...options, onRead: collected(options.onRead) }, base).finally(() => {
          unfinished -= 1;
        });
      },
      close: () => loader.close(),
    },
    bounds: {
      ...defaultBounds,
      configPollIntervalMs: intervalMs,
      configLoadSlowMs: slowAfterMs ?? 60_000,
      configOutdatedLoadMs: slowAfterMs ?? 60_000,
      ...(slowAfterMs === undefined && { configOutdatedParseMs: 60_000 }),
    },
    onSlow: (slowFile) => slow.push(slowFile),
    onValid: ({ settings }, message) => {
      relayed = copied(message, relayed);
      expect({ ...relayed, keys: keysView(relayed.keys) }).toEqual({
        ...settings,
        keys: keysView(settings.keys),
      });
      const limits = settings.plans.get('free')?.limits;
      reports.push(Array.isArray(limits) ? limits[0].max : 'custom');
    },
    onInvalid: ({ problems }) => reports.push(formatProblems(problems).split('\n', 1)[0] ?? ''),
  });
  onTestFinished(() => started.stop());
  /**
   * Waits until the loader parses the new, long text of a file. The first attempt after the edit does not parse
   * the text, because the text may be half written.
   */
  const parsing = async (longFile: string) => {
    const before = read.filter((name) => name === longFile).length;
    await until(
      'a load parses the text',
      () => read.filter((name) => name === longFile).length >= before + 2,
    );
  };
  // The promise of a cancelled attempt never settles, so `unfinished` still counts such an attempt.
  return { reports, slow, parsing, abandoned: () => unfinished, stop: started.stop };

  function collected(onRead: LoadOptions['onRead']) {
    return (name: string, digest: string) => {
      read.push(name);
      onRead?.(name, digest);
    };
  }
}

function copied(message: SettingsMessage, before?: Settings): Settings {
  return applyMessage(before, structuredClone(message));
}

const withLimit = (perMinute: number) => mainDocument.replace('perMinute: 60', `perMinute: ${perMinute}`);

async function reported(reports: readonly unknown[], expected: readonly unknown[]): Promise<void> {
  await vi.waitFor(() => expect(reports).toEqual(expected), { timeout: 120_000, interval: 20 });
}

/** A text that takes seconds to parse and is then refused. */
const slowText = Array.from({ length: 200_000 }, (_, i) => `unknown${i}: x\n`).join('');

/** Waits long enough for several checks of the files and for the loading, so that no report can come later. */
const quiet = () => sleep(500);

test('each saved edit is reported once', async () => {
  const folder = configFolder();
  const { reports } = watch(folder);
  folder.write('tollgate.yaml', withLimit(61));
  await reported(reports, [61]);
  folder.write('tollgate.yaml', withLimit(62));
  await reported(reports, [61, 62]);
  await quiet();
  expect(reports).toEqual([61, 62]);
});

test('a touched file with the same content is not reported', async () => {
  const folder = configFolder();
  const { reports } = watch(folder);
  utimesSync(folder.file, new Date(), new Date(0));
  folder.write('keys.yaml', keysDocument);
  await quiet();
  expect(reports).toEqual([]);
});

test('an edit of the keys or of the API document is reported', async () => {
  const folder = configFolder();
  const { reports } = watch(folder);
  appendFileSync(folder.pathOf('keys.yaml'), '# more\n');
  await reported(reports, [60]);
  folder.write('openapi.yaml', `${apiDocument}# more\n`);
  await reported(reports, [60, 60]);
});

test('an edit of equal length within the same time stamp is seen', async () => {
  const folder = configFolder();
  const stamp = new Date();
  utimesSync(folder.file, stamp, stamp);
  const { reports } = watch(folder);
  folder.write('tollgate.yaml', withLimit(99));
  utimesSync(folder.file, stamp, stamp);
  await reported(reports, [99]);
});

test('an editor that replaces the file by renaming is seen', async () => {
  const folder = configFolder();
  const { reports } = watch(folder);
  folder.write('tollgate.yaml.tmp', withLimit(61));
  renameSync(folder.pathOf('tollgate.yaml.tmp'), folder.file);
  await reported(reports, [61]);
});

test('the symlink swap of a Kubernetes ConfigMap is seen', async () => {
  const folder = configFolder();
  for (const [version, limit] of [
    ['..v1', 60],
    ['..v2', 61],
  ] as const) {
    mkdirSync(folder.pathOf(version));
    folder.write(`${version}/main.yaml`, withLimit(limit));
    folder.write(`${version}/keys.yaml`, keysDocument);
    folder.write(`${version}/openapi.yaml`, apiDocument);
  }
  symlinkSync('..v1', folder.pathOf('..data'));
  for (const name of ['main.yaml', 'keys.yaml', 'openapi.yaml']) {
    rmSync(folder.pathOf(name), { force: true });
    symlinkSync(`..data/${name}`, folder.pathOf(name));
  }
  const { reports } = watch({ file: folder.pathOf('main.yaml') });
  symlinkSync('..v2', folder.pathOf('..data_tmp'));
  renameSync(folder.pathOf('..data_tmp'), folder.pathOf('..data'));
  await reported(reports, [61]);
});

test('a broken edit is reported once with its place, and its repair brings the settings back', async () => {
  const folder = configFolder();
  const { reports } = watch(folder);
  folder.write('tollgate.yaml', withLimit(-1));
  const problem = `${folder.file}:5:22: \`plans.free.perMinute\` must be a whole number from 1 to 999999999999999`;
  await reported(reports, [problem]);
  utimesSync(folder.file, new Date(), new Date());
  await quiet();
  folder.write('tollgate.yaml', mainDocument);
  await reported(reports, [problem, 60]);
});

test('a file that is being written is not loaded, though every part of it is valid', async () => {
  const folder = configFolder();
  const { reports } = watch(folder, 200);
  // The test appends a piece to the keys file every 10 ms, and the files are checked every 200 ms. Two checks find the
  // same content only when the keys file is complete.
  const pieces = Array.from({ length: 50 }, (_, i) => `- { id: k${i}, plan: free, secrets: [] }\n`);
  folder.write('keys.yaml', '');
  for (const piece of pieces) {
    appendFileSync(folder.pathOf('keys.yaml'), piece);
    await sleep(10);
  }
  await reported(reports, [60]);
  await quiet();
  expect(reports).toEqual([60]);
});

test('edits take effect while they continue, even if they are faster than the start of a thread', async () => {
  const folder = configFolder();
  const { reports } = watch(folder);
  let limit = 100;
  // The edits continue until some of them take effect. The files never stay unchanged for long.
  while (limit < 120 || reports.length <= 3) {
    limit += 1;
    folder.write('tollgate.yaml', withLimit(limit));
    await sleep(150);
  }
  await vi.waitFor(() => expect(reports.at(-1)).toBe(limit), { timeout: 120_000, interval: 20 });
});

test('a file that the configuration begins to use while it is being written is accepted when it is complete', async () => {
  const folder = configFolder();
  const { reports } = watch(folder, 200);
  folder.write('other.yaml', '');
  folder.write('tollgate.yaml', mainDocument.replace('keys.yaml', 'other.yaml'));
  for (let i = 0; i < 100; i++) {
    appendFileSync(folder.pathOf('other.yaml'), `- { id: k${i}, plan: free, secrets: [] }\n`);
    await sleep(10);
  }
  await reported(reports, [60]);
  await quiet();
  expect(reports).toEqual([60]);
});

test('a deleted file is invalid until it is back', async () => {
  const folder = configFolder();
  const { reports } = watch(folder);
  rmSync(folder.pathOf('keys.yaml'));
  const problem = `${folder.file}:7:7: this file does not exist: the command \`keys create\` makes it with the first key; an empty file will also do`;
  await reported(reports, [problem]);
  folder.write('keys.yaml', keysDocument);
  await reported(reports, [problem, 60]);
});

test('a file is watched as soon as the configuration uses it', async () => {
  const folder = configFolder();
  const { reports } = watch(folder);
  folder.write('other.yaml', keysDocument);
  folder.write('tollgate.yaml', mainDocument.replace('keys.yaml', 'other.yaml'));
  await reported(reports, [60]);
  folder.write('other.yaml', '- { id: a, plan: fre, secrets: [] }\n');
  // The gateway rejects this edit, but still revokes the removed key. The revocation causes the second report.
  await reported(reports, [
    60,
    60,
    `${folder.pathOf('other.yaml')}:1:18: \`[0].plan\` names no plan; did you mean \`free\`?`,
  ]);
});

test('nothing is reported after stop', async () => {
  const folder = configFolder();
  const { reports, stop } = watch(folder);
  folder.write('tollgate.yaml', withLimit(61));
  stop();
  await quiet();
  expect(reports).toEqual([]);
});

test('a load that takes long is abandoned for the repaired text, and never reported', async () => {
  const folder = configFolder();
  const { reports, slow, parsing, abandoned } = watch(folder, 40, 300);
  folder.write('tollgate.yaml', mainDocument + slowText);
  await parsing(folder.file);
  await until('it is reported as slow', () => slow.at(-1) === folder.file);
  folder.write('tollgate.yaml', withLimit(61));
  await reported(reports, [61]);
  expect(abandoned()).toBe(1);
});

test('a load that takes long is abandoned when the present text returns, and the next edit takes effect', async () => {
  const folder = configFolder();
  const { reports, parsing, abandoned } = watch(folder, 40, 300);
  folder.write('tollgate.yaml', mainDocument + slowText);
  await parsing(folder.file);
  folder.write('tollgate.yaml', mainDocument);
  await quiet();
  folder.write('tollgate.yaml', withLimit(61));
  await reported(reports, [61]);
  expect(abandoned()).toBe(1);
});

test('a load that takes long is also abandoned when its text is in a file that is new to the configuration', async () => {
  const folder = configFolder();
  const { reports, parsing, abandoned } = watch(folder, 40, 300);
  // A keys file is parsed faster than the main file.
  folder.write('other.yaml', slowText.repeat(8));
  folder.write('tollgate.yaml', withLimit(61).replace('keys.yaml', 'other.yaml'));
  await parsing(folder.pathOf('other.yaml'));
  folder.write('other.yaml', keysDocument);
  await reported(reports, [61]);
  expect(abandoned()).toBe(1);
});

test('a load that takes long is reported once, and not again when it ends', async () => {
  const folder = configFolder();
  const { reports, slow } = watch(folder, 40, 1);
  folder.write('tollgate.yaml', withLimit(61));
  await reported(reports, [61]);
  await quiet();
  expect(slow).toHaveLength(1);
});

test('continuous edits take effect even if each load takes long', async () => {
  const folder = configFolder();
  const { reports } = watch(folder, 40, 50);
  const plans = Array.from({ length: 2_500 }, (_, i) => `  plan${i}: custom\n`).join('');
  let limit = 100;
  while (reports.length === 0) {
    limit += 1;
    folder.write('tollgate.yaml', withLimit(limit).replace('plans:\n', `plans:\n${plans}`));
    await sleep(100);
  }
  await vi.waitFor(() => expect(reports.at(-1)).toBe(limit), { timeout: 120_000, interval: 20 });
});
