import { setTimeout as sleep } from 'node:timers/promises';
import { createPresence } from '../../../gateway/fleet/presence.ts';
import type { ProcessState } from '../../../gateway/fleet/process-state.ts';
import { createRedisDirectoryStore } from '../../../gateway/keys/directory/store/redis-directory-store.ts';
import type { QuotaCall } from '../../../gateway/quota/decide-key.ts';
import { openRedis } from '../../../gateway/redis/open-redis.ts';
import { redisKeys } from '../../../gateway/redis/redis-keys.ts';
import { createFleetHealth } from '../../../gateway/request/forward/upstream/fleet/fleet-health.ts';
import { createRedisQuotaStore } from '../../../gateway/request/limit/store/redis-quota-store.ts';
import { calendarWindowsMs } from '../../../gateway/shared/calendar-windows.ts';
import { digestSecret } from '../../../gateway/shared/secrets.ts';
import { defaultBounds } from '../../../gateway/shared/timeouts-and-sizes.ts';
import { KeyUsage } from '../../../gateway/usage/record/key-usage.ts';
import { OperationsUsage } from '../../../gateway/usage/record/operations-usage.ts';
import { daysField } from '../../../gateway/usage/record-fields.ts';
import { type Counts, packCounts } from '../../../gateway/usage/store/counts.ts';
import { createRedisUsageStore } from '../../../gateway/usage/store/redis-usage-store.ts';
import type { Batch, RecordName } from '../../../gateway/usage/store/usage-store.ts';
import { tallyNumber } from '../../../gateway/usage/tally.ts';
import { type UnsentCounts, UnsentRoom } from '../../../gateway/usage/unsent-counts.ts';
import { usageCalendar } from '../../../gateway/usage/usage-calendar.ts';
import { oneRun } from '../../support/one-run.ts';
import { processState } from '../../support/process-state.ts';
import { type RedisCluster, startCluster } from '../../support/start-cluster.ts';
import { patientStore } from '../../support/tuning.ts';
import { until } from '../../support/until.ts';
import { spreadOf } from '../statistics.ts';
import { startDirect } from './calibrate.ts';
import { sendersMax } from './load.ts';
import { type RedisCounts, readCounts, since } from './redis-counts.ts';
import type { CostName } from './unit-costs.ts';

type RedisCost = Extract<
  CostName,
  | `decision${string}`
  | `usage${string}`
  | 'hotDecisionCpu'
  | 'readCpu'
  | 'senderCpu'
  | 'readKeyCpu'
  | 'presenceCpu'
  | 'healthCpu'
  | 'checkerCpu'
  | 'operationsCpu'
  | 'activeKeyCpu'
  | 'replicaCpu'
  | 'serverCpu'
  | 'lookUpOctets'
  | 'countsBytes'
  | 'directoryBytes'
  | 'totalsBytes'
>;

/** Long timeouts, so that a server under full load does not count as unavailable. */
const bounds = {
  ...defaultBounds,
  ...patientStore,
  storePatientDeadlineMs: 20_000,
  usageCallTimeoutMs: 20_000,
  directoryLookUpDeadlineMs: 20_000,
};
const calendar = usageCalendar(60_000);
const today = Math.floor(Date.now() / calendar.dayMs);
const minutesPerDay = 1_440;
const prefix = 'tollgate-production';
/** Each id has 20 characters. */
const idOf = (key: number) => `customer-${String(key).padStart(11, '0')}`;
const limits = [
  { window: 'minute', max: 1e9 },
  { window: 'day', max: 1e12 },
] as const;
const bans = { after: 100, withinMs: 60_000, forMs: 60_000, maxMs: 86_400_000 };
/** The number of decisions that share a read, and of batches of the usage record that share a call. */
const together = 16;

interface Size {
  readonly rounds: number;
  readonly seconds: number;
  readonly keys: number;
  readonly recordedKeys: number;
}

