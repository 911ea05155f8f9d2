import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createListStore, type StoredReport } from '../../gateway/fleet/list-store.ts';
import type { RedisCommands, RedisConnection } from '../../gateway/redis/redis-connection.ts';
import { redisKeys } from '../../gateway/redis/redis-keys.ts';
import { connectRedis, removeAll } from '../support/connect-redis.ts';
import { freshPrefix } from '../support/redis.ts';
import { allRedisForms, startForm, tagsOf } from '../support/start-form.ts';
import { tunedBounds } from '../support/tuned-bounds.ts';
import { patientStore } from '../support/tuning.ts';

const entriesMax = 25;
const overdueMs = 100;
const bounds = tunedBounds({ ...patientStore, listClaimOverdueMs: 60_000 });
/** The bounds of a process that soon takes other processes for dead. */
const hastyBounds = { ...bounds, listClaimOverdueMs: overdueMs };

/** Runs in place of a command; `run` sends the command. */
type Fault = (command: string, run: () => Promise<unknown>) => Promise<unknown>;

/** The commands that add an entry to a full list, in this order. */
const steps = ['claim', 'xadd', 'pexpire', 'confirm', 'xrange', 'xlen', 'forget', 'xdel'] as const;
const moments = ['before it is sent', 'after it has run'] as const;
const faults = steps.flatMap((step) => moments.map((moment) => ({ step, moment })));

/** The same connection, with a fault in its commands. The verb of a script stands for the script. */
function withFault(records: RedisConnection, fault: Fault): RedisConnection {
  const commands = new Proxy(records.commands, {
    get(client, name) {
      const member: unknown = Reflect.get(client, name);
      if (typeof member !== 'function' || name === 'defineCommand') return member;
      return (...args: unknown[]) =>
        fault(name === 'listReports' ? String(args[1]) : String(name), () => member.apply(client, args));
    },
  }) as RedisCommands;
  return { ...records, commands };
}

/** One command fails the first time. */
function failsOnce(step: string, moment: (typeof moments)[number]): Fault {
  let hasFailed = false;
  return async (command, run) => {
    if (hasFailed || command !== step) return run();
    hasFailed = true;
    if (moment === 'after it has run') await run();
    throw new Error('Connection is closed.');
  };
}

/** The process sends nothing after one command. */
function diesAt(step: string, moment: (typeof moments)[number]): Fault {
  let isDead = false;
  return async (command, run) => {
    if (!isDead && command !== step) return run();
    const runs = !isDead && moment === 'after it has run';
    isDead = true;
    if (runs) await run();
    throw new Error('The process is dead.');
  };
}

function report(process: string, { number = 1, what = 'reload', agoMs = 0, mergedWithinMs = 60_000 } = {}) {
  const entry = JSON.stringify({ text: what, process });
  return { what, entry, process, number, agoMs, mergedWithinMs } satisfies StoredReport;
}

