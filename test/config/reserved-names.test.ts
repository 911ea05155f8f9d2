import { describe, expect, test } from 'vitest';
import { loadSettings } from '../../gateway/config/load-settings.ts';
import { formatProblems } from '../../gateway/config/problems/format-problems.ts';
import { configFolder, mainDocument } from '../support/config-folder.ts';
import { limitsOf } from '../support/limits-of.ts';

function load(files: Readonly<Record<string, string>>) {
  const { file, pathOf } = configFolder(files);
  const loaded = loadSettings({ file, env: {} });
  if (loaded.kind === 'valid') return { settings: loaded.settings, report: [] };
  const text = formatProblems(loaded.problems).replaceAll(pathOf('.').slice(0, -1), '');
  return { settings: undefined, report: text.match(/^\S+:\d+:\d+: .*$/gm) ?? [] };
}

const main = (line: string, replaced: string) => ({ 'tollgate.yaml': mainDocument.replace(replaced, line) });
const advice =
  'a field cannot be named `__proto__`, which JavaScript keeps for itself; write another name, such as `proto`';

describe('a field named __proto__ is refused with its place', () => {
  test.each<[where: string, files: Readonly<Record<string, string>>, place: string]>([
    ['as a setting', main('__proto__: {}\nkeys:', 'keys:'), 'tollgate.yaml:7:1'],
    ['in quotes', main('"__proto__": {}\nkeys:', 'keys:'), 'tollgate.yaml:7:1'],
    ['with an escape', main('"__pr\\u006fto__": {}\nkeys:', 'keys:'), 'tollgate.yaml:7:1'],
    ['as a plan', main('__proto__: custom', 'enterprise: custom'), 'tollgate.yaml:6:3'],
    ['in a plan', main('{ __proto__: 1, perMinute: 60', '{ perMinute: 60'), 'tollgate.yaml:5:11'],
    ['in the upstream', main('{ __proto__: { health: /x }, url', '{ url'), 'tollgate.yaml:3:13'],
    ['in a key', { 'keys.yaml': '- { id: a, plan: free, __proto__: {}, secrets: [] }' }, 'keys.yaml:1:24'],
    [
      'in a secret',
      { 'keys.yaml': `- { id: a, plan: free, secrets: [{ __proto__: 1, sha256: ${'a'.repeat(64)} }] }` },
      'keys.yaml:1:36',
    ],
    [
      'in an inline key',
      main('keys: [{ id: a, plan: free, secrets: [], __proto__: 1 }]', 'keys: keys.yaml'),
      'tollgate.yaml:7:42',
    ],
    [
      'as a path',
      { 'openapi.yaml': 'paths: { /a: { get: { operationId: a } }, __proto__: {} }' },
      'openapi.yaml:1:43',
    ],
    [
      'as a method',
      { 'openapi.yaml': 'paths: { /a: { get: { operationId: a }, __proto__: {} } }' },
      'openapi.yaml:1:41',
    ],
    [
      'in an operation',
      { 'openapi.yaml': 'paths: { /a: { get: { operationId: a, __proto__: 1 } } }' },
      'openapi.yaml:1:39',
    ],
    [
      'anywhere else in the API document',
      { 'openapi.yaml': 'paths: { /a: { get: { operationId: a } } }\nx: [[{ __proto__: 1 }]]\n' },
      'openapi.yaml:2:8',
    ],
  ])('%s', (_, files, place) => {
    expect(load(files).report).toEqual([`${place}: ${advice}`]);
  });
});

test('a key, an operation and a token that are named __proto__ are refused with their place', () => {
  const rule = 'must not be `__proto__`, which JavaScript keeps for itself; write another name';
  const admin = `admin: { host: 127.0.0.1, port: 1, tokens: [{ name: __proto__, may: read, sha256: ${'b'.repeat(64)} }] }\nkeys:`;
  const cases: [Record<string, string>, string][] = [
    [{ 'keys.yaml': '- { id: __proto__, plan: free, secrets: [] }' }, 'keys.yaml:1:9: `[0].id`'],
    [main(admin, 'keys:'), 'tollgate.yaml:7:53: `admin.tokens[0].name`'],
    [
      { 'openapi.yaml': 'paths: { /a: { get: { operationId: __proto__ } } }' },
      'openapi.yaml:1:36: `operationId`',
    ],
  ];
  for (const [files, place] of cases) expect(load(files).report).toEqual([`${place} ${rule}`]);
});

/** Names of the members that every object inherits. */
const inherited = [
  'constructor',
  'toString',
  'hasOwnProperty',
  'valueOf',
  '__defineGetter__',
  '__lookupSetter__',
];

describe('a name that every object inherits is an ordinary name', () => {
  test.each(inherited)('%s as a plan, a key and an operation', (name) => {
    const { settings, report } = load({
      ...main(`${name}: { perMinute: 7, perDay: 8 }`, 'enterprise: custom'),
      'keys.yaml': `- { id: ${name}, plan: ${name}, secrets: [] }`,
      'openapi.yaml': `paths: { "/${name}/{${name}}": { get: { operationId: ${name} } } }`,
    });
    expect(report).toEqual([]);
    expect([...(settings?.plans.keys() ?? [])]).toEqual(['free', name]);
    expect(settings?.keys.get(name)).toMatchObject({
      plan: name,
      limits: limitsOf({ perMinute: 7, perDay: 8 }),
    });
    expect(settings?.operations).toMatchObject([{ id: name, method: 'GET', template: `/${name}/{${name}}` }]);
  });

  test.each([...inherited, '__proto__'])('%s as the plan of a key is unknown when no plan has it', (name) => {
    const keys = `- { id: a, plan: ${name}, secrets: [] }`;
    expect(load({ 'keys.yaml': keys }).report).toEqual([
      'keys.yaml:1:18: `[0].plan` names no plan; plans are: free, enterprise',
    ]);
  });

  test.each(inherited)('%s as a setting, a field of a key and a method is unknown', (name) => {
    const { report } = load({
      ...main(`${name}: 1\nkeys:`, 'keys:'),
      'keys.yaml': `- { id: a, plan: free, secrets: [], ${name}: 1 }`,
      'openapi.yaml': `paths: { /a: { ${name}: {} } }`,
    });
    expect(report).toEqual([
      expect.stringMatching(/^tollgate\.yaml:7:1: this field is unknown/),
      expect.stringMatching(/^keys\.yaml:1:37: this field is unknown/),
      expect.stringMatching(/^openapi\.yaml:1:16: .* is no method that the gateway supports/),
    ]);
  });

  test('__proto__ as a part of a path, which is not used as a name', () => {
    const path = '/__proto__/{__proto__}';
    const { settings, report } = load({
      'openapi.yaml': `paths: { "${path}": { get: { operationId: a } } }`,
    });
    expect(report).toEqual([]);
    expect(settings?.operations.map(({ template }) => template)).toEqual([path]);
  });
});
