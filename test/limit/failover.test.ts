import type { Redis } from 'ioredis';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { bounds } from '../../gateway/bounds.ts';
import type { Limiter } from '../../gateway/limit/limiter.ts';
import { freshWindows } from '../support/fresh-windows.ts';
import { inspect } from '../support/inspect.ts';
import { freshPrefix } from '../support/redis.ts';
import { type RedisServer, startRedis } from '../support/start-redis.ts';
import { startTcpRelay, type TcpRelay } from '../support/tcp-relay.ts';
import { patientStore } from '../support/tuning.ts';
import {
  count,
  decideInTurn,
  decideTogether,
  isStore,
  keyOf,
  messages,
  openLimiter,
  until,
} from './limiter-fixture.ts';

/** A lost connection and a refused write say so themselves; being busy is no outage. */
Object.assign(bounds, patientStore);

/** A primary and its replica; the relay is the address that a failover moves from one to the other. */
let primary: RedisServer;
let replica: RedisServer;
let atReplica: Redis;
let relay: TcpRelay;
beforeEach(async () => {
  [primary, replica] = await Promise.all([startRedis(), startRedis()]);
  relay = await startTcpRelay(primary.port);
  const atPrimary = inspect(primary.url);
  // Redis waits five seconds for more replicas otherwise.
  await atPrimary.config('SET', 'repl-diskless-sync-delay', 0);
  atPrimary.disconnect();
  atReplica = inspect(replica.url);
  await atReplica.replicaof('127.0.0.1', primary.port);
  await until(async () => (await atReplica.info('replication')).includes('master_link_status:up'));
});
afterEach(async () => {
  atReplica.disconnect();
  await relay.stop();
  await Promise.all([primary.stop(), replica.stop()]);
});

const limit = 40;
const key = keyOf(1_000_000, limit);

it('after a failover limits are shared again on the counts that were replicated, and no process admitted more than one more limit', async () => {
  const { processes, prefix } = openProcesses();
  const admitted = [await ask(processes, 10)];
  await replicated(prefix, 20);
  await primary.kill();
  await Promise.all(processes.map(isAway));
  admitted.push(await ask(processes, 5));
  await atReplica.replicaof('NO', 'ONE');
  moveAddress();
  await areShared(processes);

  admitted.push(await ask(processes, limit));
  expect(admitted).toEqual([20, 10, 10]);
  await expectWellAfterwards(processes, prefix);
});

it('a replica that is not promoted yet takes no writes: each process decides alone until it is', async () => {
  const { processes, prefix } = openProcesses();
  await ask(processes, 10);
  await replicated(prefix, 20);
  await primary.kill();
  moveAddress();
  await Promise.all(processes.map(isAway));
  await until(() => processes.every((limiter) => reasonOf(limiter).startsWith('READONLY')));
  const alone = await Promise.all(processes.map((limiter) => decideTogether(limiter, key, 2 * limit)));
  expect(new Set(alone.flat().map(({ source }) => source))).toEqual(new Set(['local']));
  for (const decisions of alone) expect(count(decisions, 'admitted')).toBeLessThanOrEqual(limit);

  await atReplica.replicaof('NO', 'ONE');
  await areShared(processes);
  expect(await ask(processes, limit)).toBe(0);
  await expectWellAfterwards(processes, prefix);
});

function openProcesses() {
  const prefix = freshPrefix();
  const shared = { url: `redis://127.0.0.1:${relay.port}`, prefix, windowLengths: freshWindows(Date.now()) };
  return { prefix, processes: [openLimiter(shared), openLimiter(shared)] };
}

/** Asks every process; answers how many requests they admitted. */
async function ask(processes: readonly Limiter[], requests: number): Promise<number> {
  let admitted = 0;
  for (const limiter of processes)
    admitted += count(await decideTogether(limiter, key, requests), 'admitted');
  return admitted;
}

async function replicated(prefix: string, used: number): Promise<void> {
  await until(async () => (await atReplica.hget(`${prefix}:{${key.id}}`, 'dayUsed')) === `${used}`);
}

function moveAddress(): void {
  relay.switchTo(replica.port);
  relay.cut();
}

function isAway(limiter: Limiter): Promise<void> {
  return until(() => isStore(limiter, false));
}

function reasonOf(limiter: Limiter): string {
  const state = limiter.state();
  return (state.kind === 'redis' && state.reason) || '';
}

/** Redis is back, and has been told everything that was decided without it. */
async function areShared(processes: readonly Limiter[]): Promise<void> {
  await until(() => processes.every((limiter) => isStore(limiter, true)));
  for (const limiter of processes) {
    await until(async () => (await decideInTurn(limiter, keyOf(10, 10), 1))[0]?.source === 'shared');
  }
}

async function expectWellAfterwards(
  processes: readonly (Limiter & Parameters<typeof messages>[0])[],
  prefix: string,
): Promise<void> {
  expect(processes.map(messages)).toEqual(processes.map(() => ['Redis is away', 'Redis is back']));
  const names = await atReplica.keys(`${prefix}:*`);
  expect(names).toContain(`${prefix}:{${key.id}}`);
  const expiries = await Promise.all(names.map((name) => atReplica.pttl(name)));
  // -2: gone since it was listed, as the probe's key may be.
  expect(expiries.filter((leftMs) => leftMs === -1)).toEqual([]);
}
