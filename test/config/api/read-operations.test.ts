import { describe, expect, it, test } from 'vitest';
import { readOperations } from '../../../gateway/config/api/read-operations.ts';
import { formatProblems } from '../../../gateway/config/problems/format-problems.ts';
import { parseYaml } from '../../../gateway/config/source/parse-yaml.ts';

function readText(text: string) {
  return readFiles({ 'openapi.yaml': text });
}

/** Reads the document `openapi.yaml`, which may refer to the other files. */
function readFiles(files: Readonly<Record<string, string>>) {
  const open = (file: string) => {
    const parsed = parseYaml({ file, kind: 'api', text: files[file] ?? '' });
    if (parsed.kind === 'invalid') throw new Error(formatProblems(parsed.problems));
    return parsed.source;
  };
  const file = 'openapi.yaml';
  return readOperations(open(file), { file, upstreamNames: ['store', 'orders'], open });
}

test('paths and methods become operations, in the order of the document', () => {
  const { operations, problems } = readText(`paths:
  /a/{x}/{y}: { get: { operationId: two, x-upstream: orders } }
  /a/{x}/b: { get: { operationId: one, x-upgrade: websocket }, delete: { operationId: remove, x-stability: beta } }
  /a: { summary: All, parameters: [], x-other: 1, post: { operationId: none, x-stability: experimental } }
  /b: { query: { operationId: find } }
`);
  expect(problems).toEqual([]);
  expect(operations).toEqual([
    { id: 'two', method: 'GET', template: '/a/{x}/{y}', upstream: 'orders' },
    { id: 'one', method: 'GET', template: '/a/{x}/b', upgrade: 'websocket', upstream: 'store' },
    { id: 'remove', method: 'DELETE', template: '/a/{x}/b', stability: 'beta', upstream: 'store' },
    { id: 'none', method: 'POST', template: '/a', stability: 'experimental', upstream: 'store' },
    { id: 'find', method: 'QUERY', template: '/b', upstream: 'store' },
  ]);
});

test('a deprecation has its dates, its successor and whether the operation ends at the sunset', () => {
  const { operations, problems } = readText(`paths:
  /old: { get: { operationId: old, deprecated: true, x-deprecated-since: 2026-11-20T12:00:00Z,
      x-deprecated-sunset: 2030-12-05, x-deprecated-successor: new, x-after-sunset: serve } }
  /new: { get: { operationId: new } }
`);
  expect(problems).toEqual([]);
  expect(operations[0]?.deprecation).toEqual({
    sinceMs: Date.UTC(2026, 10, 20, 12),
    sunsetMs: 1_922_659_200_000,
    successor: '/new',
    afterSunset: 'serve',
  });
});

const deprecated = (fields: string) =>
  `paths: { /a: { get: { operationId: a, deprecated: true, ${fields} } }, /b: { get: { operationId: next } } }`;
const paths = (...templates: string[]) =>
  `paths:\n${templates.map((template, i) => `  '${template}': { get: { operationId: op${i} } }\n`).join('')}`;

