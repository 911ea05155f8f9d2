import { globSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { expect, it } from 'vitest';
import { defaultBounds } from '../../gateway/shared/timeouts-and-sizes.ts';
import { capabilityCases } from '../support/capability-cases.ts';

const root = new URL('../../gateway/', import.meta.url).pathname;
/** Matches `local <names> = KEYS[…], …`, which makes each name an alias of a declared key. */
const aliases = /local ([\w, ]+) = KEYS\[\w+\](?:, KEYS\[\w+\])*$/gm;
/** The gateway puts this text before each script of its folder. */
const queueState = 'notify/queue/scripts/queue-state.lua';
/** The functions of the chapters get the name of the hash as the argument `key`. */
const chapters = 'quota';

it('no script touches a key that it does not name, as compatible servers demand', () => {
  const calls: string[] = [];
  const undeclared: string[] = [];
  for (const file of globSync('**/*.{lua,ts}', { cwd: root })) {
    const text = readFileSync(root + file, 'utf8');
    const before = dirname(file) === dirname(queueState) ? readFileSync(root + queueState, 'utf8') : '';
    const named = new Set(
      [...`${before}\n${text}`.matchAll(aliases)].flatMap(([, names = '']) => names.split(', ')),
    );
    if (dirname(file) === chapters) named.add('key');
    for (const [call, command, key = ''] of text.matchAll(/redis\.p?call\('(\w+)'(?:, *([^,)\s]+))?/g)) {
      calls.push(call);
      const isNamed = /^KEYS\[\w+\]$/.test(key) || named.has(key);
      if (command !== 'TIME' && !isNamed) undeclared.push(`${file}: ${call}`);
    }
  }
  expect(calls.length).toBeGreaterThan(30);
  // A call adds to the records of several slots. It declares all of them, or in a Cluster only the first, because a Cluster accepts no more.
  // A server that refuses an undeclared key gets a call for each record.
  const ofRecord = [
    "redis.pcall('HMGET', name",
    ...['DEL', 'HSET', 'EXPIREAT'].map((one) => `redis.call('${one}', name`),
  ];
  expect(undeclared).toEqual(ofRecord.map((call) => `usage/store/add-counts.lua: ${call}`));
});

it('the chapters of a decision get only declared keys', () => {
  const given: string[] = [];
  // Each function with the parameter `key` gets it as its first argument.
  const keyed = [...chaptersText().matchAll(/local function (\w+)\(key\b/g)].map(([, name]) => name);
  const calls = new RegExp(`(?<!function )\\b(?:${keyed.join('|')})\\(([\\w[\\]]+)`, 'g');
  for (const file of globSync('**/*.{lua,ts}', { cwd: root })) {
    const text = readFileSync(root + file, 'utf8');
    const ofTypeScript = [...text.matchAll(/scriptWithChapters\(\s*'([^']+)'/g)].map(([, script]) => script);
    // The header of a script says that it calls functions of the chapters.
    const isPrefixed = dirname(file) === chapters || text.includes('calls functions of the chapters');
    const scripts = file.endsWith('.lua') ? (isPrefixed ? text : '') : ofTypeScript.join('\n');
    for (const [, first = ''] of scripts.matchAll(calls)) given.push(first);
  }
  expect(keyed.length).toBeGreaterThan(8);
  // `decideKeys` passes each element of KEYS to `decideKey`.
  expect(new Set(given)).toEqual(new Set(['key', 'KEYS[1]', 'KEYS[3]']));
});

it('no script needs keys of several slots, which a Redis Cluster keeps apart', async () => {
  const ofCapabilities = (await capabilityCases()).flatMap(({ redisKeys }) => redisKeys?.inOneSlot ?? []);
  const several = new Set<string>();
  for (const file of globSync('**/*.{lua,ts}', { cwd: root })) {
    const text = readFileSync(root + file, 'utf8');
    for (const [use] of text.matchAll(/KEYS\[[^1\]]\w*\]|numberOfKeys: (?!1,)\w+/g))
      several.add(`${file}: ${use}`);
  }
  expect([...several].toSorted()).toEqual([
    ...ofCapabilities.toSorted(),
    // Both names have the same hash tag.
    'fleet/add-report.lua: KEYS[2]',
    'fleet/note-seen.lua: KEYS[2]',
    'fleet/presence.ts: numberOfKeys: 2',
    'fleet/shared-list.ts: numberOfKeys: 2',
    // Both names have the key's id as their hash tag.
    'keys/directory/store/change-record.lua: KEYS[2]',
    'keys/directory/store/change-record.lua: KEYS[3]',
    // All keys of the queue have the same hash tag.
    'notify/queue/redis-queue.ts: numberOfKeys: number',
    ...['add-event.lua: KEYS[5]', 'add-event.lua: KEYS[index]', 'claim-due.lua: KEYS[5]'].map(inQueue),
    ...['leave-receivers.lua: KEYS[5]', 'note-receivers.lua: KEYS[5]'].map(inQueue),
    ...['2', '3', '4', 'i'].map((key) => inQueue(`queue-state.lua: KEYS[${key}]`)),
    // All keys of health checks have the same hash tag.
    'request/forward/upstream/fleet/count-checkers.lua: KEYS[i]',
    'request/forward/upstream/fleet/fleet-health.ts: numberOfKeys: number',
  ]);
});

it('the script that decides removes the mark of a leak after the same time as the gateway', () => {
  expect(chaptersText()).toContain(`local leakNotedMs = ${defaultBounds.leakNotedMs}\n`);
});

function chaptersText(): string {
  return globSync('*.lua', { cwd: root + chapters })
    .map((file) => readFileSync(`${root}${chapters}/${file}`, 'utf8'))
    .join('\n');
}

function inQueue(use: string): string {
  return `${dirname(queueState)}/${use}`;
}
