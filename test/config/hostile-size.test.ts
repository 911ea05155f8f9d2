import { expect, test } from 'vitest';
import { readOperations } from '../../gateway/config/api/read-operations.ts';
import { configSizes } from '../../gateway/config/config-sizes.ts';
import { loadSettings } from '../../gateway/config/load-settings.ts';
import { formatProblems } from '../../gateway/config/problems/format-problems.ts';
import type { Problem } from '../../gateway/config/problems/problem.ts';
import { parseYaml } from '../../gateway/config/source/parse-yaml.ts';
import { apiDocument, configFolder, digestOf, mainDocument } from '../support/config-folder.ts';
import { limitsOf } from '../support/limits-of.ts';

type Files = Readonly<Record<string, string>>;

function problemsOf(files: Files): readonly Problem[] {
  const loaded = loadSettings({ file: configFolder(files).file, env: {} });
  return loaded.kind === 'valid' ? [] : loaded.problems;
}

const count = 40_000;
/**
 * The limit on the CPU time for parsing a file. Parsing takes half a second. A parser with quadratic work would take
 * far longer than the limit. The limit counts CPU time, because pauses and other processes do not add CPU time.
 */
const hangCpuMs = 10_000;
/**
 * `npm test` uses files with 5 % of this size. Reports about the smaller files are as long as reports about the full
 * files.
 */
const scales = [0.05, 1] as const;

function expectNoHang<T>(work: () => T): T {
  const before = process.cpuUsage();
  const result = work();
  const { user, system } = process.cpuUsage(before);
  expect((user + system) / 1_000).toBeLessThan(hangCpuMs);
  return result;
}

const linesOf = (line: (i: number) => string, howMany: number) =>
  Array.from({ length: howMany }, (_, i) => `${line(i)}\n`).join('');
const main = (text: string) => ({ 'tollgate.yaml': text });
const inPlans = (text: string) => mainDocument.replace('  enterprise: custom\n', text);
const inKeys = (text: string) => mainDocument.replace('keys: keys.yaml\n', `keys:\n${text}`);
const api = (text: string) => ({ 'openapi.yaml': `paths:\n${text}` });
const operation = (fields: string) => `{ get: { ${fields} } }`;

/** Files with far more problems than a report lists. */
const hostile = (scale: number): readonly [what: string, files: Files][] => {
  const of = (howMany: number) => Math.ceil(howMany * scale);
  const lines = (line: (i: number) => string, howMany = of(count)) => linesOf(line, howMany);
  return [
    ['unknown settings', main(mainDocument + lines((i) => `unknown${i}: x`))],
    ['settings that resemble a known one', main(mainDocument + lines((i) => `plan${i}: x`))],
    [
      'settings on one line',
      main(`{ environment: test, ${lines((i) => `u${i}: x,`).replaceAll('\n', ' ')} }`),
    ],
    ['plans without limits', main(inPlans(lines((i) => `  unknown${i}: x`)))],
    ['plans with bad names', main(inPlans(lines((i) => `  unknown.${i}: custom`)))],
    ['unknown fields of a key', main(inKeys(`- id: a\n${lines((i) => `  unknown${i}: x`)}`))],
    ['inline keys that are none', main(inKeys(lines(() => '- x')))],
    ['nested lists', main(`${mainDocument}trustedProxies:\n${lines(() => '- [[x]]', of(count / 4))}`)],
    ['keys that are none', { 'keys.yaml': lines(() => '- 1') }],
    ['keys of one id', { 'keys.yaml': lines(() => '- { id: a }', of(count / 4)) }],
    ['secrets of one digest', { 'keys.yaml': `- secrets:\n${lines(() => `  - sha256: ${digestOf('a')}`)}` }],
    ['fields of one name', main(mainDocument + lines(() => 'unknown: x'))],
    ['reserved names', main(mainDocument + lines(() => '__proto__: x'))],
    ['variables that are not set', { 'keys.yaml': lines((i) => `- \${UNSET${i}}`) }],
    ['anchors and aliases', { 'keys.yaml': lines((i) => `- &a${i} x\n- *a${i}`) }],
    ['unknown methods', api(`  /a:\n${lines((i) => `    unknown${i}: x`)}`)],
    ['paths without operations', api(lines((i) => `  /a${i}: x`, of(configSizes.pathsMax)))],
    ['operations of one id', api(lines((i) => `  /a${i}: ${operation('operationId: a')}`, of(10_000)))],
    [
      'successors that are no operation',
      api(
        lines(
          (i) =>
            `  /a${i}: ${operation(`operationId: a${i}, deprecated: true, x-deprecated-since: 2026-01-01, x-deprecated-successor: none`)}`,
          of(6_000),
        ),
      ),
    ],
    [
      'misspelt extensions',
      api(`  /a:\n    get:\n      operationId: a\n${lines((i) => `      x-stabilit${i}: x`)}`),
    ],
    [
      'keys on no plan, beside as many plans',
      {
        ...main(inPlans(lines((i) => `  plan${i}: custom`))),
        'keys.yaml': lines(() => '- { plan: x }', of(1_000)),
      },
    ],
  ];
};

for (const scale of scales)
  test.each(hostile(scale))(
    `a report on ${scale === 1 ? 'tens of ' : ''}thousands of %s lists a hundred and states that there are more`,
    { tags: scale === 1 ? ['full'] : [] },
    (_, files) => {
      const problems = expectNoHang(() => problemsOf(files));
      expect(problems).toHaveLength(configSizes.problemsMax + 1);
      expect(problems.at(-1)?.message).toBe('further problems are not listed');
      expect(formatProblems(problems).length).toBeLessThan(100_000);
    },
  );

