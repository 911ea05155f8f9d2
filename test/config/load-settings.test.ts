import { mkdirSync, rmSync } from 'node:fs';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { configSizes } from '../../gateway/config/config-sizes.ts';
import { loadSettings } from '../../gateway/config/load-settings.ts';
import { formatProblems } from '../../gateway/config/problems/format-problems.ts';
import { compilePlans } from '../../gateway/keys/plans/plans.ts';
import { capabilityCases } from '../support/capability-cases.ts';
import { apiDocument, configFolder, digestOf, keysDocument, mainDocument } from '../support/config-folder.ts';
import { limitsOf } from '../support/limits-of.ts';

const defaults = (await capabilityCases()).map((cases) => cases.defaults);

type Env = Readonly<Record<string, string>>;

/** Returns the report on a configuration, without the folder in file names; empty when the configuration is valid. */
function reportOn(files: Readonly<Record<string, string | Uint8Array>>, env: Env = {}): string {
  const { file, pathOf } = configFolder(files);
  const loaded = loadSettings({ file, env });
  return loaded.kind === 'valid'
    ? ''
    : formatProblems(loaded.problems).replaceAll(pathOf('.').slice(0, -1), '');
}

function settingsOf(files: Readonly<Record<string, string>>, env: Env = {}) {
  const loaded = loadSettings({ file: configFolder(files).file, env });
  if (loaded.kind === 'invalid') throw new Error(formatProblems(loaded.problems));
  return loaded.settings;
}

test('a small configuration gets every default', () => {
  const { version, keys, stated, ...settings } = settingsOf({});
  expect(stated).toMatchObject({ baseUrl: 'https://api.example.com/v1', bans: { within: '1m', max: '24h' } });
  expect([...keys.ids()]).toEqual(['acme']);
  expect(keys.find(digestOf('a'))).toEqual({
    key: { id: 'acme', plan: 'free', limits: limitsOf({ perMinute: 60, perDay: 1000 }), disabled: false },
    secret: { digest: digestOf('a'), expiresMs: Number.POSITIVE_INFINITY },
  });
  expect(version).toMatch(/^[0-9a-f]{12}$/);
  expect(settings).toMatchObject({
    environment: 'test',
    basePath: '/v1',
    listen: { host: '0.0.0.0', port: 8080 },
    admin: { host: '127.0.0.1', port: 9090, tokens: [], hosts: [] },
    upstreams: [
      {
        name: 'default',
        url: 'http://backend:3000',
        health: undefined,
        host: 'keep',
        encodedSlashes: 'refuse',
        timeouts: {},
      },
    ],
    plans: compilePlans({
      free: { custom: false, perMinute: 60, perDay: 1000 },
      enterprise: { custom: true },
    }),
    keysFile: { path: 'keys.yaml', lines: Uint32Array.of(2) },
    operations: [
      { id: 'listPets', method: 'GET', template: '/pets', upstream: 'default' },
      { id: 'createPet', method: 'POST', template: '/pets', upstream: 'default' },
      {
        id: 'getPet',
        method: 'GET',
        template: '/pets/{petId}',
        deprecation: {
          sinceMs: Date.UTC(2026, 10, 20),
          sunsetMs: Date.UTC(2030, 11, 5),
          successor: '/pets',
          afterSunset: 'gone',
        },
        upstream: 'default',
      },
    ],
    directory: false,
    bans: { after: 100, withinMs: 60_000, forMs: 60_000, maxMs: 86_400_000 },
    addressBucket: { perMinute: 30 },
    bodyBytesMax: 1_048_576,
    usage: { keepDays: 8 },
    thresholds: [],
    workers: 1,
    trustedProxies: [],
    ...Object.assign({}, ...defaults),
  });
});

test('the main file may have the keys, each with its own limits and expiry', () => {
  const inline = `keys:
  - { id: big, plan: enterprise, name: Big, disabled: true, limits: { perMinute: 1, perDay: 999999999999999 },
      secrets: [{ sha256: "${'A'.repeat(64)}", expires: 2027-01-31T12:00:00+02:00 }] }`;
  const { keys } = settingsOf({ 'tollgate.yaml': mainDocument.replace('keys: keys.yaml', inline) });
  expect(keys.get('big')).toEqual({
    id: 'big',
    plan: 'enterprise',
    name: 'Big',
    disabled: true,
    limits: limitsOf({ perMinute: 1, perDay: 999_999_999_999_999 }),
  });
  expect(keys.find(digestOf('a'))?.secret.expiresMs).toBe(Date.UTC(2027, 0, 31, 10));
});

