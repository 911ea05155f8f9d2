import { defaultBounds } from '../../../gateway/shared/timeouts-and-sizes.ts';
import { startCluster } from '../../support/start-cluster.ts';
import { type Credential, type Credentials, makeCredentials } from '../credentials.ts';
import { residentBytes } from '../measure-cpu.ts';
import { endProcess } from '../processes.ts';
import { startBackend } from '../subjects/direct.ts';
import type { Stage } from '../subjects/subject.ts';
import { countDecidedLocally, type StartedTollgate, startTollgate } from '../subjects/tollgate.ts';
import { keyGroups } from './key-groups.ts';
import { readCounts, since } from './redis-counts.ts';
import { issueKeys, loadAndCount, redisLine, writeSecrets } from './stage.ts';
import type { FleetRun } from './unit-costs.ts';

const [processes, shards] = [2, 3];
const keys = 20_000;
const plan = 'free';
/** The number of connections to each process. */
const connections = 64;
/**
 * The time after which a process has sent the counts of every quiet key. A warm-up has this duration, so that the process sends as many
 * batches as it counts afterwards, and no batch of the load before. A measurement of many keys has this duration too, so that it includes a
 * batch of each key.
 */
const quietSeconds = (defaultBounds.usageFlushIntervalMs * defaultBounds.usageQuietRounds) / 1_000;

/**
 * Two gateways on one core use a Cluster of three masters on the other core, under four loads. The measurement takes about seven minutes.
 */
export async function measureFleet({
  dir,
  quick,
  subjectCpus,
}: Pick<Stage, 'dir' | 'subjectCpus'> & { quick: boolean }): Promise<FleetRun[]> {
  const cluster = await startCluster({ mastersCount: shards, hasReplicas: false });
  const servers = cluster.masters.map(({ inspector }) => inspector);
  const credentials = makeCredentials(keys, dir);
  const all = credentials.all.slice(0, keys);
  const none: Credentials = { ...credentials, all: credentials.all.slice(-1) };
  const backend = await startBackend({ dir, name: 'fleet-backend' });
  const prefix = 'fleet';
  try {
    const empty = await readCounts(servers);
    await issueKeys(cluster, prefix, all, plan);
    const issued = await readCounts(servers);
    const directoryBytes = since(empty, issued).memoryBytes / keys;
    const gateways = await Promise.all(
      Array.from({ length: processes }, (_, index) =>
        startTollgate(
          { dir, backendPort: backend.port, redisPort: 0, credentials: none, subjectCpus },
          {
            name: `fleet-${index}`,
            replaced: {
              redis: redisLine(cluster, prefix),
              keys: 'keys: { file: ./keys.yaml, directory: true }',
              [`  ${plan}`]: `  ${plan}: { perMinute: 1000000000, perDay: 1000000000000 }`,
            },
          },
        ),
      ),
    );
    const runs: FleetRun[] = [];
    for (const { load, keys: used, skew, pauseMs } of [
      { load: `${keys} keys with equal traffic`, keys, skew: 0, pauseMs: 0 },
      { load: `${keys} keys, Zipf 1`, keys, skew: 1, pauseMs: 0 },
      { load: 'one key', keys: 1, skew: 0, pauseMs: 0 },
      { load: `${keys} keys, Zipf 1, clients pause`, keys, skew: 1, pauseMs: 20 },
    ]) {
      console.log(`fleet: ${load}`);
      const run = {
        ...{ origins: gateways.map(({ origin }) => origin), connections, pauseMs },
        secretsFile: writeSecrets(dir, 'fleet.secrets', draw(all.slice(0, used), skew)),
      };
      const pids = gateways.map(({ pid }) => pid);
      const before = await readCounts(servers);
      await loadAndCount({ ...run, seconds: quick ? 12 : quietSeconds }, pids, cluster);
      const aloneBefore = decidedAlone(gateways);
      const seconds = quick || used === 1 ? 12 : quietSeconds;
      const done = await loadAndCount({ ...run, seconds }, pids, cluster);
      const aloneShare = (decidedAlone(gateways) - aloneBefore) / done.requests;
      const countsBytes = since(before, await readCounts(servers)).memoryBytes / used;
      runs.push({
        ...{ load, keys: used, skew, processes, shards, isFull: pauseMs === 0 },
        ...{ requestsPerSecond: done.requestsPerSecond, aloneShare },
        measured: {
          gatewayCpu: done.processCpuSeconds / done.requests,
          decisions: done.decisions / done.requests,
          batches: done.batches / done.requests,
          lookUps: done.lookUps / done.requests,
          redisCpu: done.cpuSeconds / done.requests,
          redisOctets: done.octets / done.requests,
          processBytes: pids.reduce((sum, pid) => sum + residentBytes(pid), 0) / pids.length,
          // Only the first load adds counts of keys to Redis. The memory of keys in Redis is therefore measured only under the first load.
          ...(runs.length === 0 && { directoryBytes, countsBytes }),
        },
      });
    }
    await Promise.all(gateways.map(({ pid }) => endProcess(pid)));
    return runs;
  } finally {
    await endProcess(backend.pid);
    await cluster.stop();
  }
}

/** The number of requests that gateways decided without Redis. On a busy machine, replies of Redis may be too late. */
function decidedAlone(gateways: readonly StartedTollgate[]): number {
  return gateways.reduce((sum, gateway) => sum + countDecidedLocally(gateway), 0);
}

/**
 * Keys in the order in which independent clients would use them. The list is long enough to include each key that sends requests in a day.
 */
function draw(credentials: readonly Credential[], skew: number): readonly Credential[] {
  const ends: number[] = [];
  for (const { keys, share } of keyGroups(credentials.length, skew)) {
    for (let key = 0; key < keys; key++) ends.push((ends.at(-1) ?? 0) + share);
  }
  let state = 1;
  // A linear congruential generator (Numerical Recipes), which gives the same sequence in every run.
  const random = () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
  return Array.from({ length: credentials.length === 1 ? 1 : 200_000 }, () => {
    const at = random() * (ends.at(-1) ?? 1);
    let [low, high] = [0, ends.length - 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((ends[middle] ?? 1) < at) low = middle + 1;
      else high = middle;
    }
    return credentials[low] as Credential;
  });
}
