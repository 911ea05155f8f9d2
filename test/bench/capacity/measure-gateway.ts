import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { redisKeys } from '../../../gateway/redis/redis-keys.ts';
import { defaultBounds } from '../../../gateway/shared/timeouts-and-sizes.ts';
import { startCluster } from '../../support/start-cluster.ts';
import { type Credentials, makeCredentials } from '../credentials.ts';
import { residentBytes, treeCpuSeconds } from '../measure-cpu.ts';
import { endProcess } from '../processes.ts';
import { spreadOf } from '../statistics.ts';
import { startBackend } from '../subjects/direct.ts';
import type { Stage } from '../subjects/subject.ts';
import { type StartedTollgate, startTollgate } from '../subjects/tollgate.ts';
import { readShareOf } from './load.ts';
import {
  type CountedCpu,
  countDuring,
  type Done,
  issueKeys,
  loadAndCount,
  redisLine,
  writeSecrets,
} from './stage.ts';

/** A load uses these keys in turn, so the requests of one turn have different keys. Each key has about two requests in ten seconds. */
const manyKeys = 20_000;
/** The number of concurrent requests, as in the benchmark's scenarios. */
const connections = 64;
/** The number of upstreams with one target each. A configuration may have at most 32 upstreams. */
const upstreamsCount = 32;
const idleConnections = 2_000;
/** The number of masters of a second Cluster. The calls of a turn are divided among these masters. */
const spreadMasters = 12;

/**
 * Measures the costs of one gateway on its own core, with a Cluster of one master and a Cluster of twelve. This measurement takes four
 * minutes.
 */
