import fc from 'fast-check';
import { expect, test } from 'vitest';
import { parseDocument } from 'yaml';
import { configSizes } from '../../../gateway/config/config-sizes.ts';
import { parseYaml } from '../../../gateway/config/source/parse-yaml.ts';

function read(text: string) {
  const parsed = parseYaml({ file: 'a.yaml', kind: 'settings', text });
  const problems = parsed.problems.map(({ line, column, message }) => `${line}:${column} ${message}`);
  return parsed.kind === 'invalid' ? { problems } : { problems, source: parsed.source };
}

/** Reads a text with the library `yaml`, which shares no code with the reader. Returns undefined if the library finds a fault. */
function readByOther(text: string): { readonly value: unknown } | undefined {
  const document = parseDocument(text, {
    stringKeys: true,
    uniqueKeys: false,
    merge: true,
    prettyErrors: false,
  });
  if (document.errors.length > 0 || document.warnings.length > 0) return undefined;
  try {
    return { value: document.toJS() };
  } catch {
    return undefined;
  }
}

const names = fc.constantFrom(
  ...['a', 'b', 'x-c', '/p/{id}', '200', '1.0', '0x10', 'true', 'null', '~', '<<', 'x y', 'é', '日本'],
  ...['"q"', "'s'", '"\\u0061"', '"a|b"', '"200"', '-x', 'a#b', 'a:b', '""', '__proto__'],
);
const values = fc.constantFrom(
  ...['', '~', 'null', 'Null', 'nULL', 'true', 'False', 'TRUE', 'tRue', 'yes', 'on', '2001-01-01', '<<', '='],
  ...['0', '-0', '+7', '007', '0o17', '0x1F', '-0x1F', '0b1', '1_000', '12:30', '1.', '.5', '-1.50', '+.5'],
  ...['1e3', '1.5E-3', '.5e1', '1e999', '.', '-', '+', '.inf', '-.INF', '+.Inf', '.nan', '.NaN', '-.nan'],
  ...['9007199254740993', '123456789012345678901234567890', '0x1fffffffffffffff', 'text', 'a text', 'a:b'],
  ...[
    'a # comment',
    'a#b',
    'http://a/b?c=d&e',
    '&b',
    'a & b',
    'a*',
    'a!',
    '- a',
    'é',
    '日本',
    '😀',
    '\u2028',
  ],
  ...[
    '""',
    "''",
    '"a\\tb\\n\\u00e9\\x41\\/"',
    "'it''s'",
    '"null"',
    "'1'",
    '"a" # comment',
    '"\\ud800"',
    '"a\\',
  ],
  ...['[]', '{}', '[a, 1, ~]', '[ a , "b", ]', '{a: 1, b: [c]}', '{a, b: }', '{"a":1}', '[a: b]', '[[], {}]'],
  ...['[a,\n      b]', '{a: b, # comment\n      c: }', '{\n      a: b\n      }', '[? a : b]'],
  ...['a\n      b', 'a\n\n      b\n\n\n      c', '"a\n      b"', "'a\n\n      b'", '"a \\\n      b"'],
  ...[
    '|\n      a\n        b\n\n      c',
    '|-\n      a\n',
    '|+\n      a\n\n',
    '|2\n      a',
    '| # c\n      # a',
  ],
  ...[
    '>\n      a\n      b\n\n      c\n        d\n      e',
    '>-\n      a\n\n\n      b',
    '>+\n      a',
    '|',
    '>-',
  ],
);
const lines = fc.oneof(
  { weight: 6, arbitrary: fc.tuple(fc.constant('field'), names, values) },
  { weight: 4, arbitrary: fc.tuple(fc.constant('open'), names, fc.constantFrom('', '', ' ', ' # comment')) },
  { weight: 3, arbitrary: fc.tuple(fc.constant('entry'), fc.constant(''), values) },
  { weight: 2, arbitrary: fc.tuple(fc.constant('fieldOfEntry'), names, values) },
  { weight: 3, arbitrary: fc.tuple(fc.constant('close'), fc.constant(''), fc.constant('')) },
  {
    weight: 2,
    arbitrary: fc.tuple(fc.constant('other'), fc.constant(''), fc.constantFrom('', '  ', '# comment: a')),
  },
);

