import { readdirSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { withoutAlerts, withoutCapabilities, withoutLinks, withoutSettings } from './without-capabilities.ts';

const list = `import { type One, oneRows } from '../one/rows.ts';
import type { Row } from '../interfaces/rows.ts';
import { twoRows } from '../two/rows.ts';

/** The rows. */
export const rows: readonly Row[] = [
  oneRows,
  twoRows,
];
export const shapes = {
  ...twoRows,
};
export const late = [
  async () => (await import('../one/late.ts')).lateRows,
  async () => (await import('../two/late.ts')).lateRows,
];
`;

it('the lines of a capability go from a list, and the lines of all others stay', () => {
  expect(withoutCapabilities(list, ['one'])).toBe(`import type { Row } from '../interfaces/rows.ts';
import { twoRows } from '../two/rows.ts';

/** The rows. */
export const rows: readonly Row[] = [
  twoRows,
];
export const shapes = {
  ...twoRows,
};
export const late = [
  async () => (await import('../two/late.ts')).lateRows,
];
`);
});

it('a list is empty without its capabilities', () => {
  expect(withoutCapabilities(list, ['one', 'two'])).toBe(`import type { Row } from '../interfaces/rows.ts';

/** The rows. */
export const rows: readonly Row[] = [
];
export const shapes = {
};
export const late = [
];
`);
});

it('no list of the gateway imports a capability that is deleted', () => {
  const folder = new URL('../../gateway/capabilities/', import.meta.url);
  const names = readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && !['interfaces', 'lists'].includes(entry.name))
    .map(({ name }) => name);
  const lists = readdirSync(new URL('lists/', folder));
  const left = lists.flatMap((file) => {
    const text = withoutCapabilities(readFileSync(new URL(`lists/${file}`, folder), 'utf8'), names);
    return names.filter((name) => text.includes(`/${name}/`)).map((name) => `${file}: ${name}`);
  });
  expect(left).toEqual([]);
});

it('settings that the schema does not know go from a configuration, with all their lines', () => {
  const yaml = `# A comment.
environment: test
gone: 1 # why
also:
  gone: true

  list:
    - 1
plans:
  gone: custom
`;
  expect(withoutSettings(yaml, new Set(['environment', 'plans']))).toBe(`# A comment.
environment: test
plans:
  gone: custom
`);
});

it('links to deleted pages become text', () => {
  const page =
    'A [guard](guide/guard.md#limits), a [trial](guide/trial.md) and [RFC 9110](https://example.org/guard.md).';
  expect(withoutLinks(page, (path) => path === 'guide/guard.md')).toBe(
    'A guard, a [trial](guide/trial.md) and [RFC 9110](https://example.org/guard.md).',
  );
});

it('alerts go with the metrics that they read, and so do their tests', () => {
  const rules = `groups:
  - name: tollgate
    rules:
      - alert: Stays
        expr: tollgate_gone_too == 1
      - alert: Goes
        expr: max by (plan) (tollgate_gone) == 1

        annotations: { summary: x }
  - name: other
    rules: []
`;
  expect(withoutAlerts(rules, 'alert', ['tollgate_gone'])).toBe(`groups:
  - name: tollgate
    rules:
      - alert: Stays
        expr: tollgate_gone_too == 1
  - name: other
    rules: []
`);
  const tests = "tests:\n  - name: one\n    series: 'tollgate_gone{}'\n\n  - name: two\n    series: x\n";
  expect(withoutAlerts(tests, 'name', ['tollgate_gone'])).toBe('tests:\n  - name: two\n    series: x\n');
});