test('a problem in each file is reported even if another file has ten thousand', () => {
  const messages = problemsOf({
    ...main(`${mainDocument}bodyBytesMax: x\n`),
    'keys.yaml': '- 1\n',
    'openapi.yaml': apiDocument + linesOf((i) => `  /a${i}: x`, 5_000),
  }).map(({ file, line }) => `${file.split('/').at(-1)}:${line}`);
  expect(messages.slice(0, 3)).toEqual(['tollgate.yaml:9', 'keys.yaml:1', 'openapi.yaml:14']);
});

test('ten thousand valid templates are read', { tags: 'full' }, () => {
  const text = linesOf((i) => `  /a${i}/{b}: ${operation(`operationId: a${i}`)}`, configSizes.pathsMax);
  expect(expectNoHang(() => problemsOf(api(text)))).toEqual([]);
});

test('thousands of paths that no request can have give one warning', () => {
  const text = `${linesOf((i) => `  /#a${i}: {}`, 5_000)}  /a: { get: { operationId: a } }\n`;
  const loaded = expectNoHang(() => loadSettings({ file: configFolder(api(text)).file, env: {} }));
  expect(loaded.kind === 'valid' && loaded.warnings).toEqual([
    expect.stringContaining('openapi.yaml:2:3: `/#a0`, like 4999 others, is not served'),
  ]);
});

test('a thousand templates of one shape give a hundred warnings', () => {
  const text = linesOf((i) => `  /{a${i}}: ${operation(`operationId: a${i}`)}`, 1_000);
  const { file } = configFolder(api(text));
  const loaded = expectNoHang(() => loadSettings({ file, env: {} }));
  expect(loaded.kind === 'valid' && loaded.warnings).toHaveLength(configSizes.problemsMax);
});

test('an API document may have the largest number of templates, and not one more', () => {
  const read = (howMany: number) => {
    const text = `paths:\n${linesOf((i) => `  /a${i}: ${operation(`operationId: a${i}`)}`, howMany)}`;
    const parsed = parseYaml({ file: 'openapi.yaml', kind: 'api', text });
    if (parsed.kind === 'invalid') throw new Error(formatProblems(parsed.problems));
    const open = () => undefined;
    return readOperations(parsed.source, {
      file: 'openapi.yaml',
      upstreamNames: ['store'],
      open,
      pathsMax: 3,
    });
  };
  expect(read(3)).toMatchObject({ operations: [{ id: 'a0' }, { id: 'a1' }, { id: 'a2' }], problems: [] });
  expect(read(4)).toMatchObject({
    operations: [],
    problems: [{ line: 5, column: 3, message: '`paths` may hold at most 3 path templates' }],
  });
});

test('a file of very many punctuation marks is refused at the first mark beyond the limit, without being parsed', () => {
  const parse = (text: string) => parseYaml({ file: 'keys.yaml', kind: 'keys', text, marksMax: 8 });
  // Each line has four marks: `-`, two brackets and the line break.
  expect(parse('- [a]\n- [b]\n')).toMatchObject({ kind: 'parsed', source: { value: [['a'], ['b']] } });
  expect(parse('- [a]\n- [b]\n- [c]\n')).toMatchObject({
    kind: 'invalid',
    problems: [
      {
        line: 3,
        column: 1,
        message: 'reading stops here: a file may have at most 8 punctuation marks and line breaks',
      },
    ],
  });
});

test('all keys may share their limits through an alias', { tags: 'full' }, () => {
  const keys = linesOf(
    (i) =>
      `- { id: k${i}, plan: enterprise, secrets: [], limits: ${i === 0 ? '&l { perMinute: 1, perDay: 2 }' : '*l'} }`,
    12_000,
  );
  const { file } = configFolder({ 'keys.yaml': keys });
  const loaded = loadSettings({ file, env: {} });
  expect(loaded.kind === 'valid' && loaded.settings.keys.get('k11999')?.limits).toEqual(
    limitsOf({ perMinute: 1, perDay: 2 }),
  );
});

test('a value that contains itself is refused, with the place of the alias', () => {
  expect(problemsOf({ 'keys.yaml': '- &a 1\n- &a [*a]\n' })).toMatchObject([
    { line: 2, column: 7, message: expect.stringContaining('stand for too many values or for none') },
  ]);
});

test('an alias refers to the last anchor of its name before it', () => {
  const parsed = parseYaml({ file: 'a', kind: 'api', text: '[&a 1, *a, &a {b: &c [2]}, *a, *c, &a 3]' });
  expect(parsed).toMatchObject({ source: { value: [1, 1, { b: [2] }, { b: [2] }, [2], 3] } });
});

test('a problem and a warning with a very long name are shortened', () => {
  const name = 'a'.repeat(100_000);
  const [first] = problemsOf(api(`  ? /${name}\n  : x\n`));
  expect(first?.message).toHaveLength(configSizes.messageCharsMax + 1);
  const text = `  ? ${name}\n  : {}\n  /a: { get: { operationId: a } }\n`;
  const loaded = loadSettings({ file: configFolder(api(text)).file, env: {} });
  expect(loaded.kind === 'valid' && loaded.warnings[0]).toHaveLength(configSizes.messageCharsMax + 1);
});

test('only the first of many failed substitutions are reported', () => {
  const value = Array.from({ length: 1_000 }, (_, i) => `\${N${i}}`).join('');
  const [first] = problemsOf(main(mainDocument.replace('keys.yaml', value)));
  expect(first?.message).toContain('N0');
  expect(first?.message).not.toContain('N10');
});