export async function measureGateway({
  dir,
  quick,
  subjectCpus,
}: Pick<Stage, 'dir' | 'subjectCpus'> & { quick: boolean }) {
  const [rounds, seconds] = quick ? [1, 1] : [5, 2];
  const cluster = await startCluster({ mastersCount: 1, hasReplicas: false });
  const wide = await startCluster({ mastersCount: spreadMasters, hasReplicas: false });
  const directoryKeys = quick ? 10_000 : 60_000;
  const credentials = makeCredentials(manyKeys + directoryKeys, dir);
  const [configured, issued] = [credentials.all.slice(0, manyKeys), credentials.all.slice(manyKeys, -1)];
  const few = { ...credentials, all: configured.slice(0, 10) };
  const many = { ...credentials, all: configured };
  const hotFile = credentials.hotFile;
  const manyFile = writeSecrets(dir, 'in-turn.secrets', configured);
  const backend = await startBackend({ dir, name: 'backend' });
  const direct = await startBackend({ dir, name: 'direct', cpus: subjectCpus });
  const stage = { dir, backendPort: backend.port, redisPort: 0, credentials: few, subjectCpus };
  const start = (name: string, { keys = few, settings = '', replaced = {} }: StartOptions = {}) =>
    startTollgate(
      { ...stage, credentials: keys },
      { name, settings, replaced: { redis: redisLine(cluster, name), ...replaced } },
    );
  const load = (gateway: { origin: string; pid: number }, secretsFile: string, more = {}, at = cluster) =>
    loadAndCount(
      { origins: [gateway.origin], secretsFile, connections, seconds, ...more },
      [gateway.pid],
      at,
    );

  try {
    console.log('gateway: memory, health checks');
    const idle = await start('idle');
    const connectionBytes = await measureIdleConnections(idle);
    const upstreams = Array.from(
      { length: upstreamsCount },
      (_, index) => `u${index}: { url: "http://127.0.0.1:${backend.port}", health: /healthz }`,
    );
    const checking = await start('checks', {
      replaced: { upstream: `upstreams: { ${upstreams.join(', ')} }` },
    });
    const checkCpu = await measureChecks(idle, checking, quick ? 2 : 15);
    await load(checking, hotFile, { seconds: quick ? 3 : 12 });
    const processBytes = residentBytes(checking.pid);
    await Promise.all([endProcess(idle.pid), endProcess(checking.pid)]);

    console.log('gateway: calls and the record');
    const unrecorded = await start('unrecorded', { keys: many, settings: 'usage: { keepDays: 0 }' });
    const recorded = await start('recorded', { keys: many });
    const spread = await start('spread', {
      keys: many,
      settings: 'usage: { keepDays: 0 }',
      replaced: { redis: redisLine(wide, 'spread') },
    });
    for (const gateway of [unrecorded, recorded]) await load(gateway, manyFile, { seconds: quick ? 3 : 8 });
    await load(spread, manyFile, { seconds: quick ? 3 : 8 }, wide);
    await load(direct, hotFile, { seconds: quick ? 1 : 3 });
    const samples = { direct: [] as Done[], hot: [] as Done[], many: [] as Done[], spread: [] as Done[] };
    for (let round = 0; round < rounds; round++) {
      samples.direct.push(await load(direct, hotFile));
      samples.hot.push(await load(unrecorded, hotFile));
      samples.many.push(await load(unrecorded, manyFile));
      samples.spread.push(await load(spread, manyFile, {}, wide));
    }
    const cpu = (done: Done) => done.processCpuSeconds / done.requests;
    const fullTurnSeconds = median(samples.hot.map((done) => seconds / done.decisions));
    const { callCpu, callReadCpu } = costsOfCalls(
      { cpu: least(samples.hot.map(cpu)), ...callsOf(samples.hot, seconds, 1, fullTurnSeconds) },
      { cpu: least(samples.many.map(cpu)), ...callsOf(samples.many, seconds, 1, fullTurnSeconds) },
      {
        cpu: least(samples.spread.map(cpu)),
        ...callsOf(samples.spread, seconds, spreadMasters, fullTurnSeconds),
      },
    );
    const manyCpu = least(samples.many.map(cpu));
    // The gateway sends the counts of most keys up to a minute after a request. The measurement makes the gateway send all counts at once,
    // as a flush of the fleet does. The CPU of the same time without a flush is subtracted: the gateway also adds up the totals of past days.
    const pauseMs = defaultBounds.usageFlushIntervalMs + 1_000;
    const [flushes, idles] = [[] as CountedCpu[], [] as CountedCpu[]];
    for (let round = 0; round < (quick ? 1 : 3); round++) {
      await load(recorded, manyFile, { seconds: quick ? 1 : 3 });
      const flush = await countDuring([recorded.pid], cluster, async () => {
        await cluster.masters[0]?.inspector.set(redisKeys.flush.name('recorded'), Date.now(), 'EX', 10);
        await sleep(pauseMs);
      });
      flushes.push(flush);
      idles.push(await countDuring([recorded.pid], cluster, () => sleep(pauseMs)));
    }
    // Other programs increase both times, so the least difference would be too small.
    const idleCpu = least(idles.map(({ processCpuSeconds }) => processCpuSeconds));
    const batchCpu = least(
      flushes.map(
        (flush) => (flush.processCpuSeconds - idleCpu - flush.batchCalls * callReadCpu) / flush.batches,
      ),
    );

    console.log('gateway: turns');
    const curve: { connections: number; callsPerSecond: number; requestsPerSecond: number }[] = [];
    for (const count of [1, 2, 4, 8, 16, 32, 64, 256]) {
      const done = await load(unrecorded, hotFile, { connections: count });
      curve.push({
        connections: count,
        callsPerSecond: done.decisions / seconds,
        requestsPerSecond: done.requestsPerSecond,
      });
    }
    const turnSeconds = 1 / Math.max(...curve.map(({ callsPerSecond }) => callsPerSecond));
    await Promise.all([recorded, unrecorded, spread].map(({ pid }) => endProcess(pid)));

    console.log('gateway: look-ups');
    await issueKeys(cluster, 'directory', issued, 'business');
    const reading = await start('directory', {
      settings: 'usage: { keepDays: 0 }',
      replaced: { keys: 'keys: { file: ./keys.yaml, directory: true }' },
    });
    // Each key sends a single request, so each request needs a look-up.
    const parts = Math.floor(issued.length / (quick ? 5_000 : 15_000));
    const lookUpCpus: number[] = [];
    await load(reading, hotFile, { seconds: quick ? 2 : 6 });
    for (let part = 0; part < parts; part++) {
      const size = Math.floor(issued.length / parts);
      const file = writeSecrets(dir, `part-${part}.secrets`, issued.slice(part * size, (part + 1) * size));
      const done = await load(reading, file, { seconds: 1 });
      const perLookUp = (done.processCpuSeconds - done.requests * manyCpu) / done.lookUps;
      if (part > 0) lookUpCpus.push(perLookUp);
    }
    await endProcess(reading.pid);
    return {
      directCpu: least(samples.direct.map(cpu)),
      curve,
      costs: {
        callCpu,
        callReadCpu,
        batchCpu: Math.max(0, batchCpu),
        lookUpCpu: Math.max(0, least(lookUpCpus)),
        checkCpu,
        turnSeconds,
        fullTurnSeconds,
        processBytes,
        connectionBytes,
      },
    };
  } finally {
    await Promise.all([endProcess(backend.pid), endProcess(direct.pid)]);
    await Promise.all([cluster.stop(), wide.stop()]);
  }
}

