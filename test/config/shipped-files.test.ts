import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { loadSettings } from '../../gateway/config/load-settings.ts';
import { settingsJsonSchema } from '../../gateway/config/schema/settings-json-schema.ts';
import { limitsOf } from '../support/limits-of.ts';

const demoDigests = Object.fromEntries(
  ['FREE', 'PRO', 'BUSINESS', 'ENTERPRISE'].map((plan, i) => [
    `DEMO_${plan}_SHA256`,
    `${String(i).repeat(63)}a`,
  ]),
);

test('the committed JSON Schema is what the settings schema says (npm run --silent tollgate -- schema > config/tollgate.schema.json)', () => {
  expect(readFileSync('config/tollgate.schema.json', 'utf8')).toBe(settingsJsonSchema());
});

test.each(['production', 'staging', 'local'])(
  'config/%s.yaml is valid and has the plans as specified',
  (name) => {
    const loaded = loadSettings({ file: `config/${name}.yaml`, env: demoDigests });
    expect(loaded.kind === 'valid' && loaded.settings).toMatchObject({
      environment: name,
      basePath: '/v1',
      plans: new Map<string, unknown>([
        ['free', { limits: limitsOf({ perMinute: 60, perDay: 1_000 }) }],
        ['pro', { limits: limitsOf({ perMinute: 300, perDay: 10_000 }) }],
        ['business', { limits: limitsOf({ perMinute: 1_000, perDay: 100_000 }) }],
        ['enterprise', { limits: 'custom' }],
      ]),
    });
  },
);

test('npm start counts in memory, or in Redis when REDIS_URL is set', () => {
  const redisOf = (env: Record<string, string>) => {
    const loaded = loadSettings({ file: 'config/local.yaml', env: { ...demoDigests, ...env } });
    return loaded.kind === 'valid' ? loaded.settings.redis : 'invalid';
  };
  expect(redisOf({})).toBeUndefined();
  expect(redisOf({ REDIS_URL: 'redis://127.0.0.1:6379' })).toMatchObject({ prefix: 'tollgate-local' });
});

test('production and staging count under prefixes of their own', () => {
  const prefixes = ['production', 'staging'].map((name) => {
    const loaded = loadSettings({ file: `config/${name}.yaml`, env: {} });
    return loaded.kind === 'valid' ? loaded.settings.redis?.prefix : 'invalid';
  });
  expect(prefixes).toEqual(['tollgate-production', 'tollgate-staging']);
});

test('staging never forwards to the backend of production', () => {
  const upstreams = ['production', 'staging'].map((name) => {
    const loaded = loadSettings({ file: `config/${name}.yaml`, env: {} });
    return loaded.kind === 'valid' ? loaded.settings.upstreams.map(({ url }) => url) : 'invalid';
  });
  expect(upstreams).toEqual([['http://backend:3000'], ['http://backend-staging:3000']]);
});

test('a comment names no command that an operator does not have', () => {
  for (const name of readdirSync('config')) {
    // It is run as `docker compose run --rm cli …` or `npm run tollgate -- …`.
    expect(readFileSync(`config/${name}`, 'utf8')).not.toMatch(/\btollgate (check|keys|run|schema)\b/);
  }
});
