/**
 * Measures what a start costs, and what a quiet gateway takes: `node test/bench/measure-start.ts [--against FOLDER] [--rounds N] [--rest SECONDS]`.
 * FOLDER is another checkout of Tollgate. The gateway has one process, one key and no Redis. An empty Node process (`node -e 0`) is measured
 * in the same rounds, so other programs disturb all subjects. The ratios are medians of the ratios of each round.
 */

import { execFileSync } from 'node:child_process';
import { hash } from 'node:crypto';
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { freePort } from '../support/free-port.ts';
import { residentBytes, treeCpuSeconds } from './measure-cpu.ts';
import { endAllProcesses, endProcess, startProcess, untilAnswers } from './processes.ts';
import { ratioOf, spreadOf } from './statistics.ts';

const { values } = parseArgs({
  options: {
    against: { type: 'string' },
    rounds: { type: 'string', default: '5' },
    rest: { type: 'string', default: '20' },
  },
});

const figures = {
  startMs: 'from the start to the first response, ms',
  cpuMs: 'CPU time of the start, ms',
  startedMegabytes: 'resident memory after the start, MB',
  restMegabytes: `resident memory ${values.rest} s later, MB`,
} as const;

type Figure = keyof typeof figures;
type Sample = Readonly<Record<Figure, number>>;

const checkouts = [
  resolve(import.meta.dirname, '../..'),
  ...(values.against ? [resolve(values.against)] : []),
];
const dir = mkdtempSync(join(tmpdir(), 'tollgate-start-'));
const samples: Sample[][] = checkouts.map(() => []);
const empty: Sample[] = [];
try {
  for (let round = 0; round < Number(values.rounds); round++) {
    for (const [at, checkout] of checkouts.entries()) samples[at]?.push(await startGateway(checkout));
    empty.push(startEmptyProcess());
  }
} finally {
  await endAllProcesses();
  rmSync(dir, { recursive: true });
}

const [own = [], before] = samples;
const head = ['', 'this checkout', ...(before ? ['the other', 'ratio'] : []), '`node -e 0`', 'ratio'];
console.log(`| ${head.join(' | ')} |\n|${'---|'.repeat(head.length)}`);
for (const [figure, name] of Object.entries(figures) as [Figure, string][]) {
  const [ownOnes, beforeOnes, emptyOnes] = [own, before ?? [], empty].map((all) =>
    all.map((one) => one[figure]),
  );
  const cells = [
    name,
    medianOf(ownOnes),
    ...(before ? [medianOf(beforeOnes), ratio(ownOnes, beforeOnes)] : []),
    medianOf(emptyOnes),
    ratio(ownOnes, emptyOnes),
  ];
  console.log(`| ${cells.join(' | ')} |`);
}

/** Starts the gateway of a checkout, lets it rest, and ends it. */
async function startGateway(checkout: string): Promise<Sample> {
  const [port, adminPort] = [await freePort(), await freePort()];
  const configFile = join(dir, 'tollgate.yaml');
  copyFileSync(join(checkout, 'config/openapi.yaml'), join(dir, 'openapi.yaml'));
  writeFileSync(
    configFile,
    `environment: bench
baseUrl: http://127.0.0.1:${port}/v1
listen: { host: 127.0.0.1, port: ${port} }
admin: { host: 127.0.0.1, port: ${adminPort} }
upstream: { url: http://127.0.0.1:9 }
plans: { free: { perMinute: 60, perDay: 1000 } }
keys: [{ id: one, plan: free, secrets: [{ sha256: ${hash('sha256', 'a secret of the benchmark')} }] }]
api: ./openapi.yaml
`,
  );
  const beganMs = performance.now();
  const main = join(checkout, 'gateway/main.ts');
  const running = startProcess(process.execPath, [main, '--config', configFile], { dir, name: 'gateway' });
  await untilAnswers(`http://127.0.0.1:${port}/v1/pets`, running);
  const startMs = performance.now() - beganMs;
  const cpuMs = treeCpuSeconds(running.pid).total * 1_000;
  const startedMegabytes = residentBytes(running.pid) / 1e6;
  await sleep(Number(values.rest) * 1_000);
  const restMegabytes = residentBytes(running.pid) / 1e6;
  await endProcess(running.pid);
  return { startMs, cpuMs, startedMegabytes, restMegabytes };
}

function startEmptyProcess(): Sample {
  const script = 'console.log(JSON.stringify([process.cpuUsage(), process.memoryUsage.rss()]))';
  const beganMs = performance.now();
  const output = execFileSync(process.execPath, ['-e', script], { encoding: 'utf8' });
  const startMs = performance.now() - beganMs;
  const [{ user, system }, bytes] = JSON.parse(output);
  const megabytes = bytes / 1e6;
  return {
    startMs,
    cpuMs: (user + system) / 1_000,
    startedMegabytes: megabytes,
    restMegabytes: megabytes,
  };
}

function medianOf(all: readonly number[] = []): string {
  return spreadOf(all).median.toFixed(0);
}

function ratio(all: readonly number[] = [], others: readonly number[] = []): string {
  return ratioOf(all, others)?.median.toFixed(2) ?? '';
}
