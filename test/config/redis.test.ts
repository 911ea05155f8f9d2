import { describe, expect, it } from 'vitest';
import { loadSettings } from '../../gateway/config/load-settings.ts';
import { formatProblems } from '../../gateway/config/problems/format-problems.ts';
import { restartNeeded } from '../../gateway/config/watch-settings.ts';
import { redisServerOf } from '../../gateway/shared/addresses/redis-url.ts';
import { createAuthority } from '../support/certificates.ts';
import { configFolder, mainDocument } from '../support/config-folder.ts';

const authority = createAuthority();
const own = authority.issue();
const files = {
  ...{ 'ca.pem': authority.cert, 'cert.pem': own.cert, 'key.pem': own.key },
  ...{ password: 'open sesame\n', 'sentinel-password': 'abracadabra', empty: '\n' },
};

function load(redis: string, overrides: Readonly<Record<string, string>> = {}) {
  const folder = configFolder({
    'tollgate.yaml': `${mainDocument}redis: ${redis}\n`,
    ...files,
    ...overrides,
  });
  const loaded = loadSettings({ file: folder.file, env: {} });
  const report = loaded.kind === 'invalid' ? formatProblems(loaded.problems) : '';
  return { loaded, report: report.replaceAll(folder.pathOf(''), ''), folder };
}

function settingsOf(redis: string, overrides?: Readonly<Record<string, string>>) {
  const { loaded, report } = load(redis, overrides);
  if (loaded.kind === 'invalid') throw new Error(report);
  return loaded.settings;
}

it.each([
  ['redis://:p%2Fa%40s%25@r:7', { host: 'r', port: 7, username: undefined, password: 'p/a@s%' }],
  [
    'rediss://me:word@[::1]/3',
    { isTls: true, host: '::1', port: 6379, username: 'me', password: 'word', db: 3 },
  ],
  ['redis://r?password=a%2Fb&db=2&family=6', { host: 'r', password: 'a/b', db: 2, family: 6 }],
  ['redis://me@r', { username: 'me', password: '' }],
])('the connection reads %s', (url, expected) => {
  expect(settingsOf(`{ url: "${url}" }`).redis?.url).toBe(url);
  expect(redisServerOf(url)).toMatchObject(expected);
});

const common = { prefix: 'tollgate-test', onFailure: 'local' };

describe('Redis is', () => {
  it.each([
    ['one server', '{ url: redis://r:6379/2 }', { url: 'redis://r:6379/2' }],
    ['a Cluster', '{ cluster: [redis://a:7000, redis://b] }', { cluster: ['redis://a:7000', 'redis://b'] }],
    [
      'the master of Sentinels',
      '{ sentinel: { name: main, hosts: [a:26379, "[::1]:26379"] } }',
      { sentinel: { name: 'main', hosts: ['a:26379', '[::1]:26379'] } },
    ],
    [
      'a server over TLS, with a user in the URL and a password in a file',
      '{ url: rediss://me@r:6380, passwordFile: password, ca: ca.pem }',
      { url: 'rediss://me@r:6380', password: 'open sesame', tls: { ca: authority.cert } },
    ],
    [
      'a Cluster over TLS, with a user and a client certificate',
      '{ cluster: [rediss://a], username: me, passwordFile: password, cert: cert.pem, key: key.pem }',
      { cluster: ['rediss://a'], username: 'me', password: 'open sesame', tls: { clientCertificate: own } },
    ],
    [
      'the master of Sentinels that have passwords of their own',
      '{ sentinel: { name: main, hosts: [a:1], tls: true, username: s, passwordFile: sentinel-password }, passwordFile: password }',
      {
        sentinel: { name: 'main', hosts: ['a:1'], username: 's', password: 'abracadabra' },
        password: 'open sesame',
        tls: {},
      },
    ],
  ])('%s', (_what, redis, expected) => {
    expect(settingsOf(redis).redis).toEqual({ ...common, ...expected });
  });

  it('the memory store with an empty url', () => {
    expect(settingsOf('{ url: "" }').redis).toBeUndefined();
  });
});

