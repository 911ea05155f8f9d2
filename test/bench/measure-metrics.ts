import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeCredentials } from './credentials.ts';
import { treeCpuSeconds } from './measure-cpu.ts';
import { endProcess } from './processes.ts';
import { type Spread, spreadOf } from './statistics.ts';
import type { Stage } from './subjects/subject.ts';
import { type StartedTollgate, startTollgate } from './subjects/tollgate.ts';

/** Measures the cost of a Prometheus scrape for a gateway with many keys and operations. */
export interface MetricsFigures {
  readonly keys: number;
  readonly operations: number;
  readonly bytes: number;
  /** The time from the request to the last octet, without concurrent requests. */
  readonly ms: Spread;
  readonly cpuMs: number;
}

/** The largest permitted costs. */
export const metricsAtMost = { ms: 50, bytes: 200_000 };

const [keys, operations] = [10_000, 50];

/** Starts a new gateway, calls each operation so that its series exist, and reads `/metrics` repeatedly. */
export async function measureMetrics(stage: Stage, { quick }: { quick: boolean }): Promise<MetricsFigures> {
  console.log(`metrics: ${keys} keys, ${operations} operations`);
  const dir = join(stage.dir, 'metrics');
  mkdirSync(dir);
  const credentials = makeCredentials(keys, dir);
  const apiFile = join(dir, 'openapi.yaml');
  writeFileSync(apiFile, apiYaml());
  const gateway = await startTollgate({ ...stage, dir, credentials }, { name: 'tollgate-metrics', apiFile });
  for (let operation = 0; operation < operations; operation++) {
    const secrets = [credentials.all[operation]?.secret, credentials.flood.secret, credentials.flood.secret];
    for (const secret of [...secrets, 'nobody']) await call(gateway, operation, secret);
  }

  for (let warmUp = 0; warmUp < 10; warmUp++) await read(gateway);
  const samples: { bytes: number; ms: number }[] = [];
  const cpuBefore = treeCpuSeconds(gateway.pid).total;
  for (let sample = 0; sample < (quick ? 20 : 200); sample++) samples.push(await read(gateway));
  const cpuSeconds = treeCpuSeconds(gateway.pid).total - cpuBefore;
  await endProcess(gateway.pid);
  return {
    keys,
    operations,
    bytes: Math.max(...samples.map(({ bytes }) => bytes)),
    ms: spreadOf(samples.map(({ ms }) => ms)),
    cpuMs: (cpuSeconds * 1000) / samples.length,
  };
}

async function call({ origin }: StartedTollgate, operation: number, secret = ''): Promise<void> {
  const headers = { Authorization: `Bearer ${secret}` };
  const response = await fetch(`${origin}/v1/operation${operation}`, { headers });
  await response.arrayBuffer();
}

async function read({ adminOrigin }: StartedTollgate): Promise<{ bytes: number; ms: number }> {
  const startedMs = performance.now();
  const response = await fetch(`${adminOrigin}/metrics`);
  const { byteLength } = await response.arrayBuffer();
  return { bytes: byteLength, ms: performance.now() - startedMs };
}

function apiYaml(): string {
  const paths = Array.from(
    { length: operations },
    (_, index) => `  /operation${index}:\n    get: { operationId: operation${index} }\n`,
  );
  return `openapi: 3.1.0\ninfo: { title: Benchmark, version: 1.0.0 }\npaths:\n${paths.join('')}`;
}