/** The costs of one kind of request. */
interface Calls {
  readonly cpu: number;
  readonly perRequest: number;
  /** The number of socket reads of Redis divided by the number of calls. */
  readonly readShare: number;
}

function callsOf(samples: readonly Done[], seconds: number, masters: number, turnSeconds: number) {
  const perRequest = median(samples.map((done) => done.decisions / done.requests));
  const aTurn = (median(samples.map((done) => done.decisions)) / seconds / masters) * turnSeconds;
  return { perRequest, readShare: readShareOf(aTurn) };
}

/**
 * Computes the cost of a call and the cost of a socket read from three runs. The run `hot` has one key, so each turn has at most one call,
 * and each call needs its own read. The runs `many` and `spread` have many keys. Each of these runs differs from `hot` in calls, reads and
 * CPU. The function computes both costs from these differences.
 */
export function costsOfCalls(hot: Calls, many: Calls, spread: Calls) {
  const row = ({ cpu, perRequest, readShare }: Calls) => ({
    calls: perRequest - hot.perRequest,
    reads: perRequest * readShare - hot.perRequest,
    cpu: cpu - hot.cpu,
  });
  const [one, other] = [row(many), row(spread)];
  const determinant = one.calls * other.reads - other.calls * one.reads;
  return {
    callCpu: Math.max(0, (one.cpu * other.reads - other.cpu * one.reads) / determinant),
    callReadCpu: Math.max(0, (one.calls * other.cpu - other.calls * one.cpu) / determinant),
  };
}

interface StartOptions {
  readonly keys?: Credentials;
  readonly settings?: string;
  readonly replaced?: Readonly<Record<string, string>>;
}

/** Measures the memory of a connection that has received a response and sends no further request. */
async function measureIdleConnections({ origin, pid }: StartedTollgate): Promise<number> {
  const before = residentBytes(pid);
  const { port } = new URL(origin);
  const sockets: Socket[] = [];
  for (let index = 0; index < idleConnections; index++) {
    const socket = connect(Number(port), '127.0.0.1');
    socket.on('error', () => {});
    sockets.push(socket);
    await new Promise((resolve) => {
      socket.once('data', resolve);
      socket.write('GET /v1/pets HTTP/1.1\r\nHost: bench\r\n\r\n');
    });
  }
  const bytes = (residentBytes(pid) - before) / idleConnections;
  for (const socket of sockets) socket.destroy();
  return bytes;
}

/** Measures the CPU of one health check. Neither process receives requests, and `other` checks more targets than `one`. */
async function measureChecks(one: StartedTollgate, other: StartedTollgate, seconds: number): Promise<number> {
  await sleep(2_000);
  const cpu = () => [one, other].map(({ pid }) => treeCpuSeconds(pid).total);
  const before = cpu();
  await sleep(seconds * 1_000);
  const [ofOne = 0, ofOther = 0] = cpu().map((now, index) => now - (before[index] ?? 0));
  const checks = ((upstreamsCount - 1) * seconds * 1_000) / defaultBounds.healthPauseMs;
  return Math.max(0, ofOther - ofOne) / checks;
}

/** Other programs of the machine only increase CPU times. */
const least = (values: readonly number[]) => spreadOf(values).min;
const median = (values: readonly number[]) => spreadOf(values).median;