it.each([
  ['{ prefix: p }', '`redis` needs one of `url`, `cluster` and `sentinel`'],
  ['{ url: redis://r, cluster: [redis://a] }', '`redis.cluster` and `redis.url` exclude each other'],
  ['{ cluster: [] }', '`redis.cluster` must be a list with at least one URL'],
  [
    '{ cluster: [redis://me:word@a] }',
    'must be a URL such as redis://redis-1:6379, without user, password and database',
  ],
  ['{ cluster: [redis://a, rediss://b] }', '`redis.cluster` mixes redis:// and rediss://'],
  ['{ sentinel: { hosts: [a:1] } }', '`redis.sentinel.name` is missing'],
  ['{ sentinel: { name: main, hosts: [a] } }', 'must be host and port such as sentinel-1:26379'],
  ['{ sentinel: { name: main, hosts: [a:1], username: me } }', '`username` needs `passwordFile` beside it'],
  ['{ url: redis://r, username: me }', '`redis.username` needs `passwordFile` beside it'],
  [
    '{ url: redis://a:b@r, passwordFile: password }',
    '`redis.passwordFile` contradicts the password in `redis.url`',
  ],
  [
    '{ url: redis://a@r, username: b, passwordFile: password }',
    '`redis.username` contradicts the user in `redis.url`',
  ],
  ['{ url: redis://r, ca: ca.pem }', '`redis.ca` is for TLS and needs `url` with rediss://'],
  [
    '{ cluster: [redis://r], cert: cert.pem, key: key.pem }',
    '`redis.cert` is for TLS and needs `cluster` with rediss://',
  ],
  [
    '{ sentinel: { name: main, hosts: [a:1] }, ca: ca.pem }',
    '`redis.ca` is for TLS and needs `sentinel.tls: true`',
  ],
  ['{ url: rediss://r, cert: cert.pem }', '`cert` needs `key` beside it'],
  ['{ url: rediss://r, ca: key.pem }', 'this file has no certificate in PEM'],
  [
    '{ url: redis://r:99999, passwordFile: password }',
    '`redis.url` must be a URL such as redis://redis:6379, with a port from 1 to 65535; in a user or a password, write %2F for /',
  ],
  [
    '{ cluster: [redis://r:7000, redis://r:99999] }',
    '`redis.cluster[1]` must be a URL such as redis://redis:6379, with a port from 1 to 65535',
  ],
  ['{ cluster: [redis://a:12/c@r] }', 'write `username` and `passwordFile` beside `cluster`'],
  [
    '{ sentinel: { name: main, hosts: [a:99999] } }',
    '`redis.sentinel.hosts[0]` must be host and port such as sentinel-1:26379, with a port from 1 to 65535',
  ],
  ['{ sentinel: { name: main, hosts: ["[::1::1]:1"] } }', '`redis.sentinel.hosts[0]` must be host and port'],
  ['{ url: redis://r, passwordFile: nowhere }', 'this file does not exist'],
  ['{ url: redis://r, passwordFile: empty }', 'this file has no password'],
])('%s is refused, and the report says why', (redis, message) => {
  const { report } = load(redis);
  expect(report).toContain(message);
  expect(report).not.toMatch(/open sesame|me:word|a:b@/);
});

it.each([
  'redis://r:99999',
  'redis://r:0',
  'redis://:pa/ss@r:6379',
  'redis://a:b/c@r',
  'redis://a:12/c@r',
  'redis://a:b@r/c@d',
  'redis://:a%@r',
  'redis://:a%ff@r',
  '"redis://a:1?b@r"',
  '"redis://a:1#b@r"',
  'redis://r/two',
  'redis://r?lazyConnect=true',
  'redis://r?family=5',
  'redis://',
])('the URL %s is refused, and the report names the setting and the remedy', (url) => {
  for (const beside of ['', ', passwordFile: password']) {
    expect(load(`{ url: ${url}${beside} }`).report).toMatch(
      /`redis\.url` (?:may|must|has) .*%2F for \/.*`passwordFile`/,
    );
  }
});

it('another Redis password or certificate takes effect at the next start, and changes the version', () => {
  const redis = '{ url: rediss://me@r, passwordFile: password, ca: ca.pem }';
  const before = settingsOf(redis);
  for (const changed of [{ password: 'another\n' }, { 'ca.pem': createAuthority().cert }]) {
    const after = settingsOf(redis, changed);
    expect(restartNeeded(before, after)).toEqual(['redis']);
    expect(after.version).not.toBe(before.version);
  }
});