/** Measures the costs of calls on one master of a Cluster. Each connection stands for a process, and has one call in progress. */
export async function measureRedis(
  quick: boolean,
): Promise<{ costs: Record<RedisCost, number>; directCpu: number }> {
  const size = quick
    ? { rounds: 1, seconds: 0.5, keys: 5_000, recordedKeys: 100 }
    : { rounds: 12, seconds: 0.5, keys: 50_000, recordedKeys: 400 };
  const memory = await onCluster(false, (cluster) => measureMemory(cluster, size));
  const calls = await onCluster(false, (cluster) =>
    onCluster(true, (copied) => measureMaster(cluster, copied, size)),
  );
  return { costs: { ...memory, ...calls.costs }, directCpu: calls.directCpu };
}

async function onCluster<T>(
  hasReplicas: boolean,
  measure: (cluster: RedisCluster) => Promise<T>,
): Promise<T> {
  const cluster = await startCluster({ mastersCount: 1, hasReplicas });
  try {
    return await measure(cluster);
  } finally {
    await cluster.stop();
  }
}

/** Measures the memory of keys. The measurement uses one connection, because the memory of Redis includes the buffers of connections. */
async function measureMemory(cluster: RedisCluster, { keys, recordedKeys }: Size) {
  console.log('redis: memory');
  const at = await open(cluster, 1);
  const [redis] = at.connections;
  if (redis === undefined) throw new Error('no connection');
  const decide = decisions(at);
  const countsBytes = await at.bytesOf(keys, (key) => decide(redis, [callOf(key)]));
  const create = creator(at);
  const [marked, unmarked] = [
    await at.bytesOf(keys, (key) => create(redis, key)),
    await at.bytesOf(keys, (key) =>
      redis.commands.hset(redisKeys.quota.name(prefix, idOf(key)), 'changedMs', 1),
    ),
  ];
  const usage = createRedisUsageStore({ redis, keptMs: 1e9, bounds });
  const days = (count: number, senders: number, minutes: number) =>
    at.bytesOf(count, async (key) => {
      for (const batch of dayBatches(key, senders, minutes)) await usage.add(batch);
    });
  const short = await days(10 * recordedKeys, 1, 1);
  const full = await days(10 * recordedKeys, 1, minutesPerDay);
  const shared = await days(recordedKeys, sendersMax, minutesPerDay);
  const totalsBytes = await at.bytesOf(10 * recordedKeys, (key) => usage.add(totalsBatch(key)));
  usage.close();
  at.close();
  return {
    countsBytes,
    // The creation of a key also writes `changedMs` to the hash of the key's counts, but `countsBytes` already includes this hash.
    directoryBytes: marked - unmarked,
    usageDayBytes: short,
    usageMinuteBytes: (full - short) / (minutesPerDay - 1),
    usageSenderBytes: Math.max(0, (shared - full) / (sendersMax - 1)),
    totalsBytes,
  };
}

