import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { parseDocument } from 'yaml';
import { readPlainEntry } from '../../../gateway/config/keys/plain-entry.ts';
import type { ReadEntries } from '../../../gateway/config/keys/read-entries.ts';
import { type Loaded, loadSettings } from '../../../gateway/config/load-settings.ts';
import { configFolder, digestOf } from '../../support/config-folder.ts';
import { keysView } from '../../support/loaded-view.ts';

const ids = ['a', 'b', 'c', 'k-10', 'k-2', 'Z', 'x@y.z', 'sp ace', '1', '""', '07', 'true'];
const id = fc.constantFrom(...ids);
const plansOfKeys = ['free', 'free', 'free', 'enterprise', 'gone', '*p', "'free'", '"free"', ''];
const plan = fc.constantFrom(...plansOfKeys);
const digest = fc.constantFrom(...'0123456789abcdef').map(digestOf);
const anyDigest = fc.oneof(
  { weight: 8, arbitrary: digest },
  fc.constantFrom('"', 'x', `${'1'.repeat(63)}A`, `1e${'0'.repeat(62)}`, `'${digestOf('c')}'`),
);
const variable = '$' + '{NAME}';
const unset = '{UNSET}';
const names = [
  ...[
    'Acme',
    'Acme: Ltd',
    'Acme & Co, [x] {y}',
    "'O''Hara'",
    '"a\\nb"',
    'a #b',
    'a # b',
    'Łódź 🎉',
    '~',
    'null',
  ],
  ...[
    '0x1f',
    '1.5',
    '-1',
    '.5',
    '!x y',
    '&n Acme',
    '*n',
    '|\n    two\n    lines',
    '>-\n    folded',
    ...[variable, `"${variable}"`, `x${variable}y`, `'a ${variable}'`, `"$${unset}"`],
  ],
  ...[
    'a\n    b',
    '"a\n    b"',
    '"open',
    'tab\there',
    '?',
    '- x',
    'x:y',
    'x :y',
    '@x',
    '`x',
    '%x',
    'a  b',
    ' b ',
  ],
];
const name = fc.constantFrom(...names);
const limitsOfKeys = [
  ...[
    '{ perMinute: 5, perDay: 10 }',
    '{perMinute: 5}',
    '{ perMinute: 5, perMinute: 6 }',
    '{}',
    '{ perDay: 0 }',
  ],
  ...['\n    perMinute: 5\n    perDay: 9', '&l { perMinute: 1 }', '*l', '{ perMinute: 5,\n    perDay: 10 }'],
  ...['{ perMinute: 100, perDay: 10 }', '{ perMinute: 5, }', '[]', '{ perMinute: 5'],
];
const limits = fc.constantFrom(...limitsOfKeys);
const furtherFields = [
  ...[
    'disabled: true',
    'disabled: True',
    'operations: [getPet]',
    'operations: [none]',
    'operations:\n  - getPet',
  ],
  ...[
    'unknown: 1',
    'plan: free',
    '__proto__: 1',
    '? disabled\n  : true',
    '<<: { disabled: true }',
    '# a comment',
    '"disabled": true',
  ],
  ...[
    'disabled: yes',
    'x',
    'disabled:true',
    '\n',
    ' disabled: true',
    'operations:   \n\n  # c\n   -   getPet  # d',
  ],
];
const fields = fc.constantFrom(...furtherFields);
const secrets = fc.oneof(
  { weight: 6, arbitrary: anyDigest.map((one) => `secrets:\n    - sha256: ${one}`) },
  {
    weight: 2,
    arbitrary: fc
      .tuple(anyDigest, anyDigest)
      .map(
        ([a, b]) =>
          `secrets:\n  - sha256: ${a}\n    created: 2026-01-02\n  - { sha256: ${b}, expires: 2027-01-31T12:00:00Z }`,
      ),
  },
  { weight: 2, arbitrary: anyDigest.map((one) => `secrets: [{ sha256: ${one} }, ]`) },
  { weight: 1, arbitrary: fc.constantFrom('secrets: []', 'secrets:', 'secrets: x', 'secrets: [{ sha256: ]') },
);
const maybe = (field: string, value: fc.Arbitrary<string>) =>
  fc.option(value, { freq: 1, nil: undefined }).map((one) => (one === undefined ? [] : [`${field}${one}`]));