test.each([
  ['a file of its own', 'keys: sub/../keys.yaml', 'keys.yaml', [4, 2, 7]],
  ['the main file', 'keys:', 'tollgate.yaml', [9, 8, 11]],
])('each key has the line of its entry, in %s', (_, setting, path, lines) => {
  const entry = (id: string) => `- { id: ${id}, plan: free, secrets: [] }`;
  const list = `# The keys.\n${entry('b')}\n\n${entry('a')}\n\n# The last.\n- plan: free\n  id: c\n  secrets: []\n`;
  const inline = `${entry('b')}\n${entry('a')}\n# The last.\n${entry('c')}\napi: openapi.yaml\n`;
  const main = mainDocument.replace(/keys: .*\n/, `${setting}\n`);
  const files =
    path === 'keys.yaml'
      ? { 'tollgate.yaml': main, 'keys.yaml': list }
      : { 'tollgate.yaml': main.replace(/api: .*\n/, inline) };
  expect(settingsOf(files).keysFile).toEqual({ path, lines: Uint32Array.from(lines) });
});

test('a secret has its time of issue when the file has it', () => {
  const { keys } = settingsOf({
    'keys.yaml': `${keysDocument}      created: 2026-11-22T10:31:00Z\n    - sha256: ${digestOf('b')}\n`,
  });
  expect(keys.secretsOf('acme').map(({ createdMs }) => createdMs)).toEqual([
    Date.UTC(2026, 10, 22, 10, 31),
    undefined,
  ]);
});

test('Redis is used when it has a url, with a prefix from the environment', () => {
  const withRedis = (url: string) =>
    settingsOf({ 'tollgate.yaml': `${mainDocument}redis: { url: "${url}" }\n` });
  expect(withRedis('redis://redis:6379').redis).toEqual({
    url: 'redis://redis:6379',
    prefix: 'tollgate-test',
    onFailure: 'local',
  });
  expect(withRedis('').redis).toBeUndefined();
});

test('an empty list of keys is valid and gets a warning', () => {
  const { file } = configFolder({ 'keys.yaml': '# nothing yet\n' });
  const loaded = loadSettings({ file, env: {} });
  expect(loaded).toMatchObject({
    kind: 'valid',
    warnings: [
      `${file}: there is no key, so every request gets 401; an empty keys file revokes every key that it had`,
    ],
  });
});

test('the version of the configuration depends on every file and every variable, not on the folder', () => {
  const files = { 'tollgate.yaml': mainDocument.replace('test', '$' + '{NAME}') };
  const version = settingsOf(files, { NAME: 'a' }).version;
  expect(settingsOf(files, { NAME: 'a', OTHER: 'x' }).version).toBe(version);
  expect(settingsOf(files, { NAME: 'b' }).version).not.toBe(version);
  expect(settingsOf({ ...files, 'keys.yaml': `${keysDocument}#\n` }, { NAME: 'a' }).version).not.toBe(
    version,
  );
  expect(settingsOf({ ...files, 'openapi.yaml': `${apiDocument}#\n` }, { NAME: 'a' }).version).not.toBe(
    version,
  );
});

test('gateways that differ only in the addresses of their listeners have the same version', () => {
  const named = (name: string) => ({
    'tollgate.yaml': `${mainDocument.replace('test', name)}listen:
  host: $\{HOST}
  port: $\{PORT}
admin:
  host: $\{HOST}
  port: $\{ADMIN_PORT}
`,
  });
  const [first, second] = [
    { HOST: '127.0.0.1', PORT: '8080', ADMIN_PORT: '9090' },
    { HOST: '127.0.0.2', PORT: '8081', ADMIN_PORT: '9091' },
  ];
  expect(settingsOf(named('test'), second).admin.port).toBe(9091);
  expect(settingsOf(named('test'), second).version).toBe(settingsOf(named('test'), first).version);
  const elsewhere = named('at-${PORT}');
  expect(settingsOf(elsewhere, second).version).not.toBe(settingsOf(elsewhere, first).version);
});

const main = (line: string, replaced?: string | RegExp) => ({
  'tollgate.yaml': replaced === undefined ? `${mainDocument}${line}\n` : mainDocument.replace(replaced, line),
});
const keys = (text: string) => ({ 'keys.yaml': text });
const key = (fields: string) => keys(`- { id: acme, plan: free, secrets: [], ${fields} }\n`);

