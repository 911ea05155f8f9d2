import fc from 'fast-check';
import { expect, test } from 'vitest';
import { loadSettings } from '../../gateway/config/load-settings.ts';
import { formatProblems } from '../../gateway/config/problems/format-problems.ts';
import { configFolder, digestOf, mainDocument } from '../support/config-folder.ts';

/** All reports of the gateway about a configuration: the text report, and the structured problems for the log. */
function reportOn(files: Readonly<Record<string, string>>) {
  const { file, pathOf } = configFolder(files);
  const loaded = loadSettings({ file, env: {} });
  if (loaded.kind === 'valid') return { text: '', all: '' };
  const text = formatProblems(loaded.problems).replaceAll(pathOf('.').slice(0, -1), '');
  return { text, all: `${text}\n${JSON.stringify(loaded.problems)}` };
}

const inKeysFile = (keys: string) => ({ 'keys.yaml': keys });
const inMainFile = (keys: string) => ({
  'tollgate.yaml': mainDocument.replace(/keys: .*/, `keys:\n${keys}`),
});

/** Asserts that the report has no four consecutive characters of the secret. */
function expectNothingOf(secret: string, report: string): void {
  for (let start = 0; start + 4 <= secret.length; start++) {
    expect(report).not.toContain(secret.slice(start, start + 4));
  }
}

const key = (rest: string) => `- { id: acme, plan: free, ${rest} }\n`;

/** Places where an operator may write a secret (here X) by mistake. Each of these texts makes the list of keys invalid. */
const mistakes: readonly (readonly [where: string, keys: string])[] = [
  ['as an entry of the list', '- X\n'],
  ['as an entry in brackets', '[X]\n'],
  ['in place of the list', 'X\n'],
  ['in quotes', `- 'X'\n- "X"\n`],
  ['as the name of a field', '{ X: free }\n'],
  ['as the name of a field of a key', `- id: acme\n  plan: free\n  X:\n    plan: free\n`],
  ['as a name without a value', key('secrets: [{ X }]')],
  ['as an entry of secrets', key('secrets: [X]')],
  ['as an entry of secrets, on a line of its own', '- id: acme\n  plan: free\n  secrets:\n    - X\n'],
  ['in place of secrets', key('secrets: X')],
  ['in place of the digest', key('secrets: [{ sha256: X }]')],
  ['in place of the digest, as JSON', `[{"id":"acme","plan":"free","secrets":[{"sha256":"X"}]}]\n`],
  [
    'in place of the digest, below its name',
    '- id: acme\n  plan: free\n  secrets:\n    - sha256: >\n        X\n',
  ],
  ['under a name of their own', key('secret: X')],
  ['under another name of their own', key('secrets: [{ apiKey: X }]')],
  ['as an expiry', key(`secrets: [{ sha256: ${digestOf('a')}, expires: X }]`)],
  ['as limits', key('secrets: [], limits: X')],
  ['as a limit', key('secrets: [], limits: { perMinute: X, perDay: 1 }')],
  ['as disabled', key('secrets: [], disabled: X')],
  ['as an anchor, an alias and a tag', '- &X !X [*X]\n'],
  ['of ours as the id', `- { id: tg_X, plan: fre, secrets: [] }\n`],
  ['in a comment', `- { id: acme, plan: fre, secrets: [] } # X\n`],
  ['in the name, behind a fault', `- { id: acme, plan: fre, name: X, secrets: [] }\n`],
  ['behind the id', `- id: acme, X\n  plan: free\n`],
  ['below the id', `- id: acme\n    X\n  plan: free\n`],
  ['twice', key('secrets: [{ X: 1, X: 1 }]')],
  ['where a bracket is missing', key('secrets: [{ sha256: X }')],
  ['where a quote is missing', key('secrets: [{ sha256: "X }]')],
  ['where a tab indents', `- id: acme\n  secrets:\n\t- X\n`],
  ['where an indent is wrong', `- id: acme\n  secrets:\n - X\n`],
  ['behind the mark of a block', `- id: acme\n  secrets: |X\n`],
  ['behind a closed list', `- id: acme\n  secrets: [] X\n`],
  ['behind a colon too many', `- id: acme: X\n`],
  ['as a directive', `%X\n---\n- 1\n`],
  ['after an escape', `- "\\X"\n`],
];

const secrets = ['PLAINSECRET', 'tg_Ab1Cd2', 'dGhlIHNlY3JldA==', 'pa/ss,wo+1', 'k9.Zr-7_q', digestOf('b')];

