import { globSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

const root = new URL('../../gateway/', import.meta.url).pathname;
/** Matches `local <name> = KEYS[…]`, which makes `<name>` an alias of a declared key. */
const aliases = /local (\w+) = KEYS\[\w+\]/g;

it('no script touches a key that it does not name, as compatible servers demand', () => {
  const calls: string[] = [];
  const undeclared: string[] = [];
  for (const file of globSync('**/*.{lua,ts}', { cwd: root })) {
    const text = readFileSync(root + file, 'utf8');
    const named = new Set([...text.matchAll(aliases)].map(([, name]) => name));
    for (const [call, command, key = ''] of text.matchAll(/redis\.p?call\('(\w+)'(?:, *([^,)\s]+))?/g)) {
      calls.push(call);
      const isNamed = /^KEYS\[\w+\]$/.test(key) || named.has(key);
      if (command !== 'TIME' && !isNamed) undeclared.push(`${file}: ${call}`);
    }
  }
  expect(calls.length).toBeGreaterThan(30);
  expect(undeclared).toEqual([]);
});

it('no script needs keys of several slots, which a Redis Cluster keeps apart', () => {
  const several = new Set<string>();
  for (const file of globSync('**/*.{lua,ts}', { cwd: root })) {
    const text = readFileSync(root + file, 'utf8');
    for (const [use] of text.matchAll(/KEYS\[[^1\]]\w*\]|numberOfKeys: (?!1,)\w+/g))
      several.add(`${file}: ${use}`);
  }
  expect([...several].toSorted()).toEqual([
    // Both names have the same hash tag.
    'fleet/add-report.lua: KEYS[2]',
    'fleet/shared-list.ts: numberOfKeys: 2',
    // Both names have the key's id as their hash tag.
    'keys/directory/store/change-record.lua: KEYS[2]',
    // The caller passes only keys of one slot to the script.
    'request/limit/store/decide-quota.lua: KEYS[each]',
  ]);
});