/** Makes a document from a list of lines. Most documents are valid. Each level of depth has two more spaces. */
function render(written: readonly (readonly [kind: string, name: string, value: string])[]): string {
  let depth = 0;
  let text = '';
  for (const [kind, name, value] of written) {
    const indent = '  '.repeat(depth);
    if (kind === 'close') depth = Math.max(0, depth - 1);
    else if (kind === 'other') text += `${value.trim() && indent}${value}\n`;
    else if (kind === 'entry') text += `${indent}- ${value}\n`;
    else if (kind === 'fieldOfEntry') text += `${indent}- ${name}: ${value}\n`;
    else text += `${indent}${name}:${kind === 'open' ? value : ` ${value}`}\n`;
    if (kind === 'fieldOfEntry' || kind === 'open') depth = Math.min(2, depth + 1);
  }
  return text;
}

const documents = fc
  .tuple(
    fc.array(lines, { minLength: 1, maxLength: 10 }),
    fc.constantFrom('', '', '# comment\n', '---\n', '\uFEFF'),
    fc.boolean(),
  )
  .map(([written, start, isCrLf]) => (start + render(written)).replaceAll('\n', isCrLf ? '\r\n' : '\n'));

const insertions = fc.array(
  fc.tuple(
    fc.nat(),
    fc.constantFrom(
      ...[
        '\n',
        '\t',
        ' ',
        '  ',
        '\n  ',
        ':',
        ': ',
        '- ',
        '-',
        '? ',
        '[',
        ']',
        '{',
        '}',
        ',',
        '"',
        "'",
        '|',
        '>',
        '#',
      ],
      ...[
        ' #',
        '&a ',
        '*a',
        '!',
        '!!str ',
        '!!int ',
        '%',
        '@',
        '`',
        '\\',
        '---\n',
        '...\n',
        '<<: *a\n',
        '\u0085',
        '\u0007',
      ],
    ),
  ),
  { maxLength: 4 },
);

test('a document has the value that another reader of YAML 1.2 finds, if both accept it', () => {
  let compared = 0;
  fc.assert(
    fc.property(documents, insertions, (document, inserted) => {
      let text = document;
      for (const [at, one] of inserted) {
        const place = at % (text.length + 1);
        text = text.slice(0, place) + one + text.slice(place);
      }
      const { problems, source } = read(text);
      const other = readByOther(text);
      if (source === undefined || problems.length > 0 || other === undefined) return;
      compared += 1;
      expect(source.value).toEqual(other.value);
    }),
    // The seed is fixed, because the libraries differ in a document of only `---` with an indentation, and in `- -` after a mark.
    { numRuns: 600, seed: 1 },
  );
  expect(compared).toBeGreaterThan(30);
});

test('a merge key adds the fields of other mappings, and own fields come first', () => {
  const text = [
    'base: &base { perMinute: 60, perDay: 1000 }',
    'more: &more { perDay: 5, perMonth: 9 }',
    'free: { <<: *base, perDay: 7 }',
    'pro: { <<: [*more, *base] }',
    '"<<": { a: 1 }',
    '',
  ].join('\n');
  const { problems, source } = read(text);
  expect(problems).toEqual([]);
  expect(source?.value).toMatchObject({
    free: { perMinute: 60, perDay: 7 },
    pro: { perMinute: 60, perDay: 5, perMonth: 9 },
    '<<': { a: 1 },
  });
  // A report about a merged field points to the line that states it.
  const lineAndColumn = (...path: string[]) => {
    const { line, column } = source?.placeOf(path) ?? {};
    return `${line}:${column}`;
  };
  expect(lineAndColumn('free', 'perMinute')).toBe('1:26');
  expect(lineAndColumn('pro', 'perMonth')).toBe('2:36');
  expect(lineAndColumn('free', 'perDay')).toBe('3:28');
});