test.each(mistakes)('a secret written %s is in no report', (_, keys) => {
  for (const secret of secrets) {
    const list = keys.replaceAll('X', secret);
    for (const files of [inKeysFile(list), inMainFile(list.replace(/^(?=.)/gm, '  '))]) {
      const { text, all } = reportOn(files);
      // In some places of the keys file, a digest is valid and the report lists no problem. Any other secret
      // always causes a problem.
      if (secret !== digestOf('b')) expect(text).toMatch(/^\S+:\d+:\d+: /);
      expectNothingOf(secret, all);
    }
  }
});

test.each([
  ['in place of the path', 'keys: X'],
  ['in a list on the same line', 'keys: [X]'],
  ['as an entry at the margin', 'keys:\n- X'],
  ['under a misspelt name', 'kyes: [X]'],
  ['under a name of their own', 'apiKeys: [X]'],
  ['under a name of their own, below it', 'apiKeys:\n  - X'],
  ['where `keys` is indented by mistake', ' keys: [X]'],
  ['where a line break is missing', 'addressBucket: { perMinute: 1 } keys: [X]'],
  ['where a bracket is missing', 'keys: [X'],
  ['where `keys` stands twice', 'keys: [X]\nkeys: [X]'],
  ['beside a redis url', 'redis: { url: "redis://me:X@redis", x: 1 }'],
  ['in a redis url, with a comma', 'redis:\n  url: redis://me:a,X@redis /'],
  ['in the parameters of a redis url', 'redis: { url: "redis://redis?password=X", x: 1 }'],
  ['as a password of redis', 'redis: { url: redis://redis, password: X }'],
])('a secret written %s of the main file is in no report', (_, lines) => {
  for (const secret of secrets) {
    const written = lines.replaceAll('X', secret);
    const { text, all } = reportOn({ 'tollgate.yaml': mainDocument.replace('keys: keys.yaml', written) });
    expect(text).not.toBe('');
    expectNothingOf(secret, all);
  }
});

test('a keys file that is configured as the API document is in no report', () => {
  const { text, all } = reportOn({
    'tollgate.yaml': mainDocument.replace('openapi.yaml', 'keys.yaml'),
    'keys.yaml': '- PLAINSECRET\n',
  });
  expect(text).toContain('keys.yaml:1:1: an OpenAPI document needs `paths`');
  expectNothingOf('PLAINSECRET', all);
});

test('a random secret at any place is in no report', () => {
  const secret = fc.string({
    unit: fc.constantFrom(...'abcXYZ019_-+/=.~!$%^;<'),
    minLength: 8,
    maxLength: 40,
  });
  fc.assert(
    fc.property(secret, fc.constantFrom(...mistakes), (written, [, keys]) => {
      const { all } = reportOn(inKeysFile(keys.replaceAll('X', () => written)));
      expect(all).not.toContain(written);
    }),
    { numRuns: 100 },
  );
});

test.each([
  [
    'ids, plans and limits',
    `- { id: acme, plan: "fre", name: Acme Ltd, limits: { perMinute: 0.5, perDay: 10 }, disabled: true, secrets: [] }`,
    `- { id: acme, plan: "fre", name: **** ***, limits: { perMinute: 0.5, perDay: 10 }, disabled: true, secrets: [] }`,
  ],
  [
    'a date, a variable and a misspelt name',
    `- { id: acme, plan: fre, secrets: [{ sha265: abc, sha256: "\${DIGEST}", expires: 2027-01-31 }] }`,
    `- { id: acme, plan: fre, secrets: [{ sha265: ***, sha256: ***********, expires: 2027-01-31 }] }`,
  ],
  [
    'JSON',
    `- {"id":"acme","plan":"fre","secrets":[{"sha256":"abc"}]}`,
    `- {"id":"acme","plan":"fre","secrets":[{"sha256":*****}]}`,
  ],
])('a masked line with %s keeps its harmless parts and its length', (_, line, shown) => {
  const { text } = reportOn(inKeysFile(`${line}\n`));
  expect(text).toContain(`  1 | ${shown}\n`);
  expect(shown).toHaveLength(line.length);
});

test('the caret of a report is below the masked secret', () => {
  expect(reportOn(inKeysFile('- PLAINSECRET\n')).text).toBe(
    'keys.yaml:1:3: `[0]` must be a key: a mapping with id, plan and secrets\n  1 | - ***********\n    |   ^',
  );
});
