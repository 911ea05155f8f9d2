import { expect, it } from 'vitest';
import { stringify } from 'yaml';
import { loadSettings } from '../../gateway/config/load-settings.ts';
import type { Problem } from '../../gateway/config/problems/problem.ts';
import { capabilityCases } from '../support/capability-cases.ts';
import { apiDocument, configFolder } from '../support/config-folder.ts';

type Members = Readonly<Record<string, unknown>>;
const ofCapabilities = await capabilityCases();
const files = {
  'openapi.yaml': apiDocument,
  ...Object.assign({}, ...ofCapabilities.map((cases) => cases.files)),
};

/** Loads a configuration with these settings. Returns its text and its problems. */
function load(settings: Members): { readonly text: string; readonly problems: readonly Problem[] } {
  const text = stringify({
    environment: 'test',
    baseUrl: 'https://api.example.com/v1',
    upstream: { url: 'http://backend:3000' },
    plans: { free: { perMinute: 60 } },
    keys: [],
    api: 'openapi.yaml',
    ...settings,
  });
  const loaded = loadSettings({ file: configFolder({ ...files, 'tollgate.yaml': text }).file, env: {} });
  return { text, problems: loaded.kind === 'valid' ? [] : loaded.problems };
}

it.each<readonly [what: string, settings: Members, path: string, message: string]>([
  [
    'more than one process',
    { workers: 2 },
    'workers',
    '`workers` must be 1 without `redis`: in memory each worker would count limits on its own',
  ],
  [
    'the key directory',
    { keys: { directory: true } },
    'keys.directory',
    '`keys.directory` needs `redis`: without Redis, a restart would lose every key of the directory; add `redis`, or write the keys into a file',
  ],
  ...ofCapabilities.flatMap(({ needRedis = [] }) => needRedis),
])('%s needs Redis, and the report states where and why', (_, settings, path, message) => {
  const { text, problems } = load(settings);
  const field = path.split('.').at(-1);
  expect(problems.map((problem) => problem.message)).toEqual([message]);
  expect(text.split('\n')[Number(problems[0]?.line) - 1]).toMatch(new RegExp(`(^| )${field}:`));
  expect(load({ ...settings, redis: { url: 'redis://redis:6379' } }).problems).toEqual([]);
});

it('an empty URL of Redis counts as no Redis, and the report names it', () => {
  expect(load({ workers: 2, redis: { url: '' } }).problems).toMatchObject([
    {
      message: expect.stringMatching(/^`workers` must be 1 without `redis`/),
      related: { message: '`redis.url` is empty here' },
    },
  ]);
});