test.each<[rule: string, text: string, messages: string[]]>([
  ['no paths', 'openapi: 3.1.0', ['1:1: an OpenAPI document needs `paths`, a mapping of path templates']],
  [
    'no operation at all',
    'paths: { /a: {} }',
    ['1:1: `paths` has no operation; the gateway would answer 404 to everything'],
  ],
  [
    'an upstream that is not there',
    'paths: { /a: { get: { operationId: a, x-upstream: ordres }, put: { operationId: b, x-upstream: [] } } }',
    [
      '1:51: `x-upstream` names no upstream of the configuration; did you mean `orders`?',
      '1:96: `x-upstream` names no upstream of the configuration; upstreams are: store, orders',
    ],
  ],
  [
    'a field of an operation that stands on its path',
    'paths: { /a: { x-upstream: orders, get: { operationId: a } } }',
    ['1:16: `x-upstream` belongs to an operation; write it under a method of this path'],
  ],
  [
    'a duplicate operationId',
    'paths: { /a: { get: { operationId: x } }, /b: { get: { operationId: x } } }',
    [
      '1:69: the operationId `x` is already taken; each must be unique',
      '1:36: the first operation with this operationId is here',
    ],
  ],
  [
    'a method that is none',
    'paths: { /a: { gett: {} } }',
    ['1:16: `gett` is no method that the gateway supports; did you mean `get`?'],
  ],
  [
    'a bad date',
    deprecated('x-deprecated-since: 2026-13-01'),
    ['1:77: `x-deprecated-since` must be a date such as 2027-01-31 or 2027-01-31T12:00:00Z'],
  ],
  [
    'a sunset before the deprecation',
    deprecated('x-deprecated-since: 2026-11-20, x-deprecated-sunset: 2026-11-19'),
    ['1:110: the sunset must not be earlier than the deprecation (RFC 9745 §4)'],
  ],
  [
    'an unknown successor',
    deprecated('x-deprecated-since: 2026-11-20, x-deprecated-successor: nex'),
    ['1:113: `x-deprecated-successor` names no other operation; did you mean `next`?'],
  ],
  [
    'a successor that is the operation itself',
    deprecated('x-deprecated-since: 2026-11-20, x-deprecated-successor: a'),
    ['1:113: `x-deprecated-successor` names no other operation; write the operationId of another operation'],
  ],
  [
    'an unknown word',
    'paths: { /a: { get: { operationId: a, x-stability: gamma } } }',
    ['1:52: `x-stability` must be experimental or beta'],
  ],
  [
    'a cost out of range',
    'paths: { /a: { get: { operationId: a, x-cost: 10001 } } }',
    ['1:47: `x-cost` must be a whole number from 0 to 10000'],
  ],
  [
    'a sunset of an operation that is not deprecated',
    'paths: { /a: { get: { operationId: a, x-deprecated-sunset: 2030-12-05 } } }',
    ['1:39: `x-deprecated-sunset` needs `deprecated: true` beside it'],
  ],
  [
    'a slip of the pen in a field of ours',
    'paths: { /a: { get: { operationId: a, x-stabilty: beta } } }',
    ['1:39: the field `x-stabilty` is unknown; did you mean `x-stability`?'],
  ],
  [
    'a WebSocket by POST',
    'paths: { /a: { post: { operationId: a, x-upgrade: websocket } } }',
    ['1:40: only a GET can be upgraded to a WebSocket (RFC 6455 §4.1)'],
  ],
  ['templates of which one is the more specific', paths('/a/{x}', '/a/b', '/{x}/{y}', '/{x}'), []],
  [
    'a document without a path that a request can have',
    paths('/#Action=List', '/#Action=Get'),
    ['1:1: `paths` has no operation that a request can match; the gateway would answer 404 to everything'],
  ],
])('%s is reported with its place', (_, text, messages) => {
  const report = formatProblems(readText(text).problems);
  expect(report.match(/(?<=^openapi\.yaml:)\d+:\d+: .*$/gm) ?? []).toEqual(messages);
});

