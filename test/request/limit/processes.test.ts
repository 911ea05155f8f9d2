import { fork } from 'node:child_process';
import { once } from 'node:events';
import { describe, expect, it } from 'vitest';
import { connectRedis, removeAll } from '../../support/connect-redis.ts';
import { freshWindows } from '../../support/fresh-windows.ts';
import { freshPrefix } from '../../support/redis.ts';
import { allRedisForms, startForm, tagsOf } from '../../support/start-form.ts';
import type { Flooded, FloodedKey, FloodOptions } from './flooding-process.ts';

/** Runs `flooding-process.ts`. @returns the outcomes of each key */
async function flood(options: FloodOptions): Promise<readonly Flooded[]> {
  const child = fork(new URL('flooding-process.ts', import.meta.url), [JSON.stringify(options)]);
  const [flooded] = await once(child, 'message');
  await once(child, 'exit');
  return flooded as Flooded[];
}

const keys: readonly FloodedKey[] = [
  { id: 'equal', perMinute: 5_000, costs: [1] },
  { id: 'mixed', perMinute: 5_000, costs: [1, 2, 5] },
  // Every cost is even, so the last unit of an odd limit is not enough for any request.
  { id: 'dear', perMinute: 5_001, costs: [2, 4] },
];

const groups = {
  reports: { operations: ['export', 'create'], perMinute: 2_003 },
  big: { operations: ['create', 'delete'], perMinute: 1_501 },
};
const keyWithGroups: FloodedKey = {
  id: 'groups',
  perMinute: 6_007,
  costs: [0, 1, 2, 3, 4, 5, 6, 7],
  groups,
};

for (const form of allRedisForms) {
  describe(`three processes with clocks minutes apart, on ${form.name}`, { tags: tagsOf(form) }, () => {
    const place = startForm(form);

    it('together admit exactly the limit, and leave units only where no request fits', async () => {
      // The windows have just begun on the right clock. On the slow clock, the previous windows have not yet
      // ended.
      const windowsMs = freshWindows(Date.now());
      const prefix = freshPrefix();
      const shared = { place: place(), prefix, keys: [...keys, keyWithGroups], requests: 4_000, windowsMs };
      const processes = await Promise.all([-90_000, 0, 90_000].map((skewMs) => flood({ ...shared, skewMs })));
      const redis = await connectRedis({ prefix, place: place() });
      for (const [at, { id, perMinute, costs }] of keys.entries()) {
        const sum = (name: Exclude<keyof Flooded, 'unitsIn'>) =>
          processes.reduce((total, of) => total + (of[at]?.[name] ?? 0), 0);
        const hash = await redis.commands.hgetall(`${prefix}:{${id}}`);
        const units = perMinute - (perMinute % Math.min(...costs));
        expect([id, sum('units'), sum('refusedWithRoom')]).toEqual([id, units, 0]);
        expect([id, sum('admitted') + sum('refused')]).toEqual([id, 12_000]);
        expect([id, hash.minuteUsed, hash.dayUsed]).toEqual([id, String(units), String(units)]);
      }
      const ofGroups = processes.map((of) => of[keys.length]);
      const hash = await redis.commands.hgetall(`${prefix}:{groups}`);
      const sumOf = (unitsOf: (of: Flooded) => number | undefined) =>
        ofGroups.reduce((total, of) => total + ((of && unitsOf(of)) ?? 0), 0);
      expect(sumOf(({ refusedWithRoom }) => refusedWithRoom)).toBe(0);
      expect(hash.minuteUsed).toBe(String(sumOf(({ units }) => units)));
      expect(Number(hash.minuteUsed)).toBeLessThanOrEqual(keyWithGroups.perMinute);
      for (const [name, { perMinute }] of Object.entries(groups)) {
        expect([name, hash[`${name}:minuteUsed`]]).toEqual([
          name,
          String(sumOf(({ unitsIn }) => unitsIn[name])),
        ]);
        // Each process sends enough requests that cost 1 unit to use the last unit.
        expect([name, Number(hash[`${name}:minuteUsed`])]).toEqual([name, perMinute]);
      }
      await removeAll(redis);
    });
  });
}
