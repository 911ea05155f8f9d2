/**
 * What one hot key can reach: eight processes decide requests of one key on one Redis that has one core to itself. Requests of
 * one turn of a process's event loop are one call, and a key that was just refused is refused without a call.
 *
 *     node test/bench/hot-key.ts
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { endAllProcesses } from './processes.ts';
import { startRedis } from './redis.ts';

const processes = 8;
const seconds = 5;
/** Of Linux on all machines that Node runs on. */
const ticksPerSecond = 100;

interface Done {
  readonly admitted: number;
  readonly refused: number;
  readonly banned: number;
  readonly calls: number;
}

interface Load {
  readonly what: string;
  readonly perDay: number;
  readonly bansAfter: number;
  /** Requests under way in each process. */
  readonly clients: number;
}

const unlimited = 1e15 - 1;
const loads: readonly Load[] = [
  { what: 'one request under way in each', perDay: unlimited, bansAfter: 100, clients: 1 },
  { what: '64 under way in each', perDay: unlimited, bansAfter: 100, clients: 64 },
  // Refusals are reported, 50 in a call, until they ban the key.
  { what: '64 under way in each, the limit spent, no ban', perDay: 1, bansAfter: 1e9, clients: 64 },
  { what: '64 under way in each, the key banned', perDay: 1, bansAfter: 100, clients: 64 },
];

async function flood(port: number, load: Pick<Load, 'perDay' | 'bansAfter' | 'clients'>): Promise<Done> {
  const all = await Promise.all(
    Array.from({ length: processes }, async () => {
      const options = JSON.stringify({ port, seconds, ...load });
      const child = fork(new URL('hot-key-process.ts', import.meta.url), [options]);
      const [done] = await once(child, 'message');
      await once(child, 'exit');
      return done as Done;
    }),
  );
  const sum = (of: keyof Done) => all.reduce((total, one) => total + one[of], 0);
  return { admitted: sum('admitted'), refused: sum('refused'), banned: sum('banned'), calls: sum('calls') };
}

/** CPU seconds of a process so far. */
async function cpuSeconds(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
}

const dir = mkdtempSync(join(tmpdir(), 'tollgate-hot-'));
const redis = await startRedis(dir);
const perSecond = (count: number) => Math.round(count / seconds).toLocaleString('en');
console.log(`${processes} processes, one key, one Redis; ${availableParallelism()} cores for all of them`);
for (const { what, ...load } of loads) {
  const before = await cpuSeconds(redis.pid);
  const { admitted, refused, banned, calls } = await flood(redis.port, load);
  const cpu = (await cpuSeconds(redis.pid)) - before;
  const perCore = Math.round(calls / Math.max(cpu, 0.01)).toLocaleString('en');
  console.log(
    `${what}: ${perSecond(admitted)} admitted/s, ${perSecond(refused)} refused/s, ${perSecond(banned)} banned/s; ` +
      `${perSecond(calls)} calls/s to Redis, which used ${(cpu / seconds).toFixed(2)} of a core: ${perCore} calls/s would fill it`,
  );
}
redis.close();
await endAllProcesses();
rmSync(dir, { recursive: true, force: true });
