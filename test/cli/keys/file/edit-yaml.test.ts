import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import { editYaml, type YamlEdit } from '../../../../gateway/cli/keys/file/edit-yaml.ts';

const disable: YamlEdit = { kind: 'set', path: [1], name: 'disabled', value: true, after: 'plan' };
const enable: YamlEdit = { kind: 'remove', path: [1], name: 'disabled', or: false };
const end: YamlEdit = {
  kind: 'set',
  path: [0, 'secrets', 0],
  name: 'expires',
  value: '2027-01-31',
  after: 'sha256',
};
const append: YamlEdit = { kind: 'append', path: [0, 'secrets'], entries: [{ sha256: 'new' }] };

function edited(text: string, ...edits: YamlEdit[]): string {
  const result = editYaml(text, edits);
  if (result.kind === 'refused') throw new Error(result.reason);
  return result.text;
}

/**
 * Lists of keys in the styles that people write. The edit disables the second key, and gives the first key an expiry and a secret.
 */
const styles: [style: string, before: string, after: string][] = [
  [
    'blocks with comments',
    `# Ours.\n- id: a   # first\n  plan: free\n  secrets:\n    - sha256: x # laptop\n    # - sha256: old\n\n# The second.\n- id: b\n  plan: 'pro'  # since May\n  # Note.\n  secrets: []\n# end\n`,
    `# Ours.\n- id: a   # first\n  plan: free\n  secrets:\n    - sha256: x # laptop\n      expires: 2027-01-31\n    - sha256: new\n    # - sha256: old\n\n# The second.\n- id: b\n  plan: 'pro'  # since May\n  disabled: true\n  # Note.\n  secrets: []\n# end\n`,
  ],
  [
    'one line a key',
    `- { id: a, plan: free, secrets: [{ sha256: x }] } # one\n- {id: b, plan: pro, secrets: []}\n`,
    `- { id: a, plan: free, secrets: [{ sha256: x, expires: 2027-01-31 }, { sha256: new }] } # one\n- {id: b, plan: pro, disabled: true, secrets: []}\n`,
  ],
  [
    'no line break at the end, and lists that are not indented',
    `- id: a\n  plan: free\n  secrets:\n  - sha256: x\n- secrets: []\n  id: b\n  plan: pro`,
    `- id: a\n  plan: free\n  secrets:\n  - sha256: x\n    expires: 2027-01-31\n  - sha256: new\n- secrets: []\n  id: b\n  plan: pro\n  disabled: true\n`,
  ],
  [
    'line breaks of Windows',
    `- id: a\r\n  plan: free\r\n  secrets:\r\n    - sha256: x\r\n- id: b\r\n  plan: pro\r\n  secrets: []\r\n`,
    `- id: a\r\n  plan: free\r\n  secrets:\r\n    - sha256: x\r\n      expires: 2027-01-31\r\n    - sha256: new\r\n- id: b\r\n  plan: pro\r\n  disabled: true\r\n  secrets: []\r\n`,
  ],
  [
    'a file that begins with a byte order mark, as editors of Windows write it',
    `\ufeff- id: a\n  plan: free\n  secrets:\n    - sha256: x\n- id: b\n  plan: pro\n  secrets: []\n`,
    `\ufeff- id: a\n  plan: free\n  secrets:\n    - sha256: x\n      expires: 2027-01-31\n    - sha256: new\n- id: b\n  plan: pro\n  disabled: true\n  secrets: []\n`,
  ],
  [
    'one flow over several lines, with a comma at its end',
    `[\n  { id: a, plan: free,\n    secrets: [\n      { sha256: x }, # laptop\n    ] },\n  { plan: pro, # b\n    id: b, secrets: [] },\n]\n`,
    `[\n  { id: a, plan: free,\n    secrets: [\n      { sha256: x, expires: 2027-01-31 }, { sha256: new }, # laptop\n    ] },\n  { plan: pro, disabled: true, # b\n    id: b, secrets: [] },\n]\n`,
  ],
  [
    'values that are there already',
    `- id: a\n  plan: free\n  secrets: [{ sha256: x, expires: "2026-12-01" }]\n- id: b\n  plan: pro\n  disabled: false # for now\n  secrets: []\n`,
    `- id: a\n  plan: free\n  secrets: [{ sha256: x, expires: "2027-01-31" }, { sha256: new }]\n- id: b\n  plan: pro\n  disabled: true # for now\n  secrets: []\n`,
  ],
];

