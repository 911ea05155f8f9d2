import { expect, it } from 'vitest';
import { loadSettings } from '../../gateway/config/load-settings.ts';
import { formatProblems } from '../../gateway/config/problems/format-problems.ts';
import { configFolder, mainDocument } from '../support/config-folder.ts';

function load(lines: string) {
  const { file } = configFolder({ 'tollgate.yaml': `${mainDocument}${lines}\n` });
  const loaded = loadSettings({ file, env: {} });
  return loaded.kind === 'valid' ? loaded.settings.workers : formatProblems(loaded.problems);
}

const shared = 'redis: { url: redis://redis }\n';

it.each([
  ['', 1],
  ['workers: 1', 1],
  [`${shared}workers: 256`, 256],
  [`${shared}workers: auto`, 'auto'],
])('the setting %j gives its number of workers, and one worker by default', (lines, workers) => {
  expect(load(lines)).toBe(workers);
});

it.each([
  ['workers: 2', '`workers` must be 1 without `redis`'],
  ['workers: auto', '`workers` must be 1 without `redis`'],
  ["redis: { url: '' }\nworkers: 2", '`workers` must be 1 without `redis`'],
  [`${shared}workers: 0`, '`workers` must be a whole number from 1 to 256'],
  [`${shared}workers: 257`, '`workers` must be a whole number from 1 to 256'],
  [`${shared}workers: all`, '`workers` must be a whole number from 1 to 256'],
])('%j is refused with its place', (lines, message) => {
  const report = load(lines);
  expect(report).toContain(message);
  expect(report).toMatch(/tollgate\.yaml:\d+:\d+/);
});
