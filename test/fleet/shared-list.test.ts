import { describe, expect, it, onTestFinished } from 'vitest';
import { createSharedList } from '../../gateway/fleet/shared-list.ts';
import type { RedisCommands, RedisConnection } from '../../gateway/redis/redis-connection.ts';
import { redisKeys } from '../../gateway/redis/redis-keys.ts';
import { connectRedis, removeAll } from '../support/connect-redis.ts';
import { freshPrefix } from '../support/redis.ts';
import { allRedisForms, startForm, tagsOf } from '../support/start-form.ts';
import { tunedBounds } from '../support/tuned-bounds.ts';
import { patientStore } from '../support/tuning.ts';

const entriesMax = 25;
const bounds = tunedBounds({ ...patientStore, presenceIntervalMs: 20 });
const moments = ['before it is sent', 'after it has run'] as const;

/** A connection to Redis on which the first calls of the script fail. */
function failing(records: RedisConnection, moment: (typeof moments)[number], times: number): RedisConnection {
  let left = times;
  const commands = new Proxy(records.commands, {
    get(client, name) {
      const member: unknown = Reflect.get(client, name);
      if (typeof member !== 'function' || name !== 'addReport') return member;
      return async (...args: unknown[]) => {
        left -= 1;
        if (left < 0 || moment === 'after it has run') await member.apply(client, args);
        if (left >= 0) throw new Error('Connection is closed.');
      };
    },
  }) as RedisCommands;
  return { ...records, commands };
}

for (const form of allRedisForms) {
  describe(`a list in Redis, ${form.name},`, { tags: tagsOf(form) }, () => {
    const place = startForm(form);

    async function startList() {
      const prefix = freshPrefix();
      const records = await connectRedis({ prefix, place: place(), bounds });
      onTestFinished(() => removeAll(records));
      const names = [redisKeys.events.name(prefix), redisKeys.eventsReports.name(prefix)] as const;
      const listOf = (processId: string, own = records) => {
        const deps = { processId, nowMs: Date.now, names: () => names, entriesMax, keptMs: 60_000, bounds };
        const list = createSharedList<{ text: string }>({ records: own, ...deps });
        onTestFinished(list.close);
        const record = (text: string, mergedWithinMs = 60_000) =>
          list.record({ what: [text], mergedWithinMs, entry: { text } });
        return { record, read: list.read };
      };
      const reader = listOf('reader');
      /** The entries as `<text> <processes>`, the most recently written entry first. */
      const listed = async () =>
        (await reader.read({ limit: 100 })).entries.map(({ text, processes }) => `${text} ${processes}`);
      const fill = async () => {
        const filler = listOf('filler');
        for (let number = 1; number <= entriesMax; number++) filler.record(`old ${number}`);
        await expect.poll(listed).toHaveLength(entriesMax);
      };
      const sizes = () => Promise.all([records.commands.xlen(names[0]), records.commands.hlen(names[1])]);
      return { records, listOf, fill, listed, sizes, names };
    }

    it.each(moments)('counts a report once whose call failed three times %s', async (moment) => {
      const { records, listOf, fill, listed, sizes } = await startList();
      await fill();
      listOf('p1', failing(records, moment, 3)).record('reload');
      await expect.poll(async () => (await listed())[0]).toBe('reload 1');
      listOf('p2', failing(records, moment, 3)).record('reload');
      await expect.poll(async () => (await listed()).slice(0, 2)).toEqual(['reload 2', 'old 25 1']);
      expect(await sizes()).toEqual([entriesMax, 2 * entriesMax]);
    });

    it('counts a second report of a process as another entry', async () => {
      const { listOf, listed } = await startList();
      const [first, second] = [listOf('p1'), listOf('p2')];
      for (const one of [first, second]) one.record('reload');
      await expect.poll(listed).toEqual(['reload 2']);
      first.record('reload');
      await expect.poll(listed).toEqual(['reload 1', 'reload 2']);
    });

    it('keeps one entry for twenty simultaneous reports, which replaces one old entry', async () => {
      const { listOf, fill, listed, sizes } = await startList();
      await fill();
      for (let number = 0; number < 20; number++) listOf(`p${number}`).record('reload');
      const kept = Array.from({ length: entriesMax - 1 }, (_, index) => `old ${entriesMax - index} 1`);
      await expect.poll(listed).toEqual(['reload 20', ...kept]);
      expect(await sizes()).toEqual([entriesMax, 2 * entriesMax]);
    });

    it('reads the entries of an earlier version, and counts further reports', async () => {
      const { records, listOf, listed, names } = await startList();
      const [stream, hash] = names;
      const [at, what, entry] = [String(Date.now()), '["reload"]', '{"text":"reload","process":"p1"}'];
      const fields = ['what', what, 'at', at, 'entry', entry, 'report', 'p1:1'] as const;
      const id = await records.commands.xadd(stream, '*', ...fields);
      await records.commands.hset(hash, 'id:p1:1', 'p1:1', `what:${what}`, `p1:1 ${at}`);
      const isCounted = (field: string, reports: string) =>
        expect.poll(() => records.commands.hget(hash, field)).toBe(reports);
      listOf('p2').record('reload');
      await isCounted('id:p1:1', 'p1:1 p2:1');
      expect(await listed()).toEqual(['reload 1']);
      await records.commands.hdel(hash, 'id:p1:1');
      await records.commands.hset(hash, `id:${id}`, 'p1:1 p2:1', `what:${what}`, `${id} ${at}`);
      listOf('p3').record('reload');
      await isCounted(`id:${id}`, 'p1:1 p2:1 p3:1');
      expect(await listed()).toEqual(['reload 3']);
    });

    it('keeps any text unchanged', async () => {
      const { listOf, listed } = await startList();
      const text = 'ünï "quoted" \\ / \u2028 \u0000 😀 %d';
      listOf('p1').record(text);
      await expect.poll(listed).toEqual([`${text} 1`]);
    });
  });
}
