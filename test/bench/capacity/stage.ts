import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createRedisDirectoryStore } from '../../../gateway/keys/directory/store/redis-directory-store.ts';
import { defaultBounds } from '../../../gateway/shared/timeouts-and-sizes.ts';
import { connectRedis } from '../../support/connect-redis.ts';
import type { RedisCluster } from '../../support/start-cluster.ts';
import type { Credential } from '../credentials.ts';
import { treeCpuSeconds } from '../measure-cpu.ts';
import { problemsOf, runWrk } from '../run-wrk.ts';
import { type RedisCounts, readCounts, since } from './redis-counts.ts';

/** The work of Redis servers and the CPU time of the observed processes, during a load or a quiet period. */
export interface CountedCpu extends RedisCounts {
  readonly processCpuSeconds: number;
}

/** The work during a load. */
export interface Done extends CountedCpu {
  readonly requests: number;
  readonly requestsPerSecond: number;
}

export interface Load {
  /** One origin for each process. A separate wrk process sends requests to each gateway process. */
  readonly origins: readonly string[];
  readonly secretsFile: string;
  readonly connections: number;
  readonly seconds: number;
  readonly pauseMs?: number;
}

/** The tolerated share of responses other than 200, because a look-up may time out on a busy machine. */
const otherShareMax = 0.01;

/** @throws when the share of responses other than 200 is above `otherShareMax` */
export async function loadAndCount(
  load: Load,
  pids: readonly number[],
  cluster: RedisCluster,
): Promise<Done> {
  const { seconds } = load;
  let requests = 0;
  const done = await countDuring(pids, cluster, async () => {
    const runs = load.origins.map((origin) =>
      runWrk({
        ...load,
        ...{ url: `${origin}/v1/pets`, method: 'GET', body: '', expectedStatus: 200, mode: 'measure' },
      }),
    );
    for (const figures of await Promise.all(runs)) {
      const othersMax = figures.requests * otherShareMax;
      const [problem] = problemsOf(figures, { expectedStatus: 200, mode: 'measure' }, othersMax);
      if (problem !== undefined) throw new Error(problem);
      requests += figures.requests;
    }
  });
  return { ...done, requests, requestsPerSecond: requests / seconds };
}

export async function countDuring(
  pids: readonly number[],
  { masters }: RedisCluster,
  act: () => Promise<unknown>,
): Promise<CountedCpu> {
  const servers = masters.map(({ inspector }) => inspector);
  const cpuSeconds = () => pids.reduce((sum, pid) => sum + treeCpuSeconds(pid).total, 0);
  const [before, cpuBefore] = [await readCounts(servers), cpuSeconds()];
  await act();
  return { ...since(before, await readCounts(servers)), processCpuSeconds: cpuSeconds() - cpuBefore };
}

/** Writes the secrets into a file for wrk, in the given order. */
export function writeSecrets(dir: string, name: string, credentials: readonly Credential[]): string {
  const file = join(dir, name);
  writeFileSync(file, credentials.map(({ secret }) => `${secret}\n`).join(''));
  return file;
}

/** A line of the gateway's configuration. */
export function redisLine({ urls }: RedisCluster, prefix: string): string {
  return `redis: { cluster: [${urls.map((url) => JSON.stringify(url)).join(', ')}], prefix: ${prefix}, onFailure: local }`;
}

/** Writes keys to the key directory under `prefix`. Each key has a plan and no limits of its own. */
export async function issueKeys(
  { urls }: RedisCluster,
  prefix: string,
  credentials: readonly Credential[],
  plan: string,
): Promise<void> {
  const redis = await connectRedis({ prefix, place: { cluster: urls } });
  const bounds = { ...defaultBounds, storePatientDeadlineMs: 20_000 };
  const store = createRedisDirectoryStore({ redis, bounds });
  const left = credentials.values();
  const work = async () => {
    for (const { id, sha256 } of left) {
      const times = { createdMs: Date.now(), changedMs: Date.now() };
      const created = await store.create({
        ...{ id, plan, name: `Customer ${id}`, disabled: false, ...times },
        secrets: [{ digest: sha256, createdMs: Date.now() }],
      });
      if (created.kind !== 'written') throw new Error(`${id} was not created: ${created.kind}`);
    }
  };
  await Promise.all(Array.from({ length: 16 }, work));
  redis.close();
}