/** Valid entries of a keys file. All these entries together are also valid. */
const soundEntries = [...'abcdef'].map((letter, index) => {
  const limited = index % 2 === 0 ? 'plan: enterprise, limits: { perMinute: 5, perDay: 10 }' : 'plan: free';
  const sha256 = digestOf(letter);
  if (index < 2) return `- { id: ${letter}, ${limited}, secrets: [{ sha256: ${sha256} }] }\n`;
  return `- id: ${letter}\n  ${limited.replace(', ', '\n  ')}\n  name: Acme ${letter}\n  secrets:\n    - sha256: ${sha256}\n`;
});
const soundEntry = fc.constantFrom(...soundEntries);
const oddEntry = fc
  .tuple(id, plan, maybe('name: ', name), maybe('limits: ', limits), maybe('', fields), secrets)
  .map(([key, onPlan, ...parts]) => `- ${[`id: ${key}`, `plan: ${onPlan}`, ...parts.flat()].join('\n  ')}\n`);
const linesBetween = [
  ...[
    '\n',
    '# a comment\n',
    '  # indented\n',
    '\r\n',
    '---\n',
    '...\n',
    '%YAML 1.2\n',
    '- \n',
    '-\n',
    '- 1\n',
    ' - x\n',
  ],
  ...[
    '\t\n',
    'x: y\n',
    '[]\n',
    '- - x\n',
    '- &all\n  id: q\n',
    '- *all\n',
    '- !t x\n',
    '- # c\n  id: r\n',
    '- |\n - x\n',
  ],
];
const between = fc.constantFrom(...linesBetween);
const odd = fc.oneof(oddEntry, between, soundEntry);
/** Lists of entries for random documents. Most of the documents are valid, and the documents of one test run are similar. */
const chunks = fc
  .tuple(
    fc.shuffledSubarray(soundEntries),
    fc.oneof({ weight: 2, arbitrary: fc.constant([]) }, fc.array(fc.tuple(fc.nat(6), odd), { maxLength: 2 })),
  )
  .map(([sound, others]) => others.reduce((all, [at, one]) => all.toSpliced(at, 0, one), sound));
/** Replaces or removes one character at a random position. */
const slip = fc.record({
  at: fc.nat(),
  insert: fc.constantFrom('', '', ' ', '\n', ':', '#', '"', '- ', '\r', '}'),
});
const document = fc
  .tuple(chunks, fc.option(slip, { freq: 1 }), fc.boolean())
  .map(([parts, slipped, isCrLf]) => {
    const text = parts.join('');
    const at = slipped === null ? 0 : slipped.at % (text.length + 1);
    const withSlip = slipped === null ? text : text.slice(0, at) + slipped.insert + text.slice(at + 1);
    return isCrLf && parts.length % 3 === 0 ? withSlip.replaceAll('\n', '\r\n') : withSlip;
  });

const folder = () => configFolder({ 'whole.yaml': mainFor('whole-keys.yaml') });
const mainFor = (keys: string) => `environment: test
baseUrl: https://api.example.com/v1
upstream: { url: http://backend:3000 }
plans:
  free: { perMinute: 60, perDay: 1000 }
  enterprise: custom
keys: ${keys}
api: openapi.yaml
`;

/** Returns the keys, or every problem. */
function outcome(loaded: Loaded, keysFile: string): object {
  const named = (text: string) => text.replaceAll(keysFile, 'KEYS');
  if (loaded.kind === 'invalid') return { problems: JSON.parse(named(JSON.stringify(loaded.problems))) };
  const { settings, warnings } = loaded;
  return {
    keys: keysView(settings.keys),
    lines: settings.keysFile?.lines,
    warnings: warnings.map(named).filter((one) => one.includes('KEYS')),
  };
}

