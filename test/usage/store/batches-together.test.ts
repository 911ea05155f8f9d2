import keySlot from 'cluster-key-slot';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import type { RedisConnection } from '../../../gateway/redis/redis-connection.ts';
import { createRedisUsageStore } from '../../../gateway/usage/store/redis-usage-store.ts';
import type { Batch, UsageStore } from '../../../gateway/usage/store/usage-store.ts';
import { connectRedis } from '../../support/connect-redis.ts';
import { type ClusterServer, type RedisCluster, startCluster } from '../../support/start-cluster.ts';
import { tunedBounds } from '../../support/tuned-bounds.ts';
import { patientStore } from '../../support/tuning.ts';

/** Batches to records of one server share a call. The servers of this Cluster store the records of different keys. */
const bounds = tunedBounds({ ...patientStore, usageRecordsPerCallMax: 16, usageFieldsPerCallMax: 100 });
const prefix = 'test';
const day = 20_779;

let cluster: RedisCluster;
let redis: RedisConnection;
beforeAll(async () => {
  cluster = await startCluster({ hasReplicas: false });
  redis = await connectRedis({ prefix, place: { cluster: cluster.urls }, bounds });
});
afterAll(async () => {
  redis.close();
  await cluster.stop();
});

function openStore(): UsageStore {
  const store = createRedisUsageStore({ redis, keptMs: 60_000, bounds });
  onTestFinished(() => store.close());
  return store;
}

function batch(keyId: string, number = 1, fields = 1): Batch {
  const counts = Array.from({ length: fields }, (_, index) => [`field-${index}`, [1, 1]] as const);
  const expiresMs = Date.now() + 600_000;
  return { record: { kind: 'day', keyId, day }, sender: 'one', number, fields: new Map(counts), expiresMs };
}

/** Returns the first count of each key's record. */
async function countsOf(store: UsageStore, keyIds: readonly string[]): Promise<(number | undefined)[]> {
  const records = await store.read(keyIds.map((keyId) => ({ record: { kind: 'day', keyId, day } })));
  return (records ?? []).map((record) => record?.fields.get('field-0')?.[1]);
}

/** Returns the number of script calls that all servers have received. */
async function scriptCalls(): Promise<number> {
  const calls = cluster.masters.map(async ({ inspector }) => {
    const info = await inspector.info('commandstats');
    return Number(/cmdstat_evalsha:calls=(\d+)/.exec(info)?.[1] ?? 0);
  });
  return (await Promise.all(calls)).reduce((sum, one) => sum + one, 0);
}

/** Returns ids of keys whose records this server stores, each in another slot. */
function idsOn(server: ClusterServer, name: string, count: number): [string, ...string[]] {
  const ids = Array.from({ length: 50 * count }, (_, index) => `${name}-${index}`);
  const [first = '', ...others] = ids.filter((id) => cluster.ownerOf(keySlot(id)) === server);
  return [first, ...others.slice(0, count - 1)];
}

it('the batches of many keys need few calls, and each batch counts once', async () => {
  const store = openStore();
  const ids = cluster.masters.flatMap((master, index) => idsOn(master, `many-${index}`, 20));
  const addAll = (number: number) => Promise.all(ids.map((id) => store.add(batch(id, number))));
  // The first round also loads the script.
  await addAll(1);
  const before = await scriptCalls();
  for (const number of [1, 2, 2]) expect(new Set(await addAll(number))).toEqual(new Set(['added']));
  // Each of three servers gets twenty batches in two calls.
  expect((await scriptCalls()) - before).toBe(3 * 3 * 2);
  expect(await countsOf(store, ids)).toEqual(ids.map(() => 2));
});

it('a call has a limited number of fields', async () => {
  const store = openStore();
  const ids = idsOn(cluster.masters[0] as ClusterServer, 'large', 6);
  // The first call also loads the script.
  await store.add(batch(ids[0], 1, 40));
  const before = await scriptCalls();
  await Promise.all(ids.map((id) => store.add(batch(id, 2, 40))));
  expect((await scriptCalls()) - before).toBe(3);
});

it('batches of one key that are sent twice in one call count once', async () => {
  const store = openStore();
  const twice = [batch('twice'), batch('twice'), batch('twice', 2), batch('twice', 2)];
  expect(await Promise.all(twice.map((one) => store.add(one)))).toEqual(twice.map(() => 'added'));
  expect(await countsOf(store, ['twice'])).toEqual([2]);
});

it('a batch is added to its record while the slot of the record moves, and after the slot has moved', async () => {
  const store = openStore();
  const [from, to] = cluster.masters as [ClusterServer, ClusterServer];
  const [first, moving = '', last = ''] = idsOn(from, 'moving', 3);
  const slot = keySlot(moving);
  const addAll = (number: number) =>
    Promise.all([first, moving, last].map((id) => store.add(batch(id, number))));

  await to.inspector.cluster('SETSLOT', slot, 'IMPORTING', from.id);
  await from.inspector.cluster('SETSLOT', slot, 'MIGRATING', to.id);
  expect(await addAll(1)).toEqual(['added', 'added', 'added']);
  expect(await to.inspector.cluster('COUNTKEYSINSLOT', slot)).toBe(1);
  for (const server of [to, from]) await server.inspector.cluster('SETSLOT', slot, 'NODE', to.id);
  // The gateway still has the old table of slots.
  expect(await addAll(2)).toEqual(['added', 'added', 'added']);
  expect(await countsOf(store, [first, moving, last])).toEqual([2, 2, 2]);
});

it('if one record cannot be written, the other batches of the call are added', async () => {
  const store = openStore();
  const [first, poisoned = '', last = ''] = idsOn(cluster.masters[0] as ClusterServer, 'poisoned', 3);
  await redis.commands.set(`${prefix}:{${poisoned}}:usage:${day}`, 'garbage');
  await Promise.all([first, poisoned, last].map((id) => store.add(batch(id))));
  expect(await countsOf(store, [first, poisoned, last])).toEqual([1, 1, 1]);
});