for (const form of allRedisForms) {
  describe(`a list in Redis, ${form.name},`, { tags: tagsOf(form) }, () => {
    const place = startForm(form);

    async function startList() {
      const prefix = freshPrefix();
      const records = await connectRedis({ prefix, place: place(), bounds });
      onTestFinished(() => removeAll(records));
      const names = [redisKeys.events.name(prefix), redisKeys.eventsReports.name(prefix)] as const;
      const storeOf = (fault: Fault = (_, run) => run(), own = bounds) =>
        createListStore({
          ...{ records: withFault(records, fault), names: () => names, entriesMax, keptMs: 60_000 },
          bounds: own,
        });
      const [store, hasty] = [storeOf(), storeOf(undefined, hastyBounds)];
      const fill = async (count: number) => {
        for (let number = 1; number <= count; number++) {
          expect(await store.add(report('filler', { number, what: `old ${number}` }))).toBe(true);
        }
      };
      /** The entries, newest first: `<text> <processes>`. */
      const listed = async (by = store) => {
        const page = await by.read({ limit: 100 });
        return page?.entries.map(({ entry, processes }) => `${JSON.parse(entry).text} ${processes}`);
      };
      const [stream, hash] = names;
      const client = records.commands;
      return { storeOf, store, hasty, fill, listed, client, stream, hash };
    }

    it('counts a report once, however often it arrives; a second one of the process is another entry', async () => {
      const { store, listed } = await startList();
      for (const process of ['p2', 'p2', 'p3', 'p2', 'p3'])
        expect(await store.add(report(process))).toBe(true);
      expect(await listed()).toEqual(['reload 2']);
      for (let time = 0; time < 2; time++) expect(await store.add(report('p2', { number: 2 }))).toBe(true);
      expect(await listed()).toEqual(['reload 1', 'reload 2']);
    });

    it.each(faults)('has an entry once that is added again since $step failed $moment', async (fault) => {
      const { storeOf, store, fill, listed, client, stream, hash } = await startList();
      await fill(entriesMax);
      const failing = storeOf(failsOnce(fault.step, fault.moment));
      expect(await failing.add(report('p1'))).toBe(false);
      expect(await failing.add(report('p1'))).toBe(true);
      expect(await store.add(report('p2'))).toBe(true);
      // This entry makes the store remove the surplus.
      expect(await store.add(report('p2', { what: 'next' }))).toBe(true);
      const all = await listed();
      expect(all?.slice(0, 3)).toEqual(['next 1', 'reload 2', `old ${entriesMax} 1`]);
      expect(all).toHaveLength(entriesMax);
      expect([await client.xlen(stream), await client.hlen(hash)]).toEqual([entriesMax, 2 * entriesMax]);
    });

    it.each(faults.slice(1))(
      'shows the entry of a process that died at $step $moment to one that only reads',
      async (fault) => {
        const { storeOf, hasty, fill, listed, client, stream, hash } = await startList();
        await fill(entriesMax);
        expect(await storeOf(diesAt(fault.step, fault.moment)).add(report('p1'))).toBe(false);
        await sleep(overdueMs + 20);
        await expect
          .poll(async () => (await listed(hasty))?.slice(0, 2))
          .toEqual(['reload 1', `old ${entriesMax} 1`]);
        await expect.poll(() => client.hget(hash, 'claims')).toBe(null);
        expect(await client.xlen(stream)).toBeLessThanOrEqual(entriesMax + 1);
      },
    );

    it.each(faults)(
      'counts all that report the same as a process that died at $step $moment',
      async (fault) => {
        const { storeOf, store, hasty, listed, client, stream, hash } = await startList();
        expect(await storeOf(diesAt(fault.step, fault.moment)).add(report('p1'))).toBe(
          ['forget', 'xdel'].includes(fault.step),
        );
        for (const process of ['p2', 'p3']) expect(await store.add(report(process))).toBe(true);
        await sleep(overdueMs + 20);
        expect(await hasty.add(report('p4'))).toBe(true);
        const isReported = fault.step !== 'claim' || fault.moment === 'after it has run';
        expect(await listed()).toEqual([`reload ${isReported ? 4 : 3}`]);
        expect([await client.xlen(stream), await client.hlen(hash)]).toEqual([1, 2]);
      },
    );

    it('of what twenty processes report at once has one entry, which pushes out one', async () => {
      const { store, fill, listed, client, stream, hash } = await startList();
      await fill(entriesMax);
      const processes = Array.from({ length: 20 }, (_, index) => `p${index}`);
      const added = await Promise.all(processes.map((process) => store.add(report(process))));
      expect(new Set(added)).toEqual(new Set([true]));
      const kept = Array.from({ length: entriesMax - 1 }, (_, index) => `old ${entriesMax - index} 1`);
      expect(await listed()).toEqual(['reload 20', ...kept]);
      expect([await client.xlen(stream), await client.hlen(hash)]).toEqual([entriesMax, 2 * entriesMax]);
    });

    it('removes no more than is too much where several processes add at once', async () => {
      const { store, fill, client, stream, hash } = await startList();
      await fill(entriesMax);
      const many = Array.from({ length: 60 }, (_, index) => report(`p${index}`, { what: `new ${index}` }));
      const lengths: number[] = [];
      await Promise.all(
        many.map(async (one) => {
          await store.add(one);
          lengths.push(await client.xlen(stream));
        }),
      );
      expect(Math.min(...lengths)).toBe(entriesMax);
      expect([await client.xlen(stream), await client.hlen(hash)]).toEqual([entriesMax, 2 * entriesMax]);
    });

    it('has an entry once that another process added in place of one that was stopped and goes on', async () => {
      const { storeOf, hasty, listed, client, stream } = await startList();
      const [claimed, woken] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      const stopped = storeOf(async (command, run) => {
        if (command === 'xadd') {
          claimed.resolve();
          await woken.promise;
        }
        return run();
      }).add(report('p1'));
      await claimed.promise;
      await sleep(overdueMs + 50);
      expect(await hasty.add(report('p2'))).toBe(true);
      expect(await listed()).toEqual(['reload 2']);
      woken.resolve();
      expect(await stopped).toBe(true);
      expect(await listed()).toEqual(['reload 2']);
      expect(await client.xlen(stream)).toBe(1);
    });

    it('shows the counted one of two copies, whichever is older', async () => {
      const { store, listed, client, stream, hash } = await startList();
      const fields = ['what', 'reload', 'at', '1', 'entry', '{"text":"reload"}', 'report', 'p1:1'] as const;
      await client.xadd(stream, '1-1', ...fields);
      await client.xadd(stream, '2-1', ...fields);
      expect((await store.read({ limit: 9 }))?.entries.map(({ id }) => id)).toEqual(['1-1']);
      await client.hset(hash, 'id:2-1', 'p1:1 p2:1');
      expect((await store.read({ limit: 9 }))?.entries.map(({ id }) => id)).toEqual(['2-1']);
      expect(await listed()).toEqual(['reload 2']);
      expect((await store.read({ limit: 1 }))?.next).toBe('2-1');
    });

    it('begins no further step after the deadline: the report is added again, and listed once', async () => {
      const { storeOf, listed, client, stream } = await startList();
      const late: string[] = [];
      let isFirst = true;
      const slow = storeOf(
        async (command, run) => {
          const reply = await run();
          if (!isFirst) return reply;
          isFirst = false;
          await sleep(400);
          late.push(command);
          return reply;
        },
        { ...bounds, storePatientDeadlineMs: 200, listClaimOverdueMs: 60_000 },
      );
      expect(await slow.add(report('p1'))).toBe(false);
      // A busy machine may miss the short deadline several times, so the test repeats the call.
      await expect.poll(() => slow.add(report('p1'))).toBe(true);
      await expect.poll(() => late).toEqual(['claim']);
      await sleep(50);
      expect(await listed()).toEqual(['reload 1']);
      expect(await client.xlen(stream)).toBe(1);
    });

    it('goes on where the server lost the claim in a failover, or the hash', async () => {
      const { storeOf, store, listed, client, stream, hash } = await startList();
      const added = storeOf(async (command, run) => {
        if (command === 'confirm') await client.del(hash);
        return run();
      });
      expect(await added.add(report('p1'))).toBe(true);
      expect(await store.add(report('p2'))).toBe(true);
      expect(await listed()).toEqual(['reload 2']);
      expect([await client.xlen(stream), await client.hlen(hash)]).toEqual([1, 2]);
    });

    it('reads what an earlier version wrote, and counts further reports of it', async () => {
      const { store, listed, client, stream, hash } = await startList();
      const at = String(Date.now());
      const id = await client.xadd(stream, '*', 'what', 'reload', 'at', at, 'entry', '{"text":"reload"}');
      await client.hset(hash, `id:${id}`, 'p1:1', 'what:reload', `${id} ${at}`);
      expect(await listed()).toEqual(['reload 1']);
      expect(await store.add(report('p2'))).toBe(true);
      expect(await listed()).toEqual(['reload 2']);
    });

    it('keeps any text as it is', async () => {
      const { storeOf, store } = await startList();
      const text = 'ünï "quoted" \\ / \u2028 \u0000 😀 %d';
      const entry = JSON.stringify({ text });
      // The second call takes the entry from the claim, which holds it as JSON in JSON.
      expect(await storeOf(failsOnce('xadd', 'before it is sent')).add({ ...report('p1'), entry })).toBe(
        false,
      );
      expect(await store.add({ ...report('p1'), entry })).toBe(true);
      expect((await store.read({ limit: 9 }))?.entries.map((one) => one.entry)).toEqual([entry]);
    });
  });
}