test('reading a keys file entry by entry, and after edits only the changed entries, gives the same as parsing the whole file', async () => {
  const { file, pathOf, write } = folder();
  const env = { NAME: 'Acme' };
  let [valid, split] = [0, 0];
  const compare = (texts: readonly string[]) => {
    let before: ReadEntries | undefined;
    for (const text of texts) {
      write('keys.yaml', text);
      // The loader never splits a file with a byte order mark. The byte order mark does not change the lines and columns in
      // reports.
      write('whole-keys.yaml', `\uFEFF${text}`);
      const loaded = loadSettings({ file, env, before });
      const whole = loadSettings({ file: pathOf('whole.yaml'), env });
      expect(outcome(loaded, pathOf('keys.yaml'))).toEqual(outcome(whole, pathOf('whole-keys.yaml')));
      if (loaded.kind !== 'valid') continue;
      valid += 1;
      if (loaded.entries === undefined) continue;
      split += 1;
      before = loaded.entries;
    }
  };
  const [first = '', second = ''] = soundEntries;
  for (const lines of linesBetween) {
    compare([lines + first + second, first + lines + second, first + second + lines]);
  }
  await fc.assert(fc.property(fc.array(document, { minLength: 1, maxLength: 4 }), compare), {
    numRuns: Number(process.env.RUNS ?? 30),
  });
  // The comparison must also cover valid files, not only files with errors.
  expect(valid).toBeGreaterThan(20);
  expect(split).toBeGreaterThan(20);
});

/**
 * One entry for each generated value, with valid values in all other fields. Random entries often have several odd values, so
 * they do not test each odd value alone.
 */
const entriesWithOneOddValue = [
  ...ids.map((one) => `- id: ${one}\n  plan: free\n`),
  ...plansOfKeys.map((one) => `- id: a\n  plan: ${one}\n`),
  ...names.map((one) => `- id: a\n  name: ${one}\n  plan: free\n`),
  ...limitsOfKeys.map((one) => `- id: a\n  limits: ${one}\n  plan: free\n`),
  ...furtherFields.map((one) => `- id: a\n  plan: free\n  ${one}\n`),
];

test('an entry that is read without the YAML library has the same value as with it', async () => {
  let read = 0;
  const compare = (text: string) => {
    const plain = readPlainEntry(text);
    if (plain === undefined) return;
    read += 1;
    const parsed = parseDocument(text, { stringKeys: true });
    expect([text, ...parsed.errors, ...parsed.warnings]).toEqual([text]);
    expect(parsed.toJS()).toEqual([plain.value]);
  };
  for (const text of entriesWithOneOddValue) compare(text);
  await fc.assert(fc.property(fc.oneof(oddEntry, document), compare), { numRuns: 500 });
  expect(read).toBeGreaterThan(50);
});

test.each([
  [
    '- id: acme\n  plan: free # paid\n\n# x\n  name: "Acme: Ltd"\n',
    { id: 'acme', plan: 'free', name: 'Acme: Ltd' },
  ],
  ["- {a: [x, 'y, z', 3], b: { c: true }}  # d\n", { a: ['x', 'y, z', 3], b: { c: true } }],
  [
    '-   list:\n    - a: 1\n      b: 2026-01-01T00:00:00Z\n    - c',
    { list: [{ a: 1, b: '2026-01-01T00:00:00Z' }, 'c'] },
  ],
  ['- inner:\n    a: x:y\r\n    b: 12ab\n', { inner: { a: 'x:y', b: '12ab' } }],
])('an ordinary entry needs no library: %j', (text, value) => {
  expect(readPlainEntry(text)).toEqual({ value });
});

test.each([`name: "${variable}"`, `name: x${variable}`, `secrets: [{ sha256: '${variable}' }]`])(
  'an entry with a variable is parsed by the YAML library: %s',
  (field) => expect(readPlainEntry(`- id: acme\n  ${field}\n`)).toBeUndefined(),
);

test('a key whose id came from a variable is removed with its entry, even if the variable has changed', () => {
  const { file, write } = folder();
  const entry = (id: string, sha256 = digestOf('a')) =>
    `- { id: ${id}, plan: free, secrets: [{ sha256: ${sha256} }] }\n`;
  const load = (env: Record<string, string>, before?: ReadEntries) => {
    const loaded = loadSettings({ file, env, before });
    if (loaded.kind === 'invalid') throw new Error(JSON.stringify(loaded.problems));
    return { ids: [...loaded.settings.keys.ids()], entries: loaded.entries };
  };
  write('keys.yaml', entry('"$' + '{ID}"'));
  const first = load({ ID: 'one' });
  expect(first.ids).toEqual(['one']);
  const second = load({ ID: 'two' }, first.entries);
  expect(second.ids).toEqual(['two']);
  write('keys.yaml', entry('three', digestOf('b')));
  expect(load({ ID: 'two' }, first.entries).ids).toEqual(['three']);
});