test.each<[rule: string, files: Record<string, string | Uint8Array>, report: string]>([
  [
    'an unknown field, with the one that was meant',
    main('trustedProxy: []'),
    'tollgate.yaml:9:1: the field `trustedProxy` is unknown; did you mean `trustedProxies`?\n  9 | trustedProxy: []\n    | ^',
  ],
  [
    'an unknown field that resembles none',
    main('listen: { socket: /tmp/x }'),
    'tollgate.yaml:9:11: this field is unknown; known here: host, port, tls\n  9 | listen: { ******* ****** }\n    |           ^',
  ],
  [
    'a required field with a misspelt name, which is not also reported as missing',
    main('plnas:', 'plans:'),
    'tollgate.yaml:4:1: the field `plnas` is unknown; did you mean `plans`?\n  4 | plnas:\n    | ^',
  ],
  [
    'a missing field',
    main('', 'environment: test\n'),
    'tollgate.yaml:1:1: `environment` is missing; write a word of A-Z a-z 0-9 . _ -, such as production\n  1 | baseUrl: https://api.example.com/v1\n    | ^',
  ],
  [
    'a value of the wrong type',
    main('plans: [free]', /plans:\n.*\n.*custom/),
    'tollgate.yaml:4:8: `plans` must be a mapping of plan names to limits\n  4 | plans: [free]\n    |        ^',
  ],
  [
    'an empty value',
    main('bans:'),
    'tollgate.yaml:9:1: `bans` must be a mapping with after, within, for, max and showReason\n  9 | bans:\n    | ^',
  ],
  [
    'a negative limit',
    main('perMinute: -1', 'perMinute: 60'),
    'tollgate.yaml:5:22: `plans.free.perMinute` must be a whole number from 1 to 999999999999999\n  5 |   free: { perMinute: -1, perDay: 1000 }\n    |                      ^',
  ],
  [
    'a fractional limit',
    main('perDay: 0.5', 'perDay: 1000'),
    'tollgate.yaml:5:34: `plans.free.perDay` must be a whole number from 1 to 999999999999999\n  5 |   free: { perMinute: 60, perDay: 0.5 }\n    |                                  ^',
  ],
  [
    'a limit of zero',
    main('perMinute: 0', 'perMinute: 60'),
    'tollgate.yaml:5:22: `plans.free.perMinute` must be a whole number from 1 to 999999999999999\n  5 |   free: { perMinute: 0, perDay: 1000 }\n    |                      ^',
  ],
  [
    'a limit beyond what a header can tell',
    main('perDay: 1000000000000000', 'perDay: 1000'),
    'tollgate.yaml:5:34: `plans.free.perDay` must be a whole number from 1 to 999999999999999\n  5 |   free: { perMinute: 60, perDay: 1000000000000000 }\n    |                                  ^',
  ],
  [
    'a bad duration',
    main('bans: { within: 1.5m }'),
    'tollgate.yaml:9:17: `bans.within` must be a duration such as 60s, 5m or 24h\n  9 | bans: { within: 1.5m }\n    |                 ^',
  ],
  [
    'bans whose longest length is below their first length',
    main('bans: { for: 2h, max: 1h }'),
    'tollgate.yaml:9:23: `bans.max` must not be shorter than `bans.for`\n  9 | bans: { for: 2h, max: 1h }\n    |                       ^',
  ],
  [
    'a base URL with a query',
    main('baseUrl: https://a.example/v1?x', /baseUrl.*/),
    'tollgate.yaml:2:10: `baseUrl` must be an http or https URL such as https://api.example.com/v1, without user, query or fragment\n  2 | baseUrl: https://a.example/v1?x\n    |          ^',
  ],
  [
    'an upstream with a path',
    main('upstream: { url: http://b:3000/v1 }', /upstream.*/),
    'tollgate.yaml:3:18: `upstream.url` must be an http or https URL such as http://backend:3000, without a path\n  3 | upstream: { url: http://b:3000/v1 }\n    |                  ^',
  ],
  [
    'a brace in the Redis prefix',
    main('redis: { url: "", prefix: "a{b" }'),
    'tollgate.yaml:9:27: `redis.prefix` must be 1 to 100 of the characters A-Z a-z 0-9 . _ : -\n  9 | redis: { url: "", prefix: ***** }\n    |                           ^',
  ],
  [
    'a trusted proxy that only some programs read as an address',
    main('trustedProxies: ["::012.1.1.1"]'),
    'tollgate.yaml:9:18: `trustedProxies[0]` must be an address or a range such as 10.0.0.0/8\n  9 | trustedProxies: ["::012.1.1.1"]\n    |                  ^',
  ],
  [
    'a host with a port',
    main('listen: { host: "0.0.0.0:80" }'),
    'tollgate.yaml:9:17: `listen.host` must be an address such as 127.0.0.1 or ::1, or a host name\n  9 | listen: { host: ************ }\n    |                 ^',
  ],
  [
    'a trusted proxy that is no address',
    main('trustedProxies: [10.0.0.0/8, 10.0.0.0/33]'),
    'tollgate.yaml:9:30: `trustedProxies[1]` must be an address or a range such as 10.0.0.0/8\n  9 | trustedProxies: [10.0.0.0/8, 10.0.0.0/33]\n    |                              ^',
  ],
  [
    'a YAML syntax error',
    main('bans: { after: 1'),
    'tollgate.yaml:9:17: this is not valid YAML: a `}`, a `]` or a quote is missing, or the line needs more spaces before it\n  9 | bans: { after: 1\n    |                 ^',
  ],
  [
    'a missing space after the colon of a field in braces',
    main('bans: {after:1}'),
    'tollgate.yaml:9:8: a space is missing after the colon: write `name: value`\n  9 | bans: {after:1}\n    |        ^',
  ],
  [
    'a missing space after the colon of a setting',
    main('maxBodyBytes:1'),
    'tollgate.yaml:9:14: a space is missing after the colon: write `name: value`\n  9 | **************\n    |              ^',
  ],
  [
    'a missing space after the colon of the only field in a mapping',
    main('bans:\n  after:1'),
    'tollgate.yaml:10:3: a space is missing after the colon: write `name: value`\n  10 |   after:1\n     |   ^',
  ],
  [
    'a list that is never closed, though nothing but blank lines follows',
    main('trustedProxies: [10.0.0.0/8\n\n \n'),
    'tollgate.yaml:9:28: this is not valid YAML: a `}`, a `]` or a quote is missing, or the line needs more spaces before it\n  9 | trustedProxies: [10.0.0.0/8\n    |                            ^',
  ],
  [
    'an unquoted variable in braces, once',
    main('redis: { url: $' + '{REDIS_URL:-}, prefix: x }\nbans: {}'),
    'tollgate.yaml:9:15: inside `{ }` and `[ ]` a text with a variable needs quotes, `"${NAME}"`, and a number a line of its own, `port: ${NAME}`\n  9 | redis: { url: ${REDIS_URL:-}, prefix: * }\n    |               ^',
  ],
  [
    'an unquoted variable in brackets',
    main('trustedProxies: [$' + '{PROXY}]'),
    'tollgate.yaml:9:18: inside `{ }` and `[ ]` a text with a variable needs quotes, `"${NAME}"`, and a number a line of its own, `port: ${NAME}`\n  9 | trustedProxies: [${PROXY}]\n    |                  ^',
  ],
  [
    'a tab as indentation',
    main('bans:\n\tafter: 1'),
    'tollgate.yaml:10:1: this is not valid YAML: indent with spaces, not with tabs\n  10 | \tafter: 1\n     | ^',
  ],
  [
    'a second document',
    main('---\nx: 1'),
    'tollgate.yaml:9:1: this is not valid YAML: a file holds one document; remove `---` and what follows\n  9 | ---\n    | ^',
  ],
  [
    'a duplicate YAML key, at both places',
    main('environment: other'),
    'tollgate.yaml:9:1: this field occurs twice; keep one\n  9 | environment: other\n    | ^\ntollgate.yaml:1:1: the first one is here\n  1 | environment: test\n    | ^',
  ],
  [
    'an alias bomb',
    keys(
      `- &a [x, x, x, x, x, x, x, x, x]\n${[...'bcdefg'].map((name, i) => `- &${name} [${Array(9).fill(`*${'abcdef'[i]}`).join(', ')}]\n`).join('')}`,
    ),
    `keys.yaml:7:7: the aliases (\`*name\`) stand for too many values or for none; write the values out\n  7 | - ** [${Array(9).fill('**').join(', ')}]\n    |       ^`,
  ],
  [
    'an alias that fails, beside what else is wrong in its file',
    keys('- { id: a, id: b }\n- *nobody\n'),
    'keys.yaml:1:12: this field occurs twice; keep one\n  1 | - { id: a, id: b }\n    |            ^\nkeys.yaml:1:5: the first one is here\n  1 | - { id: a, id: b }\n    |     ^\n\nkeys.yaml:2:3: the aliases (`*name`) stand for too many values or for none; write the values out\n  2 | - *******\n    |   ^',
  ],
  [
    'an alias of nothing',
    keys('- *nobody\n'),
    'keys.yaml:1:3: the aliases (`*name`) stand for too many values or for none; write the values out\n  1 | - *******\n    |   ^',
  ],
  [
    'a missing keys file, where it is named',
    main('keys: other.yaml', /keys:.*/),
    'tollgate.yaml:7:7: this file does not exist: the command `keys create` makes it with the first key; an empty file will also do\n  7 | keys: other.yaml\n    |       ^',
  ],
  [
    'an entry of trustedProxies that is neither an address nor empty',
    main("trustedProxies: ['', proxy]"),
    "tollgate.yaml:9:22: `trustedProxies[1]` must be an address or a range such as 10.0.0.0/8\n  9 | trustedProxies: ['', proxy]\n    |                      ^",
  ],
  [
    'a missing API document, where it is named',
    main('api: other.yaml', /api:.*/),
    'tollgate.yaml:8:6: this file does not exist\n  8 | api: other.yaml\n    |      ^',
  ],
  [
    'a file that is not text',
    { 'keys.yaml': new Uint8Array([0x2d, 0x20, 0xff]) },
    'tollgate.yaml:7:7: this file is not UTF-8 text\n  7 | keys: keys.yaml\n    |       ^',
  ],
  [
    'a key on an unknown plan, with the one that was meant',
    keys('- { id: a, plan: fre, secrets: [] }'),
    'keys.yaml:1:18: `[0].plan` names no plan; did you mean `free`?\n  1 | - { id: a, plan: fre, secrets: [] }\n    |                  ^',
  ],
  [
    'a key on an unknown plan that resembles none',
    keys('- { id: a, plan: platinum, secrets: [] }'),
    'keys.yaml:1:18: `[0].plan` names no plan; plans are: free, enterprise\n  1 | - { id: a, plan: platinum, secrets: [] }\n    |                  ^',
  ],
  [
    'a duplicate key id, at both places',
    keys('- { id: a, plan: free, secrets: [] }\n- { id: a, plan: free, secrets: [] }'),
    'keys.yaml:2:9: `[1].id`: this id is already taken by `[0].id`; each must be unique\n  2 | - { id: a, plan: free, secrets: [] }\n    |         ^\nkeys.yaml:1:9: `[0].id` is here\n  1 | - { id: a, plan: free, secrets: [] }\n    |         ^',
  ],
  [
    'a duplicate digest in another case, at both places',
    keys(
      `- { id: a, plan: free, secrets: [{ sha256: ${digestOf('a')} }] }\n- { id: b, plan: free, secrets: [{ sha256: ${digestOf('A')} }] }`,
    ),
    `keys.yaml:2:44: \`[1].secrets[0].sha256\`: this digest is already taken by \`[0].secrets[0].sha256\`; each must be unique\n  2 | - { id: b, plan: free, secrets: [{ sha256: ${'*'.repeat(64)} }] }\n    |                                            ^\nkeys.yaml:1:44: \`[0].secrets[0].sha256\` is here\n  1 | - { id: a, plan: free, secrets: [{ sha256: ${'*'.repeat(64)} }] }\n    |                                            ^`,
  ],
  [
    'a key on a custom plan without limits',
    keys('- { id: a, plan: enterprise, secrets: [] }'),
    'keys.yaml:1:18: `[0]` is on a custom plan; write its `limits: { … }` with at least one of perSecond, perMinute, perHour, perDay, perMonth\n  1 | - { id: a, plan: enterprise, secrets: [] }\n    |                  ^',
  ],
  [
    'limits on a key of a plan that has its own',
    key('limits: { perMinute: 1, perDay: 1 }'),
    'keys.yaml:1:40: `[0].limits` is for custom plans only; remove it or choose a custom plan\n  1 | - { id: acme, plan: free, secrets: [], limits: { perMinute: 1, perDay: 1 } }\n    |                                        ^',
  ],
  [
    'a scope of a key with an operation that does not exist',
    key('operations: [listPets, getPets]'),
    'keys.yaml:1:63: `[0].operations[1]` names no operation of the API document; did you mean `getPet`?\n  1 | - { id: acme, plan: free, secrets: [], operations: [********, *******] }\n    |                                                               ^',
  ],
  [
    'a scope of a plan with an operation that does not exist',
    main('perDay: 1000, operations: [x]', 'perDay: 1000'),
    'tollgate.yaml:5:53: `plans.free.operations[0]` names no operation of the API document; operations are: listPets, createPet, getPet\n  5 |   free: { perMinute: 60, perDay: 1000, operations: [x] }\n    |                                                     ^',
  ],
  [
    'an empty scope',
    main('perDay: 1000, operations: []', 'perDay: 1000'),
    'tollgate.yaml:5:52: `plans.free.operations` must be a list of at least one operationId; without `operations` all may be called\n  5 |   free: { perMinute: 60, perDay: 1000, operations: [] }\n    |                                                    ^',
  ],
  [
    'a key id with a brace',
    keys('- { id: "a{b}", plan: free, secrets: [] }'),
    'keys.yaml:1:9: `[0].id` must be 1 to 100 of the characters A-Z a-z 0-9 . _ : @ + -\n  1 | - { id: ******, plan: free, secrets: [] }\n    |         ^',
  ],
  [
    'a key id that is a number',
    keys('- { id: 7, plan: free, secrets: [] }'),
    'keys.yaml:1:9: `[0].id` must be 1 to 100 of the characters A-Z a-z 0-9 . _ : @ + -; put it in quotes\n  1 | - { id: 7, plan: free, secrets: [] }\n    |         ^',
  ],
  [
    'a secret where its digest belongs, without showing it',
    keys('- { id: a, plan: free, secrets: [{ sha256: hunter2 }] }'),
    'keys.yaml:1:44: `[0].secrets[0].sha256` must be the SHA-256 digest of the whole secret, 64 hex digits\n  1 | - { id: a, plan: free, secrets: [{ sha256: ******* }] }\n    |                                            ^',
  ],
  [
    'an expiry on a day that does not exist',
    keys(`- { id: a, plan: free, secrets: [{ expires: 2027-02-29, sha256: ${digestOf('a')} }] }`),
    `keys.yaml:1:45: \`[0].secrets[0].expires\` must be a date such as 2027-01-31 or 2027-01-31T12:00:00Z\n  1 | - { id: a, plan: free, secrets: [{ expires: 2027-02-29, sha256: ${'*'.repeat(64)} }] }\n    |                                             ^`,
  ],
  [
    'an unset variable',
    main('bodyBytesMax: $' + '{SIZE}'),
    'tollgate.yaml:9:15: the environment variable SIZE is not set; set it or SIZE_FILE, or write `${SIZE:-default}`\n  9 | bodyBytesMax: ${SIZE}\n    |               ^',
  ],
  [
    'a broken substitution',
    main('bodyBytesMax: $' + '{SIZE-1}'),
    'tollgate.yaml:9:15: `${` begins no substitution here; write `${NAME}` or `${NAME:-default}`\n  9 | bodyBytesMax: ${SIZE-1}\n    |               ^',
  ],
])('%s is reported with its place and a correction', (_, files, report) => {
  expect(reportOn(files)).toBe(report);
});

