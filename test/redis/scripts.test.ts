import { globSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { expect, it } from 'vitest';
import { defaultBounds } from '../../gateway/shared/timeouts-and-sizes.ts';

const root = new URL('../../gateway/', import.meta.url).pathname;
/** Matches `local <names> = KEYS[…], …`, which makes each name an alias of a declared key. */
const aliases = /local ([\w, ]+) = KEYS\[\w+\](?:, KEYS\[\w+\])*$/gm;
/** The gateway puts this text before each script of its folder. */
const queueState = 'notify/queue/scripts/queue-state.lua';

it('no script touches a key that it does not name, as compatible servers demand', () => {
  const calls: string[] = [];
  const undeclared: string[] = [];
  for (const file of globSync('**/*.{lua,ts}', { cwd: root })) {
    const text = readFileSync(root + file, 'utf8');
    const before = dirname(file) === dirname(queueState) ? readFileSync(root + queueState, 'utf8') : '';
    const named = new Set(
      [...`${before}\n${text}`.matchAll(aliases)].flatMap(([, names = '']) => names.split(', ')),
    );
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
    // Both names have the key's id as their hash tag.
    'request/limit/credit/give-back.lua: KEYS[2]',
    'request/limit/credit/redis-credits.ts: numberOfKeys: 2',
    // The caller passes only keys of one slot to the script.
    'request/limit/store/decide-quota.lua: KEYS[each]',
  ]);
});

it('the script that decides removes the mark of a leak after the same time as the gateway', () => {
  const script = readFileSync(`${root}request/limit/store/decide-quota.lua`, 'utf8');
  expect(script).toContain(`local leakNotedMs = ${defaultBounds.leakNotedMs}\n`);
});

function inQueue(use: string): string {
  return `${dirname(queueState)}/${use}`;
}
