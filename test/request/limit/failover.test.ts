import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterEach, beforeEach, expect, it } from 'vitest';

import { keysWithoutExpiry } from '../../support/keys-without-expiry.ts';
import { type RedisServer, startRedis } from '../../support/start-redis.ts';
import { type Replica, startReplica } from '../../support/start-replica.ts';
import { startTcpRelay, type TcpRelay } from '../../support/tcp-relay.ts';
import { until } from '../../support/until.ts';
import {
  count,
  dayUsed,
  decideInTurn,
  decideTogether,
  expectOneOutage,
  keyOf,
  type LoggedLimiter,
  openLimiters,
  untilAway,
  untilBack,
} from './limiter-fixture.ts';

/** In a failover, the relay stops forwarding to the primary and forwards to the replica. */
let primary: RedisServer;
let replica: Replica;
let relay: TcpRelay;
beforeEach(async () => {
  primary = await startRedis();
  replica = await startReplica(primary);
  relay = await startTcpRelay(primary.port);
});
afterEach(() => Promise.all([relay.stop(), replica.stop(), primary.stop()]));

const limit = 40;
const key = keyOf(1_000_000, limit);

it('processes share limits again after a failover, on the replicated counts, and each has admitted at most the limit once more', async () => {
  const { limiters, prefix } = openTwo();
  const admitted = [await ask(limiters, 10)];
  await replica.catchUp();
  await primary.kill();
  await untilAway(...limiters);
  admitted.push(await ask(limiters, 5));
  await replica.promote();
  moveAddress();
  await areShared(limiters);

  admitted.push(await ask(limiters, limit));
  expect(admitted).toEqual([20, 10, 10]);
  await expectWellAfterwards(limiters, prefix);
});

it('each process decides alone while the replica is not promoted and refuses writes', async () => {
  const { limiters, prefix } = openTwo();
  await ask(limiters, 10);
  await replica.catchUp();
  await primary.kill();
  moveAddress();
  await Promise.all(limiters.map(meetsReadOnly));
  const alone = await Promise.all(limiters.map((limiter) => decideTogether(limiter, key, 2 * limit)));
  expect(new Set(alone.flat().map(({ source }) => source))).toEqual(new Set(['local']));
  for (const decisions of alone) expect(count(decisions, 'admitted')).toBeLessThanOrEqual(limit);

  await replica.promote();
  await areShared(limiters);
  expect(await ask(limiters, limit)).toBe(0);
  await expectWellAfterwards(limiters, prefix);
});

/**
 * Opens two limiters with long deadlines, so that a lost connection or a refused write counts as an outage, and a slow
 * machine does not.
 */
function openTwo() {
  return openLimiters(2, `redis://127.0.0.1:${relay.port}`);
}

/** Sends requests through every process. @returns the number of admitted requests */
async function ask(limiters: readonly LoggedLimiter[], requests: number): Promise<number> {
  let admitted = 0;
  for (const limiter of limiters) admitted += count(await decideTogether(limiter, key, requests), 'admitted');
  return admitted;
}

function moveAddress(): void {
  relay.switchTo(replica.port);
  relay.cut();
}

/**
 * Waits until the state of the limiter shows a refused write. The function polls in every turn of the event loop,
 * because the reason is lost when the connection closes.
 */
async function meetsReadOnly(limiter: LoggedLimiter): Promise<void> {
  for (;;) {
    const state = limiter.state();
    if (state.kind === 'redis' && state.reason?.startsWith('READONLY')) return;
    await nextTurn();
  }
}

/** Waits until Redis is available again and the limiters decide with the counts in Redis. */
async function areShared(limiters: readonly LoggedLimiter[]): Promise<void> {
  await untilBack(...limiters);
  for (const limiter of limiters) {
    await until('a decision is shared', async () => {
      const [decision] = await decideInTurn(limiter, keyOf(10, 10), 1);
      return decision?.source === 'shared';
    });
  }
}

async function expectWellAfterwards(limiters: readonly LoggedLimiter[], prefix: string): Promise<void> {
  expectOneOutage(limiters);
  expect(await dayUsed(replica.inspector, prefix, key)).toBeGreaterThanOrEqual(limit);
  expect(await keysWithoutExpiry(replica.inspector)).toEqual([]);
}