test('very deep nesting is reported', () => {
  expect(reportOn(keys('['.repeat(50_000)))).toContain('this is not valid YAML: it is nested too deeply');
});

test('a missing main file is reported', () => {
  const { file } = configFolder();
  rmSync(file);
  const loaded = loadSettings({ file, env: {} });
  expect(loaded).toMatchObject({ kind: 'invalid', digests: new Map([[file, 'does not exist']]) });
  expect(loaded.kind === 'invalid' && formatProblems(loaded.problems)).toBe(
    `${file}:1:1: this file does not exist`,
  );
});

test('a folder in place of a file is reported', () => {
  const { file } = configFolder();
  rmSync(file);
  mkdirSync(file);
  const loaded = loadSettings({ file, env: {} });
  expect(loaded.kind === 'invalid' && loaded.problems[0]?.message).toBe(
    'this file is a directory; Docker makes one where a file to mount is missing: remove it and write the file',
  );
});

test('a file beyond the size limit is refused without being read', () => {
  const huge = { 'keys.yaml': '#'.repeat(configSizes.fileBytesMax + 1) };
  expect(reportOn(huge)).toContain(`this file is larger than ${configSizes.fileBytesMax} bytes`);
});

test('a missing field is reported beside an unknown field that does not resemble it', () => {
  const report = reportOn(main('owner: me\n', 'environment: test\n'));
  expect(report).toContain('tollgate.yaml:1:1: `environment` is missing;');
  expect(report).toContain('tollgate.yaml:1:1: this field is unknown; known here: environment, ');
});

