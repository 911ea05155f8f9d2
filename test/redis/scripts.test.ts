import { globSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

const root = new URL('../../gateway/', import.meta.url).pathname;
/** `local <name> = KEYS[…]`, or any other alias. */
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

it('no script needs several keys, which compatible servers may keep apart', () => {
  const several: string[] = [];
  for (const file of globSync('**/*.{lua,ts}', { cwd: root })) {
    const text = readFileSync(root + file, 'utf8');
    for (const [use] of text.matchAll(/KEYS\[[^1\]]\w*\]|numberOfKeys: (?!1,)\w+/g))
      several.push(`${file}: ${use}`);
  }
  // Of those that it is given, it decides each on its own.
  expect(several).toEqual(['limit/store/decide-quota.lua: KEYS[each]']);
});
