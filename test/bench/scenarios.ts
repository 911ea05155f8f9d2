import type { Credentials } from './credentials.ts';
import { treeCpuSeconds } from './measure-cpu.ts';
import type { BenchRedis } from './redis.ts';
import { type Load, problemsOf, runWrk } from './run-wrk.ts';
import type { StartedSubject, Subject } from './subjects/subject.ts';

/** One kind of load, on every subject for which it means something. */
export interface Scenario {
  readonly name: string;
  readonly title: string;
  readonly connections: number;
  readonly method: 'GET' | 'POST';
  readonly body: string;
  readonly expectedStatus: number;
  /** Answers of another status that a right limiter may give: a window that begins anew in mid-run admits one. */
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

export const scenarios: readonly Scenario[] = [
  hotKey,
  {
    ...get,
    name: 'latency',
    title: 'One connection',
    connections: 1,
    secretsFile: hot,
    suits: everyone,
  },
  manyKeys,
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
    name: 'flood',
    title: 'A flood on one key over its limit, 64 connections',
    connections: 64,
    expectedStatus: 429,
    admissionsMax: 2,
    secretsFile: (credentials) => credentials.floodFile,
    suits: (subject) => subject.limits,
  },
];

/** What one subject cost in one round of one scenario. */
export interface Sample {
  readonly cpuSecondsPer10k: number;
  readonly redisCpuSecondsPer10k: number;
  readonly redisCallsPerRequest: number;
  readonly requestsPerSecond: number;
  readonly p50Us: number;
  readonly p99Us: number;
  readonly p999Us: number;
  /** Why the sample is worthless; empty when it counts. */
  readonly problems: readonly string[];
}

export interface SampleOptions {
  readonly scenario: Pick<
    Scenario,
    'connections' | 'method' | 'body' | 'expectedStatus' | 'admissionsMax' | 'secretsFile'
  >;
  readonly subject: StartedSubject;
  readonly redis: BenchRedis;
  readonly credentials: Credentials;
  readonly seconds: number;
}

/** First a run that warms up and looks at every status, then the one that is measured. */
export async function takeSample(options: SampleOptions): Promise<Sample> {
  const { scenario, subject, redis, credentials, seconds } = options;
  const load: Omit<Load, 'mode' | 'seconds'> = {
    url: `${subject.origin}/v1/pets`,
    method: scenario.method,
    body: scenario.body,
    secretsFile: scenario.secretsFile(credentials),
    connections: scenario.connections,
    expectedStatus: scenario.expectedStatus,
  };
  const checked = await runWrk({ ...load, mode: 'check', seconds: 1 });

  const cpuBefore = treeCpuSeconds(subject.pid);
  const redisCpuBefore = treeCpuSeconds(redis.pid);
  const redisCallsBefore = await redis.scriptCalls();
  const measured = await runWrk({ ...load, mode: 'measure', seconds });
  const cpuSeconds = treeCpuSeconds(subject.pid) - cpuBefore;
  const redisCpuSeconds = treeCpuSeconds(redis.pid) - redisCpuBefore;
  const redisCalls = (await redis.scriptCalls()) - redisCallsBefore;

  return {
    cpuSecondsPer10k: (cpuSeconds / measured.requests) * 10_000,
    redisCpuSecondsPer10k: (redisCpuSeconds / measured.requests) * 10_000,
    redisCallsPerRequest: redisCalls / measured.requests,
    requestsPerSecond: measured.requests / measured.seconds,
    p50Us: measured.p50Us,
    p99Us: measured.p99Us,
    p999Us: measured.p999Us,
    problems: [
      ...problemsOf(
        checked,
        { expectedStatus: scenario.expectedStatus, mode: 'check' },
        scenario.admissionsMax,
      ),
      ...problemsOf(
        measured,
        { expectedStatus: scenario.expectedStatus, mode: 'measure' },
        scenario.admissionsMax,
      ),
    ],
  };
}

/** The key of the flood is spent, and where there are bans banned, before anything is measured. */
export async function spendFloodKey(origin: string, { flood }: Credentials): Promise<void> {
  for (let i = 0; i < 2; i++) {
    const answer = await fetch(`${origin}/v1/pets`, { headers: { Authorization: `Bearer ${flood.secret}` } });
    await answer.arrayBuffer();
  }
}