test.each<[what: string, text: string, warnings: string[]]>([
  [
    'an operation without operationId',
    'paths: { "/pets/{petId}": { get: {}, put: {} }, "/": { get: {} } }',
    [
      '1:29: this operation has no operationId of its own, like 2 others; in plans, keys and metrics it is called `get_pets_petId`',
    ],
  ],
  [
    'an operationId with other characters',
    'paths: { /a: { get: { operationId: "pets/list all" } } }',
    [
      '1:16: this operation has an operationId with other characters than A-Z a-z 0-9 . _ -; in plans, keys and metrics it is called `pets_list_all`',
    ],
  ],
  [
    'a deprecation without a date',
    deprecated('x-stability: beta'),
    [
      '1:39: without `x-deprecated-since`, a date, responses of this deprecated operation have no Deprecation header (RFC 9745)',
    ],
  ],
  [
    'a TRACE',
    'paths: { /a: { get: { operationId: a }, trace: {} } }',
    ['1:41: the gateway does not serve `trace`; such a request gets 501 or 405'],
  ],
  [
    'two templates of one shape',
    paths('/a/{x}', '/a/{y}'),
    ['3:3: `/a/{x}` and `/a/{y}` match the same path; a method that both have goes to `/a/{x}`'],
  ],
  [
    'two templates of which neither is more specific',
    paths('/{y}/b', '/a/{x}'),
    ['2:3: `/a/{x}` and `/{y}/b` match the same path; every request for such a path goes to `/a/{x}`'],
  ],
  [
    'two segments that a text can match both',
    paths('/{year}-{month}', '/{name}:cancel'),
    [
      '2:3: `/{name}:cancel` and `/{year}-{month}` match the same path; every request for such a path goes to `/{name}:cancel`',
    ],
  ],
  ['templates of which one is more specific', paths('/a/{x}', '/a/{x}.json', '/a/b', '/{x}/{y}', '/a/'), []],
  [
    'rests of paths of which one is more specific',
    paths('/{a+}', '/a/{+b}', '/a/{b}', '/{x}/{y+}', '/a/{x}/c', '/a/b/', '/b/v{a}', '/b/v{a}/c', '/b/v{a+}'),
    [],
  ],
  [
    'a rest of a path and templates of which none is more specific',
    paths('/{x}/b', '/a/{rest+}', '/{x}/{y}/c', '/a/v{b+}', '/a/b/{one+}', '/a/b/{+two}'),
    [
      '2:3: `/a/{rest+}` and `/{x}/b` match the same path; every request for such a path goes to `/a/{rest+}`',
      '4:3: `/a/{rest+}` and `/{x}/{y}/c` match the same path; every request for such a path goes to `/a/{rest+}`',
      '4:3: `/a/v{b+}` and `/{x}/{y}/c` match the same path; every request for such a path goes to `/a/v{b+}`',
      '4:3: `/a/b/{one+}` and `/{x}/{y}/c` match the same path; every request for such a path goes to `/a/b/{one+}`',
      '7:3: `/a/b/{one+}` and `/a/b/{+two}` match the same path; a method that both have goes to `/a/b/{one+}`',
      '4:3: `/a/b/{+two}` and `/{x}/{y}/c` match the same path; every request for such a path goes to `/a/b/{+two}`',
    ],
  ],
  [
    'an operator of RFC 6570 that the gateway does not apply',
    paths(
      '/a{?q}',
      '/b{?q}',
      '/v1/{+name}:cancel',
      '/{*path}',
      '/c/{list*}',
      '/d/{id}',
      '/e/{a+}/{b+}',
      '/f/{;x}',
    ),
    [
      '2:3: `/a{?q}`, like 1 other: `{?q}` matches one or more characters of a segment, like `{name}`; remove it, because a path matches with every query',
      '4:3: `/v1/{+name}:cancel`: `{+name}` matches one or more characters of a segment, like `{name}`; only `{name+}` at the end of a path matches more segments',
      '5:3: `/{*path}`: `{*path}` matches one or more characters of a segment, like `{name}`; only `{name+}` at the end of a path matches more segments',
      '6:3: `/c/{list*}`: `{list*}` matches one or more characters of a segment, like `{name}`; only `{name+}` at the end of a path matches more segments',
      '8:3: `/e/{a+}/{b+}`: `{a+}` matches one or more characters of a segment, like `{name}`; only `{name+}` at the end of a path matches more segments',
      '9:3: `/f/{;x}`: `{;x}` matches one or more characters of a segment, like `{name}`; only `{name+}` at the end of a path matches more segments',
    ],
  ],
  ['a parameter that occurs twice', paths('/{x}/{x+}'), ['2:3: `/{x}/{x+}`: the parameter `x` occurs twice']],
])('%s is a warning with its place', (_, text, warnings) => {
  const read = readText(text);
  expect(formatProblems(read.problems)).toBe('');
  expect(read.warnings).toEqual(warnings.map((warning) => `openapi.yaml:${warning}`));
});

test('paths that no request can have are warnings, and the other operations of the document are served', () => {
  const unmatched = [
    'a',
    '/a//b',
    '/a/../b',
    '/a%2fb',
    '/#Action=A',
    '/api?op=x',
    '/{x.json',
    '/<upload_url>',
  ];
  const { operations, problems, warnings } = readText(paths(...unmatched, '/pets'));
  expect(formatProblems(problems)).toBe('');
  expect(operations.map(({ template }) => template)).toEqual(['/pets']);
  const what = 'is not served, because no request can have this path';
  expect(warnings).toEqual(
    [
      `2:3: \`a\` ${what}: a path begins with \`/\``,
      `3:3: \`/a//b\` ${what}: remove the empty segment`,
      `4:3: \`/a/../b\` ${what}: the segment \`..\` is refused in requests, or has another spelling`,
      `5:3: \`/a%2fb\` ${what}: the segment \`a%2fb\` is refused in requests, or has another spelling`,
      `6:3: \`/#Action=A\`, like 1 other, ${what}: a path ends before \`?\` and \`#\``,
      `8:3: \`/{x.json\` ${what}: write a parameter as \`{petId}\``,
      `9:3: \`/<upload_url>\` ${what}: the segment \`<upload_url>\` is refused in requests, or has another spelling`,
    ].map((warning) => `openapi.yaml:${warning}`),
  );
});