/** @param copied the Cluster with a replica */
async function measureMaster(cluster: RedisCluster, copied: RedisCluster, size: Size) {
  const { rounds, seconds, keys, recordedKeys } = size;
  const idleSeconds = 1;
  // The CPU of direct requests to the backend, measured several times in between.
  const direct = await startDirect();
  const directCpus = [await direct.measure()];
  console.log('redis: decisions');
  const [at, atCopied] = [await open(cluster), await open(copied)];
  const idle = await at.during(idleSeconds, () => sleep(idleSeconds * 1_000));
  const [decide, decideCopied] = [decisions(at), decisions(atCopied)];
  const some = (n: number) => Array.from({ length: together }, (_, i) => callOf((n * together + i) % keys));
  const decided = await inRounds(rounds, {
    alone: () => at.during(seconds, (redis, n) => decide(redis, [callOf(n % keys)])),
    together: () => at.during(seconds, (redis, n) => decide(redis, some(n))),
    one: () => at.during(seconds, (redis) => decide(redis, [callOf(0)])),
    copied: () => atCopied.during(seconds, (redis, n) => decideCopied(redis, [callOf(n % keys)])),
  });
  const cpuOf = ({ cpuSeconds, decisions }: RedisCounts) => cpuSeconds / decisions;
  const aloneCpu = leastOf(decided.alone, cpuOf);
  const readCpu = Math.max(0, ((aloneCpu - leastOf(decided.together, cpuOf)) * together) / (together - 1));

  directCpus.push(await direct.measure());
  console.log('redis: directory');
  const create = creator(at);
  await inTurns(keys, at.connections, create);
  const stores = new Map(
    at.connections.map((redis) => [redis, createRedisDirectoryStore({ redis, bounds })]),
  );
  const found = await at.during(seconds, (redis, n) => stores.get(redis)?.find(digestOf(n % keys)));

  console.log('redis: the record');
  const usages = new Map(
    at.connections.map((redis) => [redis, createRedisUsageStore({ redis, keptMs: 1e9, bounds })]),
  );
  const fill = (first: number, senders: number) =>
    inTurns(recordedKeys, at.connections, async (redis, key) => {
      for (const batch of dayBatches(first + key, senders, minutesPerDay))
        await usages.get(redis)?.add(batch);
    });
  await fill(0, 1);
  await fill(recordedKeys, sendersMax);
  let number = sendersMax;
  /** Adds the batches of some keys, which are on one server and therefore share a call. */
  const flush = (first: number, senders: number) => () =>
    at.during(seconds, (redis, n) => {
      number++;
      const keys = Array.from({ length: together }, (_, i) => first + ((n * together + i) % recordedKeys));
      const sender = senderOf(number % senders);
      return Promise.all(keys.map((key) => usages.get(redis)?.add(runningBatch(key, sender, number))));
    });
  const usageCopied = new Map(
    atCopied.connections.map((redis) => [redis, createRedisUsageStore({ redis, keptMs: 1e9, bounds })]),
  );
  directCpus.push(await direct.measure());
  const flushed = await inRounds(rounds, {
    single: flush(0, 1),
    many: flush(recordedKeys, sendersMax),
    copied: () =>
      atCopied.during(seconds, (redis, n) =>
        usageCopied.get(redis)?.add(runningBatch(n % recordedKeys, senderOf(n % 2), ++number)),
      ),
  });
  const batchCpuOf = ({ cpuSeconds, batches }: RedisCounts) => cpuSeconds / batches;
  // Each call also needs a read and a reply, which the model counts separately.
  const usageCpu = leastOf(flushed.single, batchCpuOf) - readCpu / together;

  directCpus.push(await direct.measure());
  console.log('redis: lists');
  const noted = 200;
  const active = await at.during(seconds, (redis, n) => {
    const told = Array.from({ length: noted }, (_, i) => ({
      // The ids are spread over the whole range of keys.
      keyId: idOf(((n * noted + i) * 7_919) % keys),
      lastSeenMs: Date.now(),
    }));
    return usages.get(redis)?.noteActive(told);
  });
  const operations = new OperationsUsage({ calendar, room: new UnsentRoom(1e9) });
  const allOperations = await at.during(seconds, (redis, n) =>
    usages.get(redis)?.add(operationsBatch(operations, number + n)),
  );
  const presenceCpu = await measurePresence(at, seconds);
  const health = await measureHealth(at, seconds);
  directCpus.push(await direct.measure());
  await direct.stop();
  for (const usage of [...usages.values(), ...usageCopied.values()]) usage.close();
  at.close();
  atCopied.close();
  const costs = {
    decisionCpu: aloneCpu - readCpu,
    hotDecisionCpu: Math.max(0, leastOf(decided.one, cpuOf) - readCpu),
    readCpu,
    replicaCpu: Math.max(0, leastOf(decided.copied, cpuOf) - aloneCpu),
    decisionOctets: medianOf(decided.alone, (done) => done.octets / done.decisions),
    decisionReplicated: medianOf(decided.copied, (done) => done.replicatedOctets / done.decisions),
    usageReplicated: medianOf(flushed.copied, (done) => done.replicatedOctets / done.batches),
    readKeyCpu: found.cpuSeconds / found.lookUps,
    lookUpOctets: found.octets / found.lookUps,
    usageCpu,
    senderCpu: Math.max(
      0,
      (leastOf(flushed.many, batchCpuOf) - leastOf(flushed.single, batchCpuOf)) / (sendersMax - 1),
    ),
    usageOctets: medianOf(flushed.single, (done) => done.octets / done.batches),
    activeKeyCpu: active.cpuSeconds / (active.calls * noted),
    operationsCpu: allOperations.cpuSeconds / allOperations.calls,
    presenceCpu,
    ...health,
    serverCpu: idle.cpuSeconds / idleSeconds,
  };
  return { costs, directCpu: Math.min(...directCpus) };
}

