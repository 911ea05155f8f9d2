import { expect, test } from 'vitest';
import { readOperations } from '../../../gateway/config/api/read-operations.ts';
import { formatProblems } from '../../../gateway/config/problems/format-problems.ts';
import { parseYaml } from '../../../gateway/config/source/parse-yaml.ts';

function read(text: string) {
  const parsed = parseYaml({ file: 'openapi.yaml', kind: 'api', text });
  if (parsed.kind === 'invalid') throw new Error(formatProblems(parsed.problems));
  return readOperations(parsed.source, { upstreamNames: ['store', 'orders'] });
}

test('paths and methods become operations, the ones with fewer parameters first', () => {
  const { operations, problems } = read(`paths:
  /a/{x}/{y}: { get: { operationId: two, x-upstream: orders } }
  /a/{x}/b: { get: { operationId: one, x-upgrade: websocket }, delete: { operationId: remove, x-stability: beta } }
  /a: { summary: All, parameters: [], x-other: 1, post: { operationId: none, x-stability: experimental } }
`);
  expect(problems).toEqual([]);
  expect(operations).toEqual([
    { id: 'none', method: 'POST', template: '/a', stability: 'experimental', upstream: 'store' },
    { id: 'one', method: 'GET', template: '/a/{x}/b', upgrade: 'websocket', upstream: 'store' },
    { id: 'remove', method: 'DELETE', template: '/a/{x}/b', stability: 'beta', upstream: 'store' },
    { id: 'two', method: 'GET', template: '/a/{x}/{y}', upstream: 'orders' },
  ]);
});

test('a deprecation has its dates, its successor and whether the operation ends at the sunset', () => {
  const { operations, problems } = read(`paths:
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
    'an operation without a name',
    'paths: { /a: { get: {} } }',
    ['1:16: `operationId` is missing; write 1 to 100 of the characters A-Z a-z 0-9 . _ -'],
  ],
  [
    'a duplicate operationId',
    'paths: { /a: { get: { operationId: x } }, /b: { get: { operationId: x } } }',
    ['1:69: the operationId `x` is already taken; each must be unique', '1:36: it is here'],
  ],
  [
    'a method that is none',
    'paths: { /a: { gett: {} } }',
    ['1:16: `gett` is no method that the gateway supports; did you mean `get`?'],
  ],
  [
    'a TRACE, which the listener refuses',
    'paths: { /a: { trace: {} } }',
    ['1:16: TRACE is always answered 501; remove it'],
  ],
  ['a HEAD of its own', 'paths: { /a: { head: {} } }', ['1:16: HEAD is served wherever GET is; remove it']],
  [
    'a deprecation without its date',
    deprecated('x-stability: beta'),
    [
      '1:39: a deprecated operation needs `x-deprecated-since`, the date for the Deprecation header (RFC 9745)',
    ],
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
  [
    'two templates of one shape',
    paths('/a/{x}', '/a/{y}'),
    [
      '3:3: a request could match `/a/{y}` and `/a/{x}` alike; change one of them',
      '2:3: the other path is here',
    ],
  ],
  [
    'two templates of which neither is the more specific',
    paths('/a/{x}', '/{y}/b'),
    [
      '3:3: a request could match `/{y}/b` and `/a/{x}` alike; change one of them',
      '2:3: the other path is here',
    ],
  ],
  ['templates of which one is the more specific', paths('/a/{x}', '/a/b', '/{x}/{y}', '/{x}'), []],
  [
    'templates that could never match',
    paths('a', '/a//b', '/a/../b', '/a%2fb', '/a?b', '/{x}.json', '/{x}/{x}', '/a/'),
    [
      '2:3: `a` could never match; a path begins with `/`',
      '3:3: `/a//b` could never match; remove the empty segment',
      '4:3: `/a/../b` could never match; the segment `..` would be refused or written otherwise',
      '5:3: `/a%2fb` could never match; the segment `a%2fb` would be refused or written otherwise',
      '6:3: `/a?b` could never match; the segment `a?b` would be refused or written otherwise',
      '7:3: `/{x}.json` could never match; a parameter is a whole segment, as in /pets/{petId}',
      '8:3: `/{x}/{x}` names a parameter twice',
      '9:3: `/a/` could never match; remove the empty segment',
    ],
  ],
])('%s is reported with its place', (_, text, messages) => {
  const report = formatProblems(read(text).problems);
  expect(report.match(/(?<=^openapi\.yaml:)\d+:\d+: .*$/gm) ?? []).toEqual(messages);
});
