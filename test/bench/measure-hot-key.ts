import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { freePort } from '../support/free-port.ts';
import { treeCpuSeconds } from './measure-cpu.ts';
import { endProcess } from './processes.ts';
import { type BenchRedis, startRedis } from './redis.ts';
import type { Stage } from './subjects/subject.ts';

/**
 * Measures the largest rate of one key. The key's counts are on one Cluster server, which uses one core, whatever the number of gateways.
 * Requests of one turn of a process's event loop share one call. After a refusal, the process refuses the key for a while without a call.
 */
export interface HotKeyFigures {
  readonly processes: number;
  readonly loads: readonly HotKeyLoad[];
}

interface HotKeyLoad {
  readonly load: string;
  /** The figures per second of all processes together. */
  readonly admitted: number;
  readonly refused: number;
  readonly banned: number;
  readonly calls: number;
  /**
   * The used share of Redis's core. `callsPerCore` is the number of calls that would use the whole core; undefined when there were too few
   * calls for an estimate.
   */
  readonly redisCores: number;
  readonly callsPerCore?: number;
}

const processes = 8;
const unlimited = 1e15 - 1;
/** Calls per second. Below this rate, Redis spends more CPU time on its timers than on the calls. */
const tellingCalls = 1_000;
const loads = [
  { load: 'one request under way in each', perDay: unlimited, bansAfter: 100, clients: 1 },
  { load: '64 under way in each', perDay: unlimited, bansAfter: 100, clients: 64 },
  // The processes report refusals to Redis, fifty per call, until the key is banned.
  { load: '64 under way in each, the limit spent', perDay: 1, bansAfter: 1e9, clients: 64 },
  { load: '64 under way in each, the key banned', perDay: 1, bansAfter: 100, clients: 64 },
] as const;

/** Redis runs alone on the subjects' core, as the only server of a Cluster. The gateway processes share the other cores. */
export async function measureHotKey(stage: Stage, { quick }: { quick: boolean }): Promise<HotKeyFigures> {
  console.log(`one hot key on one server of a Cluster: ${processes} processes`);
  const dir = join(stage.dir, 'hot-key');
  mkdirSync(dir);
  const redis = await startRedis(dir, {
    cpus: stage.subjectCpus,
    options: [
      ...['--cluster-enabled', 'yes', '--cluster-announce-ip', '127.0.0.1'],
      // The default port of the cluster bus is the server's port plus 10,000, which may be out of range.
      ...['--cluster-port', String(await freePort())],
    ],
  });
  const client = new Redis(redis.port, '127.0.0.1');
  await client.call('CLUSTER', 'ADDSLOTSRANGE', 0, 16_383);
  client.disconnect();
  const times = quick ? { warmUpSeconds: 1, seconds: 1 } : { warmUpSeconds: 10, seconds: 5 };
  const measured: HotKeyLoad[] = [];
  for (const load of loads) measured.push(await measureLoad(redis, load, times));
  redis.close();
  await endProcess(redis.pid);
  return { processes, loads: measured };
}

async function measureLoad(
  redis: BenchRedis,
  { load, ...options }: (typeof loads)[number],
  times: Pick<FloodOptions, 'warmUpSeconds' | 'seconds'>,
): Promise<HotKeyLoad> {
  const flood = JSON.stringify({ ...options, ...times, port: redis.port } satisfies FloodOptions);
  const children = Array.from({ length: processes }, () =>
    fork(new URL('hot-key-process.ts', import.meta.url), [flood]),
  );
  await Promise.all(children.map(nextMessage));
  const [cpuBefore, callsBefore] = [treeCpuSeconds(redis.pid).total, await redis.scriptCalls()];
  for (const child of children) child.send('go');
  const all = (await Promise.all(children.map(nextMessage))) as readonly Decided[];
  const cpu = treeCpuSeconds(redis.pid).total - cpuBefore;
  const calls = (await redis.scriptCalls()) - callsBefore;
  const { seconds } = times;
  const perSecond = (of: keyof Decided) => all.reduce((sum, one) => sum + one[of], 0) / seconds;
  return {
    load,
    ...{ admitted: perSecond('admitted'), refused: perSecond('refused'), banned: perSecond('banned') },
    calls: calls / seconds,
    redisCores: cpu / seconds,
    ...(calls / seconds > tellingCalls && { callsPerCore: calls / cpu }),
  };
}

/** @throws when the process ends before its message */
async function nextMessage(child: ChildProcess): Promise<unknown> {
  const isOver = new AbortController();
  const { signal } = isOver;
  const ended = once(child, 'exit', { signal }).then(([code]) => {
    throw new Error(`a process ended with ${code}`);
  });
  const [message] = await Promise.race([once(child, 'message', { signal }), ended]);
  isOver.abort();
  await ended.catch(() => {});
  return message;
}

export interface FloodOptions {
  readonly port: number;
  readonly perDay: number;
  /** The number of refusals that causes a ban. */
  readonly bansAfter: number;
  /** The number of concurrent requests. */
  readonly clients: number;
  /** The seconds of warm-up, and the seconds of measurement. */
  readonly warmUpSeconds: number;
  readonly seconds: number;
}

export interface Decided {
  readonly admitted: number;
  readonly refused: number;
  readonly banned: number;
}