test('all problems of all files are reported together, in the order of the files', () => {
  const report = reportOn({
    'tollgate.yaml': `environmnt: test
baseUrl: ftp://api.example.com
upstream: { url: http://backend:3000, helth: /x }
plans:
  free: { perMinute: -1, perDay: 1.5 }
  enterprise: custom
  gold: custmo
keys: keys.yaml
api: openapi.yaml
bans: { for: soon }
bodyBytesMax: \${SIZE}
bans: {}
`,
    'keys.yaml': `- { id: a, plan: fre, secrets: [] }
- { id: a, plan: enterprise, secrets: [{ sha256: short }] }
- { plan: free, secrets: [], limits: {} }
`,
    'openapi.yaml': 'paths: { /a: { gett: {} } }\n',
  });
  expect(report.match(/^\S+:\d+:\d+: .*$/gm)).toEqual([
    'tollgate.yaml:1:1: the field `environmnt` is unknown; did you mean `environment`?',
    'tollgate.yaml:2:10: `baseUrl` must be an http or https URL such as https://api.example.com/v1, without user, query or fragment',
    'tollgate.yaml:3:39: the field `helth` is unknown; did you mean `health`?',
    'tollgate.yaml:5:22: `plans.free.perMinute` must be a whole number from 1 to 999999999999999',
    'tollgate.yaml:5:34: `plans.free.perDay` must be a whole number from 1 to 999999999999999',
    'tollgate.yaml:7:9: `plans.gold` must be a mapping with at least one of perSecond, perMinute, perHour, perDay, perMonth, or the word custom',
    'tollgate.yaml:11:15: the environment variable SIZE is not set; set it or SIZE_FILE, or write `${SIZE:-default}`',
    'tollgate.yaml:12:1: this field occurs twice; keep one',
    'tollgate.yaml:10:1: the first one is here',
    'keys.yaml:1:18: `[0].plan` names no plan; did you mean `free`?',
    'keys.yaml:2:9: `[1].id`: this id is already taken by `[0].id`; each must be unique',
    'keys.yaml:1:9: `[0].id` is here',
    'keys.yaml:2:18: `[1]` is on a custom plan; write its `limits: { … }` with at least one of perSecond, perMinute, perHour, perDay, perMonth',
    'keys.yaml:2:50: `[1].secrets[0].sha256` must be the SHA-256 digest of the whole secret, 64 hex digits',
    'keys.yaml:3:3: `[2].id` is missing; write 1 to 100 of the characters A-Z a-z 0-9 . _ : @ + -',
    'keys.yaml:3:30: `[2].limits` is for custom plans only; remove it or choose a custom plan',
    'keys.yaml:3:38: `[2].limits` must be a mapping with at least one of perSecond, perMinute, perHour, perDay, perMonth',
    'openapi.yaml:1:16: `gett` is no method that the gateway supports; did you mean `get`?',
  ]);
});

