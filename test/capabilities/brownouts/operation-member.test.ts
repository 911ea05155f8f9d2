import { expect, test } from 'vitest';
import { readOperations } from '../../../gateway/config/api/read-operations.ts';
import { parseYaml } from '../../../gateway/config/source/parse-yaml.ts';

function readText(text: string) {
  const file = 'openapi.yaml';
  const parsed = parseYaml({ file, kind: 'api', text });
  if (parsed.kind === 'invalid') throw new Error('the document is no YAML');
  return readOperations(parsed.source, { file, upstreamNames: ['store'], open: () => undefined });
}

const deprecated = (fields: string) =>
  `paths: { /a: { get: { operationId: a, deprecated: true, ${fields} } }, /b: { get: { operationId: next } } }`;

test('the series of brownouts are in the order of the document', () => {
  const { operations, problems } = readText(
    deprecated(
      'x-deprecated-since: 2026-11-20, x-deprecated-sunset: 2030-12-05, x-brownouts: [{ from: 2026-11-20, every: 7d, for: 5m }, { from: 2030-12-01, for: 1h }]',
    ),
  );
  expect(problems).toEqual([]);
  expect(operations[0]?.deprecation?.brownouts).toEqual([
    { fromMs: Date.UTC(2026, 10, 20), everyMs: 604_800_000, forMs: 300_000 },
    { fromMs: Date.UTC(2030, 11, 1), forMs: 3_600_000 },
  ]);
});

test.each<[rule: string, text: string, messages: string[]]>([
  [
    'brownouts before the deprecation, after the sunset, out of order, and longer than their interval',
    deprecated(
      'x-deprecated-since: 2026-11-20, x-deprecated-sunset: 2030-12-05, x-brownouts: [{ from: 2026-11-20, for: 1h }, { from: 2026-11-19, every: 1m, for: 61s }, { from: 2030-12-05, for: 1s }]',
    ),
    [
      '1:135: `x-brownouts[1]` begins before `x-deprecated-since`; announce the deprecation first',
      '1:135: `x-brownouts[1]` must begin later than the entry before; sort the entries by `from`',
      '1:135: `x-brownouts[1]` has a `for` that is longer than its `every`',
      '1:135: `x-brownouts[2]` begins after `x-deprecated-sunset`, when the operation is removed',
    ],
  ],
  [
    'brownouts without the dates of the deprecation, of an operation that stays',
    deprecated(
      'x-deprecated-since: 2026-11-20, x-after-sunset: gone, x-brownouts: [{ from: 2026-11-20, for: 1h }]',
    ),
    [
      '1:89: `x-after-sunset` needs `x-deprecated-sunset` beside it',
      '1:111: `x-brownouts` needs `x-deprecated-since` and `x-deprecated-sunset` beside it',
    ],
  ],
  [
    'brownouts of an operation that is not removed',
    deprecated(
      'x-deprecated-since: 2026-11-20, x-deprecated-sunset: 2030-12-05, x-after-sunset: serve, x-brownouts: [{ from: 2026-11-20, for: 1h }]',
    ),
    ['1:145: `x-brownouts` rehearses a removal; remove it, or `x-after-sunset: serve`'],
  ],
  [
    'a brownout without its length',
    deprecated(
      'x-deprecated-since: 2026-11-20, x-deprecated-sunset: 2030-12-05, x-brownouts: [{ from: 2026-11-20 }]',
    ),
    ['1:135: `x-brownouts[0].for` is missing; write a duration such as 5m'],
  ],
  [
    'a field of a brownout that is unknown',
    deprecated(
      'x-deprecated-since: 2026-11-20, x-deprecated-sunset: 2030-12-05, x-brownouts: [{ from: 2026-11-20, four: 1h }]',
    ),
    ['1:135: the field `four` is unknown; did you mean `for`?'],
  ],
  [
    'brownouts of an operation that is not deprecated',
    'paths: { /a: { get: { operationId: a, x-brownouts: [{ from: 2026-11-20, for: 1h }] } } }',
    ['1:39: `x-brownouts` needs `deprecated: true` beside it'],
  ],
])('%s', (_, text, messages) => {
  const { problems } = readText(text);
  expect(problems.map(({ line, column, message }) => `${line}:${column}: ${message}`)).toEqual(messages);
});
