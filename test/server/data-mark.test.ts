import { expect, it, onTestFinished } from 'vitest';
import type { DataLost } from '../../gateway/fleet/kinds/stores.ts';
import { openRedis } from '../../gateway/redis/open-redis.ts';
import { watchDataMark } from '../../gateway/server/data-mark.ts';
import { freshPrefix } from '../support/redis.ts';
import { startRedis } from '../support/start-redis.ts';
import { tunedBounds } from '../support/tuned-bounds.ts';
import { patientStore } from '../support/tuning.ts';

it('a loss of the data in Redis is found once by every gateway, and a restart or another prefix is no loss', async () => {
  const bounds = tunedBounds({ ...patientStore, dataMarkIntervalMs: 20, dataLostShownMs: 60_000 });
  const server = await startRedis();
  onTestFinished(() => server.stop());
  const watch = (prefix: string) => {
    const records = openRedis({ url: server.url, prefix }, bounds);
    const lost: DataLost[] = [];
    const mark = watchDataMark({ records, onLost: (one) => lost.push(one), nowMs: Date.now, bounds });
    onTestFinished(() => {
      mark.close();
      records.close();
    });
    return { lost, mark, records };
  };
  const prefix = freshPrefix();
  const [one, two] = [watch(prefix), watch(prefix)];
  const marked = () => one.records.commands.get(`${prefix}:data-mark`).catch(() => undefined);
  await expect.poll(marked).toEqual(expect.any(String));
  const first = await marked();
  // Both gateways read the mark again.
  await new Promise((resolve) => setTimeout(resolve, 20 * 5));
  expect([one.lost, two.lost, one.mark.lostAtMs()]).toEqual([[], [], undefined]);

  const third = watch(prefix);
  await one.records.commands.flushall();
  await expect.poll(() => [one.lost.length, two.lost.length]).toEqual([1, 1]);
  expect(one.lost[0]?.mark).toBe(two.lost[0]?.mark);
  expect(await marked()).not.toBe(first);
  expect(one.mark.lostAtMs()).toBeGreaterThan(Date.now() - 60_000);
  // A gateway that starts afterwards does not know the earlier data.
  const late = watch(prefix);
  const other = watch(freshPrefix());
  await new Promise((resolve) => setTimeout(resolve, 20 * 5));
  expect([one.lost.length, late.lost, other.lost]).toEqual([1, [], []]);
  expect(third.lost.length).toBeLessThanOrEqual(1);
});