test('the report on ten thousand broken keys has a limited length', () => {
  const loaded = loadSettings({ file: configFolder(keys('- 1\n'.repeat(10_000))).file, env: {} });
  expect(loaded.kind === 'invalid' && loaded.problems.length).toBe(101);
  expect(loaded.kind === 'invalid' && loaded.problems.at(-1)?.message).toBe(
    'further problems are not listed',
  );
});

test('the structured form of a problem is plain JSON', () => {
  const loaded = loadSettings({ file: configFolder(main('x: 1')).file, env: {} });
  expect(loaded.kind === 'invalid' && JSON.parse(JSON.stringify(loaded.problems))).toEqual([
    {
      file: expect.stringMatching(/tollgate\.yaml$/),
      line: 9,
      column: 1,
      excerpt: '** *',
      message: expect.stringMatching(/^this field is unknown; known here: environment, /),
    },
  ]);
});

const anything = fc.oneof(
  fc.uint8Array({ maxLength: 300 }),
  fc.string({ unit: fc.constantFrom(...'{}[]&*!|>\'"%@`#:- \n\t,?~$ab01'), maxLength: 120 }),
);

test.each(['tollgate.yaml', 'keys.yaml', 'openapi.yaml'])('no content of %s makes loading throw', (name) => {
  const folder = configFolder();
  fc.assert(
    fc.property(anything, (content) => {
      folder.write(name, content);
      const loaded = loadSettings({ file: folder.file, env: {} });
      if (loaded.kind === 'invalid') expect(formatProblems(loaded.problems)).not.toBe('');
    }),
    { numRuns: 100 },
  );
});

