import type { Credentials } from './credentials.ts';
import { treeCpuSeconds } from './measure-cpu.ts';
import type { BenchRedis } from './redis.ts';
import { type Load, problemsOf, runWrk, type WrkFigures } from './run-wrk.ts';
import type { StartedSubject, Subject } from './subjects/subject.ts';

/** One kind of load, applied to every subject that supports it. */
export interface Scenario {
  readonly name: string;
  readonly title: string;
  readonly connections: number;
  readonly method: 'GET' | 'POST';
  readonly body: string;
  readonly expectedStatus: number;
  /**
   * The number of responses that a correct limiter may send with a status other than `expectedStatus`. Each window that begins during the
   * run admits one request.
   */
  readonly admissionsMax: number;
  readonly secretsFile: (credentials: Credentials) => string;
  readonly suits: (subject: Subject) => boolean;
}

const get = { method: 'GET', body: '', expectedStatus: 200, admissionsMax: 0 } as const;
const hot = (credentials: Credentials) => credentials.hotFile;
const everyone = () => true;

export const hotKey: Scenario = {
  ...get,
  name: 'hot-key',
  title: 'One hot key, 64 connections',
  connections: 64,
  secretsFile: hot,
  suits: everyone,
};

export const manyKeys: Scenario = {
  ...get,
  name: 'many-keys',
  title: '1,000 keys in turn, 64 connections',
  connections: 64,
  secretsFile: (credentials) => credentials.manyFile,
  suits: (subject) => subject.identifies,
};

/** The first three subjects are compared with each other, so the benchmark measures them consecutively. */
export const scenarios: readonly Scenario[] = [
  hotKey,
  manyKeys,
  {
    ...get,
    name: 'flood',
    title: 'A flood on one key over its limit, 64 connections',
    connections: 64,
    expectedStatus: 429,
    admissionsMax: 2,
    secretsFile: (credentials) => credentials.floodFile,
    suits: (subject) => subject.limits,
  },
  {
    ...get,
    name: 'post',
    title: 'POST with a body, 64 connections',
    connections: 64,
    method: 'POST',
    body: JSON.stringify({ name: 'x'.repeat(200), categoryId: 7, status: 'available' }),
    secretsFile: hot,
    suits: everyone,
  },
  {
    ...get,
    name: 'latency',
    title: 'One connection',
    connections: 1,
    secretsFile: hot,
    suits: everyone,
  },
  {
    ...get,
    name: 'many-connections',
    title: 'One hot key, 1,024 connections',
    connections: 1_024,
    secretsFile: hot,
    // fast-gateway crashes with 1,024 connections.
    suits: (subject) => subject.identifies,
  },
];

/** The cost of one subject in one round of one scenario. */
export interface Sample {
  /** The sum of user and system time. */
  readonly cpuSecondsPer10k: number;
  readonly userCpuSecondsPer10k: number;
  readonly systemCpuSecondsPer10k: number;
  readonly redisCpuSecondsPer10k: number;
  readonly redisCallsPerRequest: number;
  readonly requestsPerSecond: number;
  readonly p50Us: number;
  readonly p99Us: number;
  readonly p999Us: number;
}

/** Collects the reasons why a run is invalid, one sentence each, with scenario and subject. */
export type NoteProblems = (where: string, problems: readonly string[]) => void;

export interface WarmUpOptions {
  readonly scenario: Pick<
    Scenario,
    'connections' | 'method' | 'body' | 'expectedStatus' | 'admissionsMax' | 'secretsFile'
  >;
  readonly subject: StartedSubject;
  readonly credentials: Credentials;
  readonly seconds: number;
  readonly where: string;
  readonly noteProblems: NoteProblems;
}

/** Warms up the subject with the same load before the first sample, and checks the status of every response. */
export async function warmUp(options: WarmUpOptions): Promise<void> {
  await runLoad(options, 'check');
}

export interface SampleOptions extends WarmUpOptions {
  readonly redis: BenchRedis;
}

/** Measures a subject that is warmed up. */
export async function takeSample(options: SampleOptions): Promise<Sample> {
  const { subject, redis } = options;
  const cpuBefore = treeCpuSeconds(subject.pid);
  const redisCpuBefore = treeCpuSeconds(redis.pid);
  const redisCallsBefore = await redis.scriptCalls();
  const { requests, seconds, p50Us, p99Us, p999Us } = await runLoad(options, 'measure');
  const cpu = treeCpuSeconds(subject.pid);
  const redisCpu = treeCpuSeconds(redis.pid);
  const redisCalls = (await redis.scriptCalls()) - redisCallsBefore;

  const per10k = (cpuSeconds: number) => (cpuSeconds / requests) * 10_000;
  return {
    cpuSecondsPer10k: per10k(cpu.total - cpuBefore.total),
    userCpuSecondsPer10k: per10k(cpu.user - cpuBefore.user),
    systemCpuSecondsPer10k: per10k(cpu.system - cpuBefore.system),
    redisCpuSecondsPer10k: per10k(redisCpu.total - redisCpuBefore.total),
    redisCallsPerRequest: redisCalls / requests,
    requestsPerSecond: requests / seconds,
    p50Us,
    p99Us,
    p999Us,
  };
}

async function runLoad(options: WarmUpOptions, mode: Load['mode']): Promise<WrkFigures> {
  const { scenario, subject, credentials, seconds, where, noteProblems } = options;
  const { method, body, connections, expectedStatus, admissionsMax } = scenario;
  const figures = await runWrk({
    url: `${subject.origin}/v1/pets`,
    method,
    body,
    secretsFile: scenario.secretsFile(credentials),
    connections,
    seconds,
    expectedStatus,
    mode,
  });
  noteProblems(where, problemsOf(figures, { expectedStatus, mode }, admissionsMax));
  return figures;
}

/** Uses up the limit of the flood's key before the measurement, so that subjects with bans ban the key. */
export async function spendFloodKey(origin: string, { flood }: Credentials): Promise<void> {
  for (let i = 0; i < 2; i++) {
    const response = await fetch(`${origin}/v1/pets`, {
      headers: { Authorization: `Bearer ${flood.secret}` },
    });
    await response.arrayBuffer();
  }
}
