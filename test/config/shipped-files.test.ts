import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { Deployment } from 'kubernetes-models/apps/v1/Deployment';
import { ConfigMap } from 'kubernetes-models/v1/ConfigMap';
import { Service } from 'kubernetes-models/v1/Service';
import { expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { loadSettings } from '../../gateway/config/load-settings.ts';
import { limitsOf } from '../support/limits-of.ts';

/** Variables that `npm start` sets. */
const demoVariables = {
  DEMO_RUN: 'a1b2c3',
  ...Object.fromEntries(
    ['FREE', 'PRO', 'BUSINESS', 'ENTERPRISE', 'ADMIN'].map((name, i) => [
      `DEMO_${name}_SHA256`,
      `${String(i).repeat(63)}a`,
    ]),
  ),
};

/** Loads a shipped configuration. The sample takes the place of the keys file, which is not shipped. */
function loadShipped(name: string, env: Readonly<Record<string, string>> = {}) {
  const sample = readFileSync('config/keys.sample.yaml', 'utf8');
  const drafts = new Map([[`config/keys.${name}.yaml`, sample]]);
  return loadSettings({ file: `config/${name}.yaml`, env, drafts });
}

test.each(['production', 'staging', 'local'])(
  'config/%s.yaml is valid and has the plans as specified',
  (name) => {
    const loaded = loadShipped(name, demoVariables);
    expect(loaded.kind === 'valid' && loaded.settings).toMatchObject({
      environment: name,
      basePath: '/v1',
      plans: new Map<string, unknown>([
        ['free', { limits: limitsOf({ perMinute: 60, perDay: 1_000 }) }],
        ['pro', { limits: limitsOf({ perMinute: 300, perDay: 10_000 }) }],
        ['business', { limits: limitsOf({ perMinute: 1_000, perDay: 100_000 }) }],
        ['enterprise', { isCustom: true, limits: [] }],
      ]),
    });
  },
);

test('npm start counts in memory, or in Redis when REDIS_URL is set', () => {
  const redisOf = (env: Record<string, string>) => {
    const loaded = loadShipped('local', { ...demoVariables, ...env });
    return loaded.kind === 'valid' ? loaded.settings.redis : 'invalid';
  };
  expect(redisOf({})).toBeUndefined();
  expect(redisOf({ REDIS_URL: 'redis://127.0.0.1:6379' })).toMatchObject({ prefix: 'tollgate-local' });
});

test('production and staging have different prefixes in Redis', () => {
  const prefixes = ['production', 'staging'].map((name) => {
    const loaded = loadShipped(name);
    return loaded.kind === 'valid' ? loaded.settings.redis?.prefix : 'invalid';
  });
  expect(prefixes).toEqual(['tollgate-production', 'tollgate-staging']);
});

test('staging never forwards to the backend of production', () => {
  const upstreams = ['production', 'staging'].map((name) => {
    const loaded = loadShipped(name);
    return loaded.kind === 'valid' ? loaded.settings.upstreams.map(({ url }) => url) : 'invalid';
  });
  expect(upstreams).toEqual([['http://backend:3000'], ['http://backend-staging:3000']]);
});

test('the keys of the sample are valid when uncommented', () => {
  const [, entries = ''] = readFileSync('config/keys.sample.yaml', 'utf8').split('#\n');
  const drafts = new Map([['config/keys.production.yaml', entries.replaceAll(/^# /gm, '')]]);
  const loaded = loadSettings({ file: 'config/production.yaml', env: {}, drafts });
  expect(loaded.kind === 'valid' && [...loaded.settings.keys.ids()]).toEqual(['acme', 'big-corp']);
});

test('a real keys file cannot be committed by accident, and the sample is in git', () => {
  const ignored = (file: string) => spawnSync('git', ['check-ignore', '-q', file]).status === 0;
  const files = ['keys.production.yaml', 'keys.staging.yaml', 'keys.sample.yaml'];
  expect(files.map((file) => ignored(`config/${file}`))).toEqual([true, true, false]);
});

test('X-Forwarded-For is ignored unless TRUSTED_PROXY is set', () => {
  const trustedBy = (env: Record<string, string>) => {
    const loaded = loadShipped('production', env);
    return loaded.kind === 'valid' && loaded.settings.trustedProxies;
  };
  expect(trustedBy({})).toEqual([]);
  expect(trustedBy({ TRUSTED_PROXY: '10.201.79.0/26' })).toEqual(['10.201.79.0/26']);
});

test('comments in config/ contain only commands that an operator can run', () => {
  const entries = readdirSync('config', { recursive: true, withFileTypes: true });
  // The reference of the command line begins with the ways to run a command.
  const written = entries.filter(
    (entry) => entry.isFile() && !entry.parentPath.startsWith('config/reference'),
  );
  for (const { parentPath, name } of written) {
    // Files must not show commands that begin with `tollgate`, because operators run `docker compose run --rm
    // cli …` or `npm run tollgate -- …`.
    expect(readFileSync(`${parentPath}/${name}`, 'utf8')).not.toMatch(
      /(?<!npx )\btollgate (check|keys|run|schema|init|start)\b/,
    );
  }
});

test('the Kubernetes example has valid objects and a valid configuration', async () => {
  const documents = parseAllDocuments(readFileSync('config/package/kubernetes.yaml', 'utf8'));
  const [config, deployment, service] = documents.map((document) => document.toJS());
  new ConfigMap(config).validate();
  new Deployment(deployment).validate();
  new Service(service).validate();
  expect(() => new Deployment({ ...deployment, spec: { replicas: 'two' } }).validate()).toThrow();
  const file = '/etc/tollgate/tollgate.yaml';
  const drafts = new Map([[file, config.data['tollgate.yaml']]]);
  expect(loadSettings({ file, env: { REDIS_URL: 'redis://redis:6379' }, drafts })).toMatchObject({
    kind: 'valid',
    settings: { trustedProxies: ['10.0.0.0/8'] },
  });
});
