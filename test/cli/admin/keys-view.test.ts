import { expect, test } from 'vitest';
import { listCsv } from '../../../gateway/admin/words/csv.js';
import { keyList } from '../../../gateway/admin/words/keys.js';
import { listTable, sayAt } from '../../../gateway/cli/output/list.ts';

test('keys list shortens names that do not fit, but no figures', () => {
  const key = {
    id: `key-${'x'.repeat(90)}`,
    name: 'The company that uses it, '.repeat(4),
    plan: 'enterprise',
    state: 'ok' as const,
    source: 'file' as const,
    windows: [{ name: 'month' as const, limit: 1_000_000, used: 846_123, remaining: 153_877, resetMs: 0 }],
    offered24h: 1_269,
    refused24h: 0,
    lastSeenMs: 0,
  };
  const [, row = ''] = listTable(keyList, [key], { columns: 104, paint: (_tone, text) => text }, 60_000);
  expect(row).toMatch(/^key-x+…x+ +\S+ +ok +month 846,123\/1,000,000 +0 +1,269 +1 min ago$/);
});

test.each([
  [60, 'KEY PLAN STATE FULLEST WINDOW'],
  [80, 'KEY PLAN STATE FULLEST WINDOW REFUSED 24H REQUESTS 24H'],
  [100, 'KEY PLAN STATE FULLEST WINDOW REFUSED 24H REQUESTS 24H LAST SEEN'],
  [120, 'KEY PLAN STATE FULLEST WINDOW REFUSED 24H REQUESTS 24H LAST SEEN NAME'],
  [200, 'KEY PLAN STATE FULLEST WINDOW REFUSED 24H REQUESTS 24H LAST SEEN NAME'],
])('keys list at %i columns shows readable cells: %s', (columns, titles) => {
  const key = {
    id: 'initech-production-eu-west',
    name: 'Initech GmbH & Co. KG, production Europe',
    plan: 'enterprise-annual-2026',
    state: 'unused' as const,
    source: 'file' as const,
    windows: [{ name: 'minute' as const, limit: 6_000, used: 0, remaining: 6_000, resetMs: 0 }],
    offered24h: 0,
    refused24h: 0,
  };
  const [title = '', row = '', ...rest] = listTable(
    keyList,
    [key],
    { columns, paint: (_tone, text) => text },
    60_000,
  );
  expect(title.replace(/ +/g, ' ')).toBe(titles);
  expect(Math.max(...[title, row, ...rest].map((line) => line.length))).toBeLessThanOrEqual(columns);
  const [id = '', plan = ''] = row.split(/ {2,}/);
  expect(id.length).toBeGreaterThanOrEqual(14);
  expect(plan.length).toBeGreaterThanOrEqual(10);
});

test('the CSV of keys has the time of the newest secret, and an empty text for an unknown time', () => {
  const key = { id: 'a', plan: 'free', state: 'unused' as const, source: 'file' as const, windows: [] };
  const page = { keys: [{ ...key, newestSecretAt: '2026-03-01T00:00:00.000Z' }, key] };
  const lines = listCsv(keyList, page, sayAt(0));
  expect(lines.map((line) => line.split(',').at(-1))).toEqual([
    'newest_secret',
    '2026-03-01T00:00:00.000Z',
    '',
  ]);
});