test('operations without operationId get names that no other operation has', () => {
  const { operations } = readText(
    'paths: { /a/b: { get: {} }, "/a/{b}": { get: {} }, /a_b: { get: {}, put: { operationId: get_a_b } }, ' +
      `/${'long'.repeat(40)}: { get: {} } }`,
  );
  const ids = operations.map(({ id }) => id);
  expect(ids.slice(0, 4)).toEqual(['get_a_b_2', 'get_a_b_3', 'get_a_b_4', 'get_a_b']);
  expect(ids[4]).toMatch(/^get_(long)+l?o?n?g?_[0-9a-f]{10}$/);
  expect(ids[4]?.length).toBeLessThanOrEqual(100);
});

test('a successor is found by its operationId in the document, and by the name that the gateway gave it', () => {
  const { operations, problems } = readText(`paths:
  /a: { get: { deprecated: true, x-deprecated-successor: new/b } }
  /c: { get: { deprecated: true, x-deprecated-successor: get_d } }
  /b: { get: { operationId: new/b } }
  /d: { get: {} }
`);
  expect(formatProblems(problems)).toBe('');
  expect(operations.map(({ deprecation }) => deprecation?.successor)).toEqual([
    '/b',
    '/d',
    undefined,
    undefined,
  ]);
});

test('Swagger 2.0 is refused with the command that converts it', () => {
  const report = formatProblems(readText('swagger: "2.0"\npaths: {}').problems);
  expect(report).toContain('this is Swagger 2.0');
  expect(report).toContain('npx swagger2openapi openapi.yaml --outfile openapi.json');
});

describe('`$ref` of path items and operations', () => {
  it('is followed into other files, relative to the file that names them', () => {
    const { operations, problems } = readFiles({
      'openapi.yaml': `paths:
  /pets: { $ref: 'paths/pets.yaml', put: { operationId: own } }
  /toys: { $ref: '#/components/pathItems/toys' }
  /food: { get: { $ref: './operations.yaml#/a~1b/get' } }
components: { pathItems: { toys: { get: { operationId: toys } } } }
`,
      'paths/pets.yaml': `get: { $ref: '../operations.yaml#/list' }\nput: { operationId: replaced }\n`,
      'operations.yaml': `list: { operationId: pets }\na/b: { get: { operationId: food, x-upstream: orders } }\n`,
    });
    expect(formatProblems(problems)).toBe('');
    expect(operations.map(({ id, method, template, upstream }) => [id, method, template, upstream])).toEqual([
      ['own', 'PUT', '/pets', 'store'],
      ['pets', 'GET', '/pets', 'store'],
      ['toys', 'GET', '/toys', 'store'],
      ['food', 'GET', '/food', 'orders'],
    ]);
  });

  it.each<[what: string, files: Record<string, string>, message: string]>([
    [
      'a circle of references',
      { 'openapi.yaml': `paths: { /a: { $ref: 'b.yaml' } }`, 'b.yaml': `$ref: 'openapi.yaml#/paths/~1a'` },
      'openapi.yaml:1:22: `$ref` leads back to itself',
    ],
    [
      'a circle of operations',
      { 'openapi.yaml': `paths: { /a: { get: { $ref: '#/paths/~1a/get' } } }` },
      'openapi.yaml:1:29: `$ref` leads back to itself',
    ],
    [
      'an address',
      { 'openapi.yaml': `paths: { /a: { $ref: 'https://example.com/a.yaml' } }` },
      'openapi.yaml:1:22: the gateway follows `$ref` to a relative path only; copy the file beside this one',
    ],
    [
      'an absolute path',
      { 'openapi.yaml': `paths: { /a: { $ref: '/etc/passwd' } }` },
      'openapi.yaml:1:22: the gateway follows `$ref` to a relative path only; copy the file beside this one',
    ],
    [
      'an anchor',
      { 'openapi.yaml': `paths: { /a: { $ref: '#pets' } }` },
      'openapi.yaml:1:22: after `#` the gateway follows a JSON Pointer only, as in `#/components/pathItems/pets`',
    ],
    [
      'a pointer to nothing',
      { 'openapi.yaml': `paths: { /a: { $ref: 'b.yaml#/x' } }`, 'b.yaml': `y: {}` },
      'openapi.yaml:1:22: `$ref` has no target; correct the path after `#`',
    ],
    [
      'a field of the gateway beside it',
      {
        'openapi.yaml': `paths: { /a: { get: { $ref: 'b.yaml', x-stability: beta } } }`,
        'b.yaml': 'operationId: a',
      },
      'openapi.yaml:1:39: `x-stability` beside `$ref` has no effect; move it to where `$ref` leads',
    ],
  ])('that is %s is a problem with its place', (_, files, message) => {
    expect(formatProblems(readFiles(files).problems)).toContain(message);
  });
});
