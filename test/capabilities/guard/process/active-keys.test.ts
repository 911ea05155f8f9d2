import { expect, it, onTestFinished } from 'vitest';
import { createActiveKeys } from '../../../../gateway/capabilities/guard/process/active-keys.ts';
import { keysForRevert } from '../../../../gateway/capabilities/guard/process/decide-guard.ts';
import { guardKeys } from '../../../../gateway/capabilities/guard/process/redis-keys.ts';
import { connectRedis, removeAll } from '../../../support/connect-redis.ts';
import { freshPrefix, redisUrl } from '../../../support/redis.ts';
import { tunedBounds } from '../../../support/tuned-bounds.ts';
import { patientStore } from '../../../support/tuning.ts';

const bounds = tunedBounds(patientStore);
const hourMs = 3_600_000;
const startMs = Date.parse('2026-11-28T00:00:00Z');

it.each([
  ['a plan with one key', 1, 1, 1],
  ['a plan whose only active key is in the directory', 0, 1, 1],
  ['one active key of seven', 7, 1, 2],
  ['no active key of seven', 7, 0, 2],
  ['three active keys', 7, 3, 2],
  ['seven active keys', 7, 7, 4],
  ['more active keys', 100, 10, 5],
  ['an unknown number of active keys', 100, Number.POSITIVE_INFINITY, 5],
])('the keys that a revert needs: %s', (_, keys, active, wanted) => {
  expect(keysForRevert(keys, active)).toBe(wanted);
});

async function startTwo() {
  const redis = await connectRedis({ prefix: freshPrefix(), place: { url: redisUrl() }, bounds });
  onTestFinished(() => removeAll(redis));
  const [one, other] = [createActiveKeys({ redis, bounds }), createActiveKeys({ redis, bounds })];
  return { redis, one, other, name: guardKeys.activeKeys.name(redis.prefix, 'free') };
}

it('processes count the keys of all processes, also after a restart', async () => {
  const { redis, one, other } = await startTwo();
  one.note('free', 'a', startMs);
  one.note('free', 'b', startMs);
  other.note('free', 'b', startMs + 1);
  other.note('free', 'c', startMs + 1);
  await one.count([], startMs);
  expect((await other.count(['free', 'pro'], startMs)).values().toArray()).toEqual([3, 0]);
  const restarted = createActiveKeys({ redis, bounds });
  expect((await restarted.count(['free'], startMs + hourMs)).get('free')).toBe(3);
  expect((await restarted.count(['free'], startMs + 25 * hourMs)).get('free')).toBe(0);
});

it('Redis keeps the ten latest keys, and a day after the last note nothing', async () => {
  const { redis, one, other, name } = await startTwo();
  for (let key = 0; key < 1_000; key++) (key % 2 ? one : other).note('free', `key-${key}`, startMs + key);
  for (const each of [one, other]) {
    expect((await each.count(['free'], startMs)).get('free')).toBe(10);
  }
  expect(await redis.commands.zcard(name)).toBe(10);
  expect(await redis.commands.pttl(name)).toBeGreaterThan(bounds.guardActiveMs - 60_000);
});

it('a process that noted enough keys sends nothing for ten minutes', async () => {
  const { redis, one, name } = await startTwo();
  for (let key = 0; key < 10; key++) one.note('free', `key-${key}`, startMs);
  await one.count([], startMs);
  await redis.commands.del(name);
  for (let key = 0; key < 20; key++) one.note('free', `key-${key}`, startMs + bounds.guardActiveRenewMs - 1);
  await one.count([], startMs);
  expect(await redis.commands.exists(name)).toBe(0);
  one.note('free', 'key-15', startMs + bounds.guardActiveRenewMs);
  await one.count([], startMs);
  expect(await redis.commands.zrange(name, 0, '-1')).toEqual(['key-15']);
});