test.each([
  [
    'openapi: 3.1.0\npaths: {}',
    'this is an OpenAPI document. Give the configuration that names it: `api: ./tollgate.yaml`',
  ],
  [
    '{"swagger":"2.0","paths":{}}',
    'this is an OpenAPI document. Give the configuration that names it: `api: ./tollgate.yaml`',
  ],
  [keysDocument, 'this is a keys file. Give the configuration that names it: `keys: ./tollgate.yaml`'],
  ['services: { web: { image: "$' + '{IMAGE}" } }', 'this is a Compose file'],
  ['apiVersion: v1\nkind: ConfigMap', 'this is a Kubernetes object'],
  ['<!doctype html>\n<html></html>', 'this is HTML or XML'],
  ['{"name":"x","dependencies":{}}', 'none of its fields is a setting'],
  ['PASSWORD=secret', 'this is text and no mapping'],
  ['# nothing', 'this file is empty, or has only comments'],
])('a file that is no configuration is reported as one problem, which names what it is: %s', (text, what) => {
  const folder = configFolder({ 'tollgate.yaml': text });
  const loaded = loadSettings({ file: folder.file, env: {} });
  const contents = '`environment`, `baseUrl`, `upstream`, `plans`, `keys` and `api`';
  expect(loaded.kind === 'invalid' && formatProblems(loaded.problems)).toBe(
    `${folder.file}:1:1: ${what}. A configuration is a mapping with ${contents}`,
  );
});