/** Measures in rounds, so that a change of the machine's speed affects all figures equally. */
async function inRounds<Name extends string>(
  rounds: number,
  measurements: Readonly<Record<Name, () => Promise<RedisCounts>>>,
): Promise<Record<Name, RedisCounts[]>> {
  const names = Object.keys(measurements) as Name[];
  const found = Object.fromEntries(names.map((name) => [name, []])) as unknown as Record<Name, RedisCounts[]>;
  for (let round = 0; round < rounds; round++) {
    for (const name of names) found[name].push(await measurements[name]());
  }
  return found;
}

/** CPU of the round that other programs of the machine disturbed least. */
function leastOf(samples: readonly RedisCounts[], cpuOf: (done: RedisCounts) => number): number {
  return Math.min(...samples.map(cpuOf));
}

function medianOf(samples: readonly RedisCounts[], figure: (done: RedisCounts) => number): number {
  return spreadOf(samples.map(figure)).median;
}

/** Measures a hundred processes that publish their states a hundred times as often as real processes. */
async function measurePresence({ connections, counts }: Opened, seconds: number): Promise<number> {
  const often = { ...bounds, presenceIntervalMs: 10 };
  const all = Array.from({ length: 100 }, (_, index) => {
    const records = connections[index % connections.length];
    const state = stateOf(index);
    return createPresence({ records, processId: state.id, own: () => [state], bounds: often });
  });
  for (const one of all) one.start();
  const before = await counts();
  await sleep(seconds * 1_000);
  const done = since(before, await counts());
  await Promise.all(all.map((one) => one.close()));
  return done.cpuSeconds / done.presences;
}

/** Measures calls that share four results of health checks while no target fails, and calls that count processes for 200 targets. */
async function measureHealth(at: Opened, seconds: number) {
  const { connections, counts } = at;
  for (const records of connections) createFleetHealth({ records, processId: '', bounds });
  const ids = Array.from({ length: 200 }, (_, target) => `digest-of-16-${target}`);
  const { healthFailingKeptMs, healthFailingMax, healthTimeoutMs } = bounds;
  const shared = await at.during(seconds, ({ commands }, n) => {
    const checked = [0, 50, 100, 150].map((shift) => ids[(n + shift) % ids.length] ?? '');
    const results = checked.flatMap((id) => [id, 'healthy', '100', '3', '']);
    const failing = redisKeys.healthFailing.name(prefix);
    const sizes = [healthFailingKeptMs, healthFailingMax, healthTimeoutMs];
    return commands.shareHealth(failing, 'process-of-16', '0', ...sizes, ...results);
  });

  const names = ids.map((id) => redisKeys.healthCheckers.name(prefix, id));
  const beforeCount = await counts();
  const calls = 20 * connections.length;
  await inTurns(calls, connections, ({ commands }, n) =>
    // Half of the calls count the process in a new period.
    commands.countCheckers(
      names.length,
      ...names,
      10_000,
      ...ids.map(() => (n % 2 === 0 ? 0 : Math.floor(Date.now() / 10_000))),
    ),
  );
  const counted = since(beforeCount, await counts());
  return {
    healthCpu: shared.cpuSeconds / shared.calls,
    checkerCpu: counted.cpuSeconds / (calls * ids.length),
  };
}

type Opened = Awaited<ReturnType<typeof open>>;
type Connection = ReturnType<typeof openRedis>;

