import { expect, test } from 'vitest';
import { configSizes } from '../../gateway/config/config-sizes.ts';
import { loadSettings } from '../../gateway/config/load-settings.ts';
import { formatProblems } from '../../gateway/config/problems/format-problems.ts';
import { configFolder, digestOf, mainDocument } from '../support/config-folder.ts';

function load(admin: string) {
  return loadSettings({ file: configFolder({ 'tollgate.yaml': `${mainDocument}${admin}\n` }).file, env: {} });
}

function reportOn(admin: string): string {
  const loaded = load(admin);
  return loaded.kind === 'valid' ? '' : formatProblems(loaded.problems);
}

const token = (name: string, sha256: string) => `{ name: ${name}, may: read, sha256: "${sha256}" }`;

test('admin tokens and hosts are read, with digests and names in lower case', () => {
  const loaded = load(`admin: { hosts: [Gateway.Internal], tokens: [${token('alice', digestOf('A'))}] }`);
  expect(loaded.kind === 'valid' && loaded.settings.admin).toEqual({
    host: '127.0.0.1',
    port: 9090,
    tokens: [{ name: 'alice', may: 'read', sha256: digestOf('a') }],
    hosts: ['gateway.internal'],
  });
});

const many = (count: number, entry: (index: number) => string) =>
  Array.from({ length: count }, (_, index) => entry(index)).join(', ');

test.each([
  [
    'two tokens have one name',
    `tokens: [${token('alice', digestOf('a'))}, ${token('alice', digestOf('b'))}]`,
    '`admin.tokens[1].name`: this name is already taken by `admin.tokens[0].name`',
  ],
  [
    'two tokens have one digest, in whatever case',
    `tokens: [${token('alice', digestOf('a'))}, ${token('bob', digestOf('A'))}]`,
    '`admin.tokens[1].sha256`: this digest is already taken by `admin.tokens[0].sha256`',
  ],
  [
    'a digest is too short',
    `tokens: [${token('alice', 'abc')}]`,
    '`admin.tokens[0].sha256` must be the SHA-256 digest of the whole token, 64 hex digits',
  ],
  [
    'a token may something else',
    `tokens: [{ name: alice, may: all, sha256: ${digestOf('a')} }]`,
    '`admin.tokens[0].may` must be read or write',
  ],
  [
    'a token does not say what it may',
    `tokens: [{ name: alice, sha256: ${digestOf('a')} }]`,
    '`admin.tokens[0].may` is missing; write read or write',
  ],
  [
    'the name of a token has a space',
    `tokens: [${token('al ice', digestOf('a'))}]`,
    '`admin.tokens[0].name` must be 1 to 64 of the characters',
  ],
  [
    'a host has a port',
    'hosts: [gateway:9090]',
    '`admin.hosts[0]` must be a host name such as gateway.internal, without a port',
  ],
  [
    'there are too many tokens',
    `tokens: [${many(configSizes.adminTokensMax + 1, (n) => token(`t${n}`, n.toString(16).padStart(64, '0')))}]`,
    '`admin.tokens` must be a list of at most 100 tokens',
  ],
  [
    'there are too many hosts',
    `hosts: [${many(configSizes.adminHostsMax + 1, (n) => `h${n}`)}]`,
    '`admin.hosts` must be a list of at most 100 names',
  ],
  [
    'the public listener has the same port on every address',
    'port: 8080',
    '`admin.port` (8080) is taken by `listen.port`: the admin listener needs its own port',
  ],
  ['a field is misspelt', 'token: []', 'the field `token` is unknown; did you mean `tokens`?'],
])('the admin settings are reported when %s', (_what, admin, message) => {
  expect(reportOn(`admin: { ${admin} }`)).toContain(message);
});

test.each([
  ['in place of the digest', (x: string) => `admin:\n  tokens:\n    - { name: a, may: read, sha256: ${x} }`],
  [
    'on a line of its own',
    (x: string) => `admin:\n  tokens:\n    - name: a\n      may: red\n      sha256: ${x}`,
  ],
  ['as an entry of the list', (x: string) => `admin:\n  tokens:\n    - tga_${x}`],
  ['as an entry in brackets', (x: string) => `admin:\n  tokens: [${x}]`],
  ['under a name of its own', (x: string) => `admin:\n  tokens:\n    - { name: a, may: read, token: ${x} }`],
])('no report shows any part of a token that was written into the configuration %s', (_where, admin) => {
  const plain = 'Zq7Wx2Vk9Rt4Bn6M';
  const report = reportOn(admin(plain));
  expect(report).toContain('`admin.tokens[0]');
  for (let start = 0; start + 4 <= plain.length; start++) {
    expect(report).not.toContain(plain.slice(start, start + 4));
  }
});