test.each([
  [
    'a merge key without a mapping',
    'a: 1\n<<: 2\n',
    '2:5 a merge key `<<` needs a mapping, or a list of mappings',
  ],
  [
    'an alias of no anchor',
    'a: *b\n',
    '1:4 the aliases (`*name`) stand for too many values or for none; write the values out',
  ],
  [
    'an alias inside of its own value',
    'a: &b [*b]\n',
    '1:8 the aliases (`*name`) stand for too many values or for none; write the values out',
  ],
  ['an unknown tag', 'a: !b 1\n', '1:7 this is not valid YAML: remove the `!` tag'],
  ['a tag of another type', 'a: !!int x\n', '1:10 this is not valid YAML: remove the `!` tag'],
  [
    'two documents',
    'a: 1\n---\nb: 2\n',
    '2:1 this is not valid YAML: a file holds one document; remove `---` and what follows',
  ],
  ['a tab as indentation', 'a:\n\tb: 1\n', '2:1 this is not valid YAML: indent with spaces, not with tabs'],
  ['a list as a name', '? [a]\n: 1\n', '1:3 this is not valid YAML: a field name must be plain text'],
  [
    'a carriage return alone',
    'a: 1\rb: 2\n',
    '1:5 this is not valid YAML: a carriage return may only stand before a line feed, and a byte order mark only at the start',
  ],
  [
    'a bracket that is not closed',
    'a: [b\nc: d\n',
    '2:1 this is not valid YAML: a `}`, a `]` or a quote is missing, or the line needs more spaces before it',
  ],
  [
    'a text that is nested too deeply',
    `a: ${'['.repeat(1_000)}${']'.repeat(1_000)}\n`,
    '1:203 this is not valid YAML: it is nested too deeply',
  ],
  [
    'a directive',
    '# a\n%YAML 1.1\n---\na: yes\n',
    '2:1 this is not valid YAML: a line may not begin with `%`',
  ],
  [
    'an escape of no character',
    'a: "\\U00110000"\n',
    '1:4 this is not valid YAML: an escape `\\U` is no character',
  ],
  [
    'a blank line after an escaped line break',
    'a: "b\\\n\n  c"\n',
    '1:4 this is not valid YAML: a blank line may not follow an escaped line break',
  ],
  ['a name behind a value', "a:\n- ''b: c\n", '2:5 this is not valid YAML: a field must begin its line'],
  [
    'a text that needs quotes',
    'a: b: c\n',
    '1:5 this is not valid YAML: put the text after the colon in quotes',
  ],
  [
    'a name without a colon',
    'a: 1\nfoo\nb: 2\n',
    '2:1 this is not valid YAML: a colon and a space are missing after this name',
  ],
  [
    'a tab before a bracket',
    'a: {b:\t [c]}\n',
    '1:9 this is not valid YAML: indent with spaces, not with tabs',
  ],
  [
    'an indented first line',
    ' a: 1\nb: 2\n',
    '2:1 this is not valid YAML: the line needs other indentation, or a colon and a space after a name',
  ],
  [
    'no space after the colon of a quoted name',
    '"a":1\nb: 2\n',
    '1:5 a space is missing after the colon: write `name: value`',
  ],
  [
    'no space after a colon',
    'environment:test\nplans: {}\n',
    '1:13 a space is missing after the colon: write `name: value`',
  ],
])('%s is a fault with its place', (_, text, problem) => {
  expect(read(text)).toEqual({ problems: [problem] });
});

test('a closing bracket may stand in the column of its field, and places stay those of the text', () => {
  const text = 'a: {\n  b: [\n    1\n  ],\n}\nc: |\n  }\n  ]\nd: 2\n';
  const { problems, source } = read(text);
  expect([problems, source?.value]).toEqual([[], { a: { b: [1] }, c: '}\n]\n', d: 2 }]);
  expect(source?.placeOf(['d'])).toMatchObject({ line: 9, column: 4 });
  expect(read('a: {\n}\nb: ]\n').problems).toEqual([
    expect.stringMatching(/^\d+:\d+ this is not valid YAML: /),
  ]);
});

test('tags of the core schema decide the type of a value', () => {
  const text =
    'a: !!str 1\nb: !!int "2"\nc: ! 3\nd: !!map {}\ne: !<tag:yaml.org,2002:bool> true\nf: !!null ""\n';
  expect(read(text).source?.value).toEqual({ a: '1', b: 2, c: '3', d: {}, e: true, f: null });
});

test('a merge bomb ends at a bound, and does not end the process', () => {
  const fields = Array.from({ length: 1_000 }, (_, i) => `a${i}: 1`).join(', ');
  const merges = Array.from(
    { length: configSizes.aliasedValuesMax / 1_000 + 1 },
    (_, i) => `b${i}: { <<: *a }\n`,
  );
  const { problems, source } = read(`a: &a { ${fields} }\n${merges.join('')}`);
  expect([source, problems.length]).toEqual([undefined, 1]);
  expect(problems[0]).toMatch(/too many/);
});

test('a report about an empty list entry points to its dash, and a report about a block of text to its mark', () => {
  const { source } = read('a:\n  - b # x-y\n  -\n  - c\nd: >-\n  text\n');
  const places = [['a', 1], ['a', 2], ['d']].map((path) => source?.placeOf(path));
  expect(places.map((place) => `${place?.line}:${place?.column}`)).toEqual(['3:3', '4:5', '5:4']);
});
