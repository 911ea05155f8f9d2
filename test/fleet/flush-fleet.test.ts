import { expect, it, onTestFinished } from 'vitest';
import { createFlushFleet } from '../../gateway/fleet/flush/flush-fleet.ts';
import { createPresence } from '../../gateway/fleet/presence.ts';
import { openRedis } from '../../gateway/redis/open-redis.ts';
import { untilConnected } from '../../gateway/redis/redis-connection.ts';
import type { Bounds } from '../../gateway/shared/timeouts-and-sizes.ts';
import { processState } from '../support/process-state.ts';
import { freshPrefix, redisUrl } from '../support/redis.ts';
import { startRedis } from '../support/start-redis.ts';
import { tunedBounds } from '../support/tuned-bounds.ts';
import { patientStore } from '../support/tuning.ts';
import { until } from '../support/until.ts';

const bounds = tunedBounds({
  ...patientStore,
  presenceIntervalMs: 50,
  fleetFlushPollMs: 10,
  fleetFlushTimeoutMs: 20_000,
});

/** @param send sends the counts of the process; undefined for a process of an earlier version, which never flushes */
async function startProcess(
  id: string,
  redis: { readonly url: string; readonly prefix: string },
  { send, own = bounds }: { readonly send?: (() => Promise<void>) | undefined; readonly own?: Bounds } = {},
) {
  const records = openRedis(redis, own);
  let flushed: number | undefined;
  const asked: number[] = [];
  const presence = createPresence({
    records,
    processId: id,
    own: () => [processState(id, { flushed })],
    sendCounts(flush) {
      asked.push(flush);
      void send?.().then(() => {
        flushed = Math.max(flushed ?? 0, flush);
      });
    },
    bounds: own,
  });
  await untilConnected(records, own.storeStartTimeoutMs);
  presence.start();
  onTestFinished(async () => {
    await presence.close();
    records.close();
  });
  const { flushFleet: flush, requestFlush } = createFlushFleet({ records, presence, bounds: own });
  const ids = async () => (await presence.read()).processes.map((process) => process.id);
  return { flush, requestFlush, ids, asked, loseRedis: () => records.close() };
}

const idsOf = (processes: readonly { readonly id: string }[]) => processes.map(({ id }) => id);

it('a flush ends after every process has sent the counts that it had when the flush began', async () => {
  const shared = { url: redisUrl(), prefix: freshPrefix() };
  const sent: string[] = [];
  const slow = Promise.withResolvers<void>();
  const a = await startProcess('a', shared, { send: async () => void sent.push('a') });
  await startProcess('b', shared, { send: async () => void sent.push('b') });
  await startProcess('c', shared, { send: () => slow.promise.then(() => void sent.push('c')) });
  await expect.poll(a.ids).toEqual(['a', 'b', 'c']);
  let isOver = false;
  const flushing = a.flush().finally(() => {
    isOver = true;
  });
  await until('a and b send', () => sent.includes('a') && sent.includes('b'));
  expect(isOver).toBe(false);
  slow.resolve();
  expect(await flushing).toEqual({ isComplete: true, behind: [] });
  expect([...new Set(sent)].sort()).toEqual(['a', 'b', 'c']);
});

it('a flush names a process that sends no counts in time', async () => {
  const shared = { url: redisUrl(), prefix: freshPrefix() };
  const own = { ...bounds, fleetFlushTimeoutMs: 500 };
  const a = await startProcess('a', shared, { send: async () => {}, own });
  await startProcess('old', shared);
  await expect.poll(a.ids).toEqual(['a', 'old']);
  const { isComplete, behind } = await a.flush();
  expect([isComplete, idsOf(behind)]).toEqual([true, ['old']]);
});

it('a flush names a process that leaves the list during the flush without a report', async () => {
  const shared = { url: redisUrl(), prefix: freshPrefix() };
  const own = { ...bounds, presenceExpiryMs: 300, fleetFlushTimeoutMs: 2_000 };
  const a = await startProcess('a', shared, { send: async () => {}, own });
  const b = await startProcess('b', shared, { own });
  await expect.poll(a.ids).toEqual(['a', 'b']);
  const flushing = a.flush();
  b.loseRedis();
  const { isComplete, behind } = await flushing;
  expect([isComplete, idsOf(behind), await a.ids()]).toEqual([true, ['b'], ['a']]);
});

it('a process whose counts cannot be stored at first sends them again until they are stored', async () => {
  const shared = { url: redisUrl(), prefix: freshPrefix() };
  const a = await startProcess('a', shared, { send: async () => {} });
  let failures = 3;
  await startProcess('b', shared, {
    send: () => (failures-- > 0 ? new Promise(() => {}) : Promise.resolve()),
  });
  await expect.poll(a.ids).toEqual(['a', 'b']);
  expect(await a.flush()).toEqual({ isComplete: true, behind: [] });
  expect(failures).toBeLessThan(0);
});

it('calls at the same time share a flush that began after them', async () => {
  const shared = { url: redisUrl(), prefix: freshPrefix() };
  const a = await startProcess('a', shared, { send: async () => {} });
  await expect.poll(a.ids).toEqual(['a']);
  const first = a.flush();
  const later = [a.flush(), a.flush(), a.flush()];
  expect(new Set([first, ...later]).size).toBe(2);
  for (const flushed of await Promise.all([first, ...later])) expect(flushed.behind).toEqual([]);
  expect(new Set(a.asked).size).toBe(2);
});

it('without a reachable Redis a flush reports at once that the list of processes is not known', async () => {
  const server = await startRedis();
  onTestFinished(() => server.stop());
  const shared = { url: server.url, prefix: freshPrefix() };
  const a = await startProcess('a', shared, { send: async () => {} });
  await expect.poll(a.ids).toEqual(['a']);
  await server.kill();
  await expect.poll(() => a.flush()).toEqual({ isComplete: false, behind: [] });
});

it('calls that accept an earlier flush cause one flush of the fleet in that time, also in several processes', async () => {
  const shared = { url: redisUrl(), prefix: freshPrefix() };
  const own = { ...bounds, fleetFlushReusedMs: 30_000 };
  const a = await startProcess('a', shared, { send: async () => {}, own });
  const b = await startProcess('b', shared, { send: async () => {}, own });
  await expect.poll(a.ids).toEqual(['a', 'b']);
  const done = { isComplete: true, behind: [] };
  for (const one of [a, b, a, b]) {
    for (let time = 0; time < 5; time++) one.requestFlush();
    expect(await one.flush(30_000)).toEqual(done);
  }
  expect([new Set(a.asked).size, new Set(b.asked).size]).toEqual([1, 1]);
  expect(await b.flush()).toEqual(done);
  expect([new Set(a.asked).size, new Set(b.asked).size]).toEqual([2, 2]);
});

it('a request for a flush waits for nothing, and every process sends its counts', async () => {
  const shared = { url: redisUrl(), prefix: freshPrefix() };
  const a = await startProcess('a', shared, { send: async () => {} });
  const b = await startProcess('b', shared, { send: () => new Promise(() => {}) });
  await expect.poll(a.ids).toEqual(['a', 'b']);
  a.requestFlush();
  await until('both send', () => a.asked.length > 0 && b.asked.length > 0);
});