test('settings that need operations are refused with this reason if there is no API document', () => {
  const withoutApi = mainDocument.replace('api: openapi.yaml\n', '');
  expect(settingsOf({ 'tollgate.yaml': withoutApi }).operations).toEqual([
    { id: 'any', method: '*', template: '/*', upgrade: 'websocket', upstream: 'default' },
  ]);
  const report = reportOn({
    'tollgate.yaml': `${withoutApi.replace('enterprise: custom', 'own: { perDay: 5, operations: [any, listPets] }')}docsPath: /docs\n`,
  });
  expect(report).toContain('`docsPath` needs `api`, the document to show');
  expect(report).toContain(
    'needs `api`, the API document with the operations; without it the only operation is `any`',
  );
  expect(report.match(/^\S+:\d+:\d+: /gm)).toHaveLength(2);
});

test.each([
  ['an API document', '', 'write `x-upstream: orders` on an operation'],
  [
    'no API document',
    'api: openapi.yaml\n',
    'this needs `api`, the API document, with `x-upstream: orders` on an operation',
  ],
])('with %s, an upstream without operations gets a warning that says what it needs', (_, left, advice) => {
  const upstreams = 'upstreams: { store: { url: http://store }, orders: { url: http://orders } }\n';
  const main = mainDocument.replace(/^upstream:.*\n/m, upstreams).replace(left, '');
  const { file } = configFolder({ 'tollgate.yaml': main });
  expect(loadSettings({ file, env: {} })).toMatchObject({
    warnings: [`${file}: no operation is forwarded to the upstream \`orders\`; ${advice}`],
  });
});

test('a path item in a missing file is one problem', () => {
  const report = reportOn({ 'openapi.yaml': 'paths: { /pets: { $ref: pets.yaml } }\n' });
  expect(report).toMatch(/^openapi\.yaml:1:25: this file does not exist/);
  expect(report.match(/^\S+:\d+:\d+: /gm)).toHaveLength(1);
});

test('an API document that is a page of HTML is one problem', () => {
  const report = reportOn({ 'openapi.yaml': '<!DOCTYPE html>\n<html lang="en"><body>: [</body></html>\n' });
  expect(report).toBe('openapi.yaml:1:1: this is HTML or XML; save the OpenAPI document itself');
});

test('an edit of a file that the API document refers to is an edit of the configuration', () => {
  const { file, write } = configFolder({
    'openapi.yaml': 'paths: { /pets: { $ref: paths/pets.yaml } }',
    'paths/pets.yaml': 'get: { operationId: listPets }',
  });
  const idsOf = (loaded: ReturnType<typeof loadSettings>) =>
    loaded.kind === 'valid' && loaded.settings.operations.map(({ id }) => id);
  const before = loadSettings({ file, env: {} });
  write('paths/pets.yaml', 'get: { operationId: allPets }');
  const after = loadSettings({ file, env: {} });
  expect([idsOf(before), idsOf(after)]).toEqual([['listPets'], ['allPets']]);
  expect(before.version).not.toBe(after.version);
  expect([...after.digests.keys()].some((each) => each.endsWith('paths/pets.yaml'))).toBe(true);
});
