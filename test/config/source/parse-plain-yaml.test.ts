import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Lexer } from 'yaml';
import { parsePlainYaml } from '../../../gateway/config/source/parse-plain-yaml.ts';
import { parseYaml } from '../../../gateway/config/source/parse-yaml.ts';

/** Only an API document may take the fast path. Settings are always read by `yaml`. */
const kinds = ['api', 'settings'] as const;

/** Parses a text, and finds the line and the column of each part of the value. */
function parsed(kind: (typeof kinds)[number], text: string) {
  const result = parseYaml({ file: 'a.yaml', kind, text });
  const problems = result.problems.map(({ line, column, message }) => ({ line, column, message }));
  if (result.kind === 'invalid') return { problems };
  const { value, placeOf } = result.source;
  const places = pathsOf(value).flatMap((path) =>
    (['name', 'value'] as const).map((part) => {
      const { line, column } = placeOf(path, part);
      return `${JSON.stringify(path)} ${part} ${line}:${column}`;
    }),
  );
  return { problems, value, places };
}

/** Lists the paths of all parts of a value, and paths that do not exist. */
function pathsOf(value: unknown, path: readonly PropertyKey[] = []): (readonly PropertyKey[])[] {
  if (typeof value !== 'object' || value === null) return [path, [...path, 'absent']];
  const members = Array.isArray(value) ? value.entries() : Object.entries(value);
  const inside = [...members].flatMap(([step, member]) => pathsOf(member, [...path, step]));
  return [path, [...path, 'absent'], [...path, 99], ...inside];
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

test('an API document has the same value, places and problems on the fast path as on the path of `yaml`', () => {
  let fast = 0;
  fc.assert(
    fc.property(documents, (text) => {
      if (parsePlainYaml(text) !== undefined) fast += 1;
      expect(parsed('api', text)).toEqual(parsed('settings', text));
    }),
    { numRuns: 300 },
  );
  expect(fast).toBeGreaterThan(20);
});

test('a document with random insertions has the same value on both paths, if both paths accept it', () => {
  const inserted = fc.constantFrom(
    ...[
      '\n',
      '\r',
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
    ],
    ...[
      '#',
      ' #',
      '&a ',
      '*a',
      '!',
      '!!str ',
      '%',
      '@',
      '`',
      '\\',
      '---\n',
      '...\n',
      '\uFEFF',
      '\u0085',
      '\u0007',
    ],
  );
  let fast = 0;
  fc.assert(
    fc.property(
      documents,
      fc.array(fc.tuple(fc.nat(), inserted), { maxLength: 4 }),
      (document, insertions) => {
        let text = document;
        for (const [at, one] of insertions) {
          const place = at % (text.length + 1);
          text = text.slice(0, place) + one + text.slice(place);
        }
        const plain = parsePlainYaml(text);
        const { problems, value } = parsed('settings', text);
        if (plain === undefined || problems.length > 0) return;
        fast += 1;
        expect(plain.value).toEqual(value);
      },
    ),
    { numRuns: 300 },
  );
  expect(fast).toBeGreaterThan(10);
});

test.each([
  ['a duplicate name', 'a: 1\nb: {c: 1, c: 2}\n'],
  ['the name `__proto__`', 'a: {__proto__: 1}\n'],
  ['the name `__proto__`, with an escape', '"\\u005f_proto__": 1\n'],
  ['an anchor', 'a: &b 1\n'],
  ['an anchor and an alias', 'a: &b {c: 1}\nd: *b\n'],
  ['an alias of no anchor', 'a: *b\n'],
  ['an alias as a name', 'a: &b c\n*b : d\n'],
  ['a tag', 'a: !!str 1\n'],
  ['a tag that is not known', 'a: !b 1\n'],
  ['a directive', '%YAML 1.1\n---\na: yes\n'],
  ['an unknown directive', '%A\n---\na: 1\n'],
  ['two documents', 'a: 1\n---\nb: 2\n'],
  ['the end of a document', 'a: 1\n...\n'],
  ['the end of a document at the start', '...\na: 1\n'],
  ['no content', '# comment\n'],
  ['a list', '- a\n'],
  ['a text', 'a\n'],
  ['an indented first line', '  a: 1\n'],
  ['a tab as indentation', 'a:\n\tb: 1\n'],
  ['a tab before a value', 'a:\t1\n'],
  ['a carriage return without a line feed', 'a: 1\rb: 2\n'],
  ['a byte order mark after the start', 'a: 1\n\uFEFFb: 2\n'],
  ['a name without text', ': 1\n'],
  ['a list as a name', '? [a]\n: 1\n'],
  ['a name after a question mark', '? a\n: 1\n'],
  ['a name on the line of another value', "a:\n- ''b: c\n"],
  ['an empty list entry', 'a:\n-\n- b\n'],
  ['a text with an explicit indentation', 'a: |1\n  b\n'],
  ['a text with all its line breaks', 'a: |+\n  b\n\n'],
  ['an escaped line break', 'a: "b\\\n\n  c"\n'],
  ['an escape of eight digits', 'a: "\\U00110000"\n'],
  ['a character that YAML forbids', 'a: \u0007\n'],
  ['a depth of 150', `a: ${'['.repeat(150)}${']'.repeat(150)}\n`],
  ['invalid syntax', 'a: [b\nc: d\n'],
])('the path of `yaml` reads an API document with %s', (_, text) => {
  expect(parsePlainYaml(text)).toBeUndefined();
  expect(parsed('api', text)).toEqual(parsed('settings', text));
});

test('the fast path reads names as text, and reads numbers by the core schema of YAML 1.2', () => {
  const text =
    '---\n200: 0o17\n0x10: 0x1F\n1.0: 1_000\ntrue: yes\nnull: ~\n<<: {a: .5}\nb: -0\n"c": "1"\nd:\n';
  expect(parsePlainYaml(text)?.value).toStrictEqual({
    200: 15,
    '0x10': 31,
    '1.0': '1_000',
    true: 'yes',
    null: null,
    '<<': { a: 0.5 },
    b: -0,
    c: '1',
    d: null,
  });
});

test('an API document has the same maximum number of tokens on both paths', () => {
  const excess = (text: string, tokensMax: number) =>
    kinds.map((kind) => {
      const { problems } = parseYaml({ file: 'a.yaml', kind, text, tokensMax });
      return problems.filter(({ message }) => message.startsWith('reading stops here')).length;
    });
  const characters = fc.constantFrom(...'aB1 \n:-?[]{},|>#&*!%"\'\\\té\uFEFF');
  // Because of the prefix, no text is valid JSON. The tokens of JSON are counted in another way.
  const texts = fc.oneof(
    documents,
    fc.string({ unit: characters }).map((text) => `a: ${text}`),
  );
  fc.assert(
    fc.property(texts, (text) => {
      const lexed = [...new Lexer().lex(text)];
      // The lexer also returns three marks that are no tokens.
      const count = lexed.filter((token) => !['\u0002', '\u0018', '\u001f'].includes(token)).length;
      expect(excess(text, count)).toEqual([0, 0]);
      // Some tokens are empty, so a text may have more tokens than characters.
      fc.pre(count > 0 && count <= text.length);
      expect(excess(text, count - 1)).toEqual([1, 1]);
    }),
    { numRuns: 150 },
  );
});
