import { expect, test } from 'vitest';
import { keyList } from '../../../gateway/admin/words/keys.js';
import { listTable } from '../../../gateway/cli/output/list.ts';

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
  expect(row).toMatch(/^key-x+…x+ +\S+ +ok +month 846,123\/1,000,000 +1,269 +0 +1 min ago +The/);
});