async function open({ urls, masters }: RedisCluster, connectionsCount = 32) {
  const connections = Array.from({ length: connectionsCount }, () =>
    openRedis({ cluster: urls, prefix }, bounds),
  );
  await until('every connection is there', () => connections.every((one) => one.isReady('')));
  const servers = masters.map(({ inspector }) => inspector);
  const counts = () => readCounts(servers);
  return {
    connections,
    counts,
    /** Measures the work of Redis while each connection has one call in progress. A warm-up comes first and takes half as long. */
    async during(seconds: number, call: (connection: Connection, n: number) => Promise<unknown> | undefined) {
      let n = 0;
      let calls = 0;
      const run = async (untilMs: number) => {
        await Promise.all(
          connections.map(async (connection) => {
            while (performance.now() < untilMs) {
              await call(connection, n++);
              calls++;
            }
          }),
        );
      };
      await run(performance.now() + seconds * 500);
      const before = await counts();
      calls = 0;
      await run(performance.now() + seconds * 1_000);
      return { ...since(before, await counts()), calls };
    },
    /** The memory of one record, as the mean of many records. */
    async bytesOf(many: number, make: (index: number) => Promise<unknown>): Promise<number> {
      // The first call loads the script and fills buffers. The measurement therefore starts after the first call.
      await make(0);
      await Promise.all(servers.map((server) => server.flushall()));
      const before = await counts();
      for (let index = 0; index < many; index++) await make(index);
      return since(before, await counts()).memoryBytes / many;
    },
    close() {
      for (const connection of connections) connection.close();
    },
  };
}

/** Calls `work` once for each index. Each connection handles one index at a time. */
async function inTurns(
  many: number,
  connections: readonly Connection[],
  make: (redis: Connection, index: number) => Promise<unknown>,
): Promise<void> {
  const indexes = Array.from({ length: many }, (_, index) => index).values();
  const work = async (redis: Connection) => {
    for (const index of indexes) await make(redis, index);
  };
  await Promise.all(connections.map(work));
}

/** Creates keys of the directory with one secret. */
function creator({ connections }: Pick<Opened, 'connections'>) {
  const stores = new Map(connections.map((redis) => [redis, createRedisDirectoryStore({ redis, bounds })]));
  return async (redis: Connection, key: number) => {
    const at = { createdMs: Date.now(), changedMs: Date.now() };
    const secrets = [{ digest: digestOf(key), createdMs: Date.now() }];
    const definition = {
      id: idOf(key),
      plan: 'free',
      name: `Customer ${key}`,
      disabled: false,
      secrets,
      ...at,
    };
    const created = await stores.get(redis)?.create(definition);
    if (created?.kind !== 'written') throw new Error(`a key was not created: ${created?.kind}`);
  };
}

function decisions({ connections }: Pick<Opened, 'connections'>) {
  const stores = new Map(
    connections.map((redis) => [
      redis,
      createRedisQuotaStore({
        redis,
        windowsMs: calendarWindowsMs,
        deadlineMs: 20_000,
        patientDeadlineMs: 20_000,
        // In a Cluster, a call decides the requests of one key.
        keysPerCallMax: 1,
        functionRetryMs: 10_000,
      }),
    ]),
  );
  return async (redis: Connection, calls: readonly QuotaCall[]) => {
    const replies = (await stores.get(redis)?.decide(calls)) ?? [];
    if (!replies.every(({ kind }) => kind === 'decided')) throw new Error('a call was not decided');
  };
}

function callOf(key: number): QuotaCall {
  return { keyId: idOf(key), limits, bans, runs: oneRun(1), unsent: undefined };
}

function digestOf(key: number): string {
  return digestSecret(`secret of ${key}`);
}

/**
 * The batches of one key for one day. The first process records one request a minute for `minutes` minutes. These requests have two
 * addresses and three operations. Each further process adds one batch.
 */