describe('editYaml', () => {
  it.each(styles)('makes only the requested change in %s', (_, before, after) => {
    expect(edited(before, disable, end, append)).toBe(after);
  });

  it.each(styles.slice(0, 5))('restores the text when it removes what it added: %s', (_, before) => {
    const kept = before.endsWith('\n') ? before : `${before}\n`;
    expect(edited(edited(before, disable), enable)).toBe(kept);
  });

  it.each([
    ['a comment behind it', '  disabled: true # did not pay\n', '  disabled: false # did not pay\n'],
    ['the mark of the entry before it', '- disabled: true\n  id: b\n', '- disabled: false\n  id: b\n'],
  ])('sets a field to false that it cannot remove alone: %s', (_, written, after) => {
    const head = written.startsWith('-') ? '- id: a\n' : '- id: a\n- id: b\n';
    expect(edited(head + written, enable)).toBe(head + after);
  });

  it.each([
    [
      'a value that others share',
      '- &a { id: a }\n- { id: b, plan: pro, disabled: &d false, x: *d }\n',
      disable,
    ],
    ['a mapping that is written elsewhere', '- &a { id: a, plan: pro }\n- *a\n', disable],
    ['a mapping that others share', '- { id: a }\n- &b { id: b, plan: pro }\n- *b\n', disable],
    [
      'a block of text as the field before',
      '- id: a\n- id: b\n  plan: |\n    pro\n\n\n  secrets: []\n',
      disable,
    ],
    ['no list', 'id: a\n', append],
    ['a field that is not there', '- id: a\n- id: b\n', enable],
  ])('refuses %s, or edits it correctly', (_, text, edit) => {
    const result = editYaml(text, [edit]);
    if (result.kind === 'refused') expect(result.reason).toMatch(/^\S/);
    else expect(parse(result.text)).toEqual(parse(text).with(1, { ...parse(text)[1], disabled: true }));
  });

  it('gives the data of the text with the edits, for any style of a list', () => {
    const word = fc.stringMatching(/^[a-z#: "'-]{1,12}$/);
    const secret = fc.record({ sha256: word, created: word, expires: word }, { requiredKeys: ['sha256'] });
    const key = fc.record(
      {
        id: word,
        plan: word,
        name: word,
        disabled: fc.boolean(),
        limits: fc.record({ perDay: fc.nat(9), perMinute: fc.nat(9) }),
        addresses: fc.array(word, { minLength: 1, maxLength: 3 }),
        secrets: fc.array(secret, { maxLength: 3 }),
      },
      { requiredKeys: ['id', 'plan', 'secrets'] },
    );
    const style = fc.record({
      collectionStyle: fc.constantFrom('any' as const, 'flow' as const),
      indentSeq: fc.boolean(),
      lineWidth: fc.constantFrom(0, 20),
      defaultStringType: fc.constantFrom('PLAIN' as const, 'QUOTE_DOUBLE' as const, 'QUOTE_SINGLE' as const),
      indent: fc.integer({ min: 2, max: 5 }),
    });
    fc.assert(
      fc.property(fc.array(key, { minLength: 1, maxLength: 4 }), style, fc.nat(), (keys, how, choice) => {
        const index = choice % keys.length;
        const edits: YamlEdit[] = (keys[index]?.secrets ?? []).map((_, position) => ({
          kind: 'set',
          path: [index, 'secrets', position],
          name: 'expires',
          value: '2027-01-31T00:00:00Z',
          after: 'sha256',
        }));
        edits.push({ kind: 'set', path: [index], name: 'disabled', value: true, after: 'plan' });
        const changes = [{ from: '2027-01-01', plan: 'pro', limits: { perDay: 5 } }];
        edits.push({ kind: 'set', path: [index], name: 'limits', value: { perDay: 5 }, after: 'plan' });
        edits.push({ kind: 'set', path: [index], name: 'name', value: `it's "new": #1`, after: 'plan' });
        edits.push({ kind: 'set', path: [index], name: 'changes', value: changes, after: 'plan' });
        if (keys[index]?.addresses) edits.push({ kind: 'remove', path: [index], name: 'addresses' });
        edits.push({ kind: 'append', path: [index, 'secrets'], entries: [{ sha256: 'new' }] });
        edits.push({ kind: 'append', path: [], entries: [{ id: 'one' }, { id: 'two' }] });
        const text = stringify(keys, how);
        const result = editYaml(text, edits);
        const expected = structuredClone(keys) as Record<string, unknown>[];
        const target = expected[index] as {
          secrets: Record<string, unknown>[];
          disabled: boolean;
          addresses?: unknown;
        };
        for (const each of target.secrets) each.expires = '2027-01-31T00:00:00Z';
        target.disabled = true;
        Object.assign(target, { limits: { perDay: 5 }, name: `it's "new": #1`, changes });
        delete target.addresses;
        target.secrets.push({ sha256: 'new' });
        expected.push({ id: 'one' }, { id: 'two' });
        expect(result.kind === 'refused' ? result.reason : parse(result.text)).toEqual(expected);
      }),
      { numRuns: 200 },
    );
  });
});
