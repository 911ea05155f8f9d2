import keySlot from 'cluster-key-slot';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createRedisDirectoryStore } from '../../gateway/keys/directory/store/redis-directory-store.ts';
import type { RedisConnection } from '../../gateway/redis/redis-connection.ts';
import { createRedisQuotaStore } from '../../gateway/request/limit/store/redis-quota-store.ts';
import { calendarWindowsMs } from '../../gateway/shared/calendar-windows.ts';
import { createRedisUsageStore } from '../../gateway/usage/store/redis-usage-store.ts';
import { keyWith } from '../keys/directory/directory-stores.ts';
import { connectRedis } from '../support/connect-redis.ts';
import { type ClusterServer, type RedisCluster, startCluster } from '../support/start-cluster.ts';
import { tunedBounds } from '../support/tuned-bounds.ts';
import { patientStore } from '../support/tuning.ts';
import { until } from '../support/until.ts';

/**
 * The tests in this file check the replies of the stores about many keys while one of three Redis servers
 * fails.
 */
const bounds = tunedBounds({
  ...patientStore,
  storePatientDeadlineMs: 3_000,
  usageCallTimeoutMs: 3_000,
  usageMemoryCheckIntervalMs: 50,
});
const prefix = 'test';
const ids = Array.from({ length: 9 }, (_, index) => `key-${index}`);
const day = Math.floor(Date.now() / 86_400_000);
const recordOf = (keyId: string) => ({ kind: 'day', keyId, day }) as const;

let cluster: RedisCluster;
let redis: RedisConnection;
let faulty: ClusterServer;
beforeAll(async () => {
  cluster = await startCluster({ hasReplicas: false });
  redis = await connectRedis({ prefix, place: { cluster: cluster.urls }, bounds });
  faulty = cluster.ownerOf(keySlot(ids[0] ?? ''));
});
afterAll(async () => {
  redis.close();
  await cluster.stop();
});

const isOnFaulty = (id: string) => cluster.ownerOf(keySlot(id)) === faulty;

function openStores() {
  const deadlines = { deadlineMs: 20_000, patientDeadlineMs: bounds.storePatientDeadlineMs };
  return {
    quota: createRedisQuotaStore({
      redis,
      windowsMs: calendarWindowsMs,
      ...deadlines,
      keysPerCallMax: 32,
      functionRetryMs: 10_000,
    }),
    directory: createRedisDirectoryStore({ redis, bounds }),
    usage: createRedisUsageStore({ redis, keptMs: 60_000, bounds }),
  };
}

it('while one server of three is almost full, only the usage of its keys is not recorded', async () => {
  const { usage } = openStores();
  const used = Number(/used_memory:(\d+)/.exec(await faulty.inspector.info('memory'))?.[1]);
  await faulty.inspector.config('SET', 'maxmemory', String(Math.round(used / 0.8)));
  await until('it pauses', () => usage.pausedBecause() !== undefined);
  expect(usage.pausedBecause()).toMatch(new RegExp(`^${faulty.name} has used \\d+ % of its maxmemory`));
  const paused = ids.filter((id) => usage.pausedBecause(recordOf(id)) !== undefined);
  expect(paused).toEqual(ids.filter(isOnFaulty));
  await faulty.inspector.config('SET', 'maxmemory', '0');
  await until('it goes on', () => usage.pausedBecause() === undefined);
  usage.close();
});

it.each(['frozen', 'killed'] as const)(
  'while one server of three is %s, the keys of the other servers are read',
  async (loss) => {
    const { quota, directory, usage } = openStores();
    if (loss === 'frozen') for (const id of ids) await directory.create(keyWith(id, [id]));
    if (loss === 'frozen') faulty.server.freeze();
    else await faulty.server.kill();
    const [counted, defined, recorded] = await Promise.all([
      quota.read(ids),
      directory.readMany(ids),
      usage.read(ids.map((id) => ({ record: recordOf(id) }))),
    ]);
    if (counted.kind !== 'read' || defined.kind !== 'found') throw new Error('the others are there');
    const wanted = ids.map((id) => !isOnFaulty(id));
    expect(wanted).toContain(true);
    expect(counted.states.map((state) => state !== undefined)).toEqual(wanted);
    expect(defined.keys.map((key) => typeof key === 'object')).toEqual(wanted);
    expect(defined.keys.filter((key) => key === undefined)).toEqual([]);
    expect(recorded?.map((record) => record !== undefined)).toEqual(wanted);
    if (loss === 'frozen') faulty.server.thaw();
    usage.close();
  },
);