function dayBatches(key: number, senders: number, minutes: number): readonly Batch[] {
  const usage = usageOf(key);
  for (let minute = 0; minute < minutes; minute++)
    request(usage, today * calendar.dayMs + minute * 60_000, minute);
  const first = batchOf({ kind: 'day', keyId: usage.keyId, day: today }, senderOf(0), 1, usage);
  const others = Array.from({ length: senders - 1 }, (_, index) => runningBatch(key, senderOf(index + 1), 1));
  return [first, ...others];
}

/** The id of a process. The id has the same length as the ids in the tests of the recorder. */
const senderOf = (process: number) => `proc${String(process).padStart(4, '0')}`;

/** Makes the batch of a key for ten seconds in the middle of the day. */
function runningBatch(key: number, sender: string, number: number): Batch {
  const usage = usageOf(key);
  for (let n = 0; n < 3; n++) request(usage, today * calendar.dayMs + 43_200_000 + (number % 60) * 60_000, n);
  return batchOf({ kind: 'day', keyId: usage.keyId, day: today }, sender, number, usage);
}

function usageOf(key: number): KeyUsage {
  return new KeyUsage(idOf(key), { calendar, room: new UnsentRoom(1e9), bounds: defaultBounds });
}

function request(usage: KeyUsage, atMs: number, n: number): void {
  usage.decided(0, 1, atMs, `192.0.2.${n % 2}`, '01234567');
  usage.ended(['listPets', 'addPet', 'getPet'][n % 3] ?? '', atMs, 200);
}

function batchOf(
  record: RecordName,
  sender: string,
  number: number,
  counted: { unsent: UnsentCounts; close(): void },
): Batch {
  counted.close();
  const taken = counted.unsent.takeDay(1_000)?.fields ?? new Map<string, Counts>();
  const fields = new Map([...taken].map(([field, counts]) => [field, packCounts(counts)]));
  return { record, sender, number, fields, expiresMs: Date.now() + 1e9 };
}

function totalsBatch(key: number): Batch {
  const fields = new Map<string, readonly number[]>();
  for (let month = 0; month < 13; month++) {
    const days = Array.from({ length: 31 }, (_, day): [number, number][] => [
      [tallyNumber(day, 0), 5_000 + day],
      [tallyNumber(day, 1), 300 + day],
    ]);
    const name = new Date(Date.UTC(2026, month)).toISOString().slice(0, 7);
    fields.set(daysField(name), packCounts(new Map(days.flat())));
  }
  return {
    record: { kind: 'totals', keyId: idOf(key) },
    sender: 'days',
    number: 1,
    fields,
    expiresMs: Date.now() + 1e9,
  };
}

/** Makes the batch of a process for ten seconds, with 50 operations that all had requests. */
function operationsBatch(operations: OperationsUsage, number: number): Batch {
  const atMs = today * calendar.dayMs + 43_200_000;
  for (let n = 0; n < 1_000; n++) {
    const status = n % 20 === 0 ? 404 : 200;
    const durations = { ownMs: 0.2 + (n % 7) / 10, upstreamMs: 2 + (n % 40) };
    operations.ended({ operationId: `operation-${n % 50}`, atMs, status, ending: 'served', ...durations });
  }
  const record: RecordName = { kind: 'operations', day: today };
  return batchOf(record, senderOf(number % 1_000), number, operations);
}

function stateOf(index: number): ProcessState {
  const sinceAt = new Date(0).toISOString();
  const target = { address: '10.0.0.1:3000', healthy: true, sinceAt, inFlight: 12, tunnels: 0, full: false };
  return processState(`process-${index}-0123456789`, {
    ...{ host: 'gateway-1.internal', pid: 12_345, configVersion: '0123456789ab', requestsPerSecond: 7_000 },
    ...{ outcomes: { '2xx': 6_500, '4xx': 100, '429': 350 }, inFlight: 120, connections: 800 },
    ...{ p50Ms: 0.5, p99Ms: 4, upstreamP50Ms: 2, upstreamP99Ms: 9 },
    upstreams: [
      { name: 'default', url: 'http://store:3000', targets: Array.from({ length: 4 }, () => target) },
    ],
  });
}
