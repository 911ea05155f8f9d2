/**
 * Compares leases of units with one call per turn of the event loop: eight processes, one Redis, one key. The command
 * `node test/bench/leases/run.ts` takes less than a minute. The page gateway/redis/unit-leases.md explains the schemes and the figures.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { endAllProcesses, killAllProcesses } from '../processes.ts';
import { startRedis } from '../redis.ts';
import { spreadOf } from '../statistics.ts';
import { type LeaseFleet, startLeaseFleet } from './lease-fleet.ts';
import { judge, type LoggedRequest } from './oracle.ts';
import { processes, type SchemeName, schemes } from './schemes.ts';

const deadlineMs = 60_000;
const [secondMs, dayMs] = [1_000, 86_400_000];
const unlimited = 1e12;
/** The requests per second of each process: the same for all, and very different. */
const even = Array.from({ length: processes }, () => 250);
const uneven = [500, 300, 150, 100, 60, 40, 20, 10];
/** The place of the process that is stopped for a while, and for how long. */
const stopped = 3;
const stoppedMs = 300;
/** The schemes that keep units from one turn to another, and the gateway for comparison. Only these schemes meet faults. */
const withFaults: readonly SchemeName[] = [
  'gateway',
  'leases, kept',
  'leases, kept, not below 80 units',
  'leases for 100 ms, others wait',
];

let fleet: LeaseFleet | undefined;
const dir = mkdtempSync(join(tmpdir(), 'leases-'));
setTimeout(() => {
  console.error(`the experiment has not ended after ${deadlineMs / 1_000} s`);
  process.exit(1);
}, deadlineMs).unref();
process.on('exit', () => {
  fleet?.kill();
  killAllProcesses();
  rmSync(dir, { recursive: true, force: true });
});
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(1));

const redis = await startRedis(dir);
fleet = startLeaseFleet(redis, dir);
const { client, runPhase, redisCpuSeconds } = fleet;
const steady = { rates: even, limit: unlimited, windowMs: dayMs, ms: 800 };
const limited = { rates: uneven, limit: 600, windowMs: secondMs, ms: 1_700 };
const oneWindow = { rates: uneven, limit: 500, windowMs: dayMs, ms: 800 };

await runPhase('gateway', { ...steady, ms: 500 });
await runPhase('one call per turn', { ...steady, ms: 500 });
const idleCpu = await idleCpuPerSecond();
const rows: Record<string, string | number>[] = [];
for (const name of Object.keys(schemes) as SchemeName[]) rows.push(await measure(name));
printTable(rows);
const faults: Record<string, string | number>[] = [];
for (const name of withFaults) faults.push(await measureFaults(name));
printTable(faults);
fleet.kill();
redis.close();
await endAllProcesses();

async function measure(name: SchemeName): Promise<Record<string, string | number>> {
  const even = await runPhase(name, steady);
  const cpu = even.redisCpuSeconds - (idleCpu * steady.ms) / 1_000;
  const requests = even.requests.length;
  const windows = await runPhase(name, limited);
  const verdict = judge(windows.requests, limited.limit);
  const waitedMs = spreadOf(windows.requests.map(({ beganUs, endedUs }) => (endedUs - beganUs) / 1_000));
  return {
    scheme: name,
    'requests/s': requests / (steady.ms / 1_000),
    'calls/s': even.calls / (steady.ms / 1_000),
    'requests per call': (requests / even.calls).toFixed(1),
    'CPU of Redis, s per 10,000 requests': ((cpu / requests) * 10_000).toFixed(3),
    'requests per call, uneven load': (windows.requests.length / windows.calls).toFixed(1),
    'median and longest time of a decision, ms': `${waitedMs.median.toFixed(1)}, ${waitedMs.max.toFixed(0)}`,
    admitted: verdict.admitted,
    'over the limit': verdict.over,
    'in an ended window': verdict.afterWindow,
    refused: verdict.refused,
    'refused although it fits': verdict.refusedThoughFits,
    'units that no request got': verdict.neverUsed,
    'remaining: mean deviation': verdict.deviationMean.toFixed(2),
    'remaining: largest deviation': verdict.deviationMax,
    'remaining: shown twice': verdict.shownTwice,
  };
}

/** Bans the key, stops a process for a while, and kills the last process of the fleet. */
async function measureFaults(name: SchemeName): Promise<Record<string, string | number>> {
  const banned = await runPhase(name, { ...oneWindow, limit: unlimited, ms: 400, fault: ban });
  const isAfterBan = ({ kind, beganUs }: LoggedRequest) => kind === 'admitted' && beganUs > banned.faultAtUs;
  const paused = judge((await runPhase(name, { ...oneWindow, fault: pause })).requests, oneWindow.limit);
  const killed = await runPhase(name, { ...oneWindow, rates: even, fault: killLast });
  fleet?.dropLast();
  const verdict = judge(killed.requests, oneWindow.limit);
  const used = await usedUnits(killed.countsKey);
  return {
    scheme: name,
    'admitted after a ban': banned.requests.filter(isAfterBan).length,
    'a process pauses: over the limit': paused.over,
    'a process pauses: refused although it fits': paused.refusedThoughFits,
    'a process dies: over the limit': verdict.over,
    'a process dies: units that it had reserved': Math.max(
      0,
      used - verdict.admitted - verdict.unknown - killed.unused,
    ),
    'a process dies: refused although it fits': verdict.refusedThoughFits,
  };
}

async function ban(countsKey: string): Promise<void> {
  await client.hset(countsKey, 'bannedUntilMs', Date.now() + 600_000, 'banLevel', 1);
}

async function pause(): Promise<void> {
  fleet?.signal(stopped, 'SIGSTOP');
  await sleep(stoppedMs);
  fleet?.signal(stopped, 'SIGCONT');
}

function killLast(): void {
  fleet?.signal(-1, 'SIGKILL');
}

async function usedUnits(countsKey: string): Promise<number> {
  const [prototype, gateway] = await client.hmget(countsKey, 'used', 'dayUsed');
  return Number(prototype ?? gateway);
}

/** CPU seconds that Redis uses per second without requests. */
async function idleCpuPerSecond(): Promise<number> {
  const before = await redisCpuSeconds();
  await sleep(1_000);
  return (await redisCpuSeconds()) - before;
}

/** Prints one row per figure and one column per scheme, as Markdown. */
function printTable(columns: readonly Record<string, string | number>[]): void {
  for (const [index, name] of Object.keys(columns[0] ?? {}).entries()) {
    const cells = columns.map((column) => {
      const value = column[name] ?? '';
      return typeof value === 'number' ? Math.round(value).toLocaleString('en') : value;
    });
    console.log(`| ${name} | ${cells.join(' | ')} |`);
    if (index === 0) console.log(`|${' --- |'.repeat(columns.length + 1)}`);
  }
}
