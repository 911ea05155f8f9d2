import { setTimeout as sleep } from 'node:timers/promises';
import type { Decision } from '../../gateway/shared/model.ts';
import { startSentinel } from '../support/start-sentinel.ts';
import { patientStore } from '../support/tuning.ts';
import { until } from '../support/until.ts';
import { admittedOf, bans, decideAtOnce, isWhole, keyNamed, openBareLimiters } from './limiters.ts';

const prefix = 'test';

export interface IsolatedMaster {
  readonly limit: number;
  readonly admitted: number;
  /** Requests that the isolated old master counted, and that the new master therefore does not count. */
  readonly lost: number;
  /**
   * The number of times that a limiter disconnected from a server. Each disconnection may lose the count of one call in progress, because
   * the limiter does not repeat the call.
   */
  readonly left: number;
  /** The number of requests that the limiters admitted without Redis. A call in progress may report several of these requests. */
  readonly local: number;
  /** The final count on the new master. */
  readonly used: number;
  /** The time from the announcement of the new master to the last write to the old master. */
  readonly wroteToOldForMs: number;
  /**
   * Both times begin when the Sentinels could first detect the isolation. `announcedAfterMs` is the time until the new master is announced.
   * `backAfterMs` is the time until every limiter uses the new master.
   */
  readonly announcedAfterMs: number;
  readonly backAfterMs: number;
}

/**
 * The master is cut off from the Sentinels and its replicas, but not from the gateways. The Sentinels promote a replica. Two limiters under
 * load must disconnect from the old master, which still accepts writes.
 */
export async function measureIsolatedMaster(limit: number): Promise<IsolatedMaster> {
  const redis = await startSentinel();
  const [old, ...replicas] = redis.servers;
  if (old === undefined) throw new Error('three servers were started');
  const place = { sentinel: { name: redis.name, hosts: redis.hosts } };
  const all = await openBareLimiters(2, { place, prefix, bounds: patientStore });
  try {
    const key = keyNamed('isolated', limit);
    const name = `${prefix}:{${key.id}}`;
    const usedIn = async ({ inspector }: typeof old) => Number(await inspector.hget(name, 'dayUsed'));
    let admitted = 0;
    const spend = async (requests: number) => {
      const outcomes = await Promise.all(all.map(({ limiter }) => decideAtOnce(limiter, key, requests)));
      admitted += admittedOf(outcomes.flat());
    };
    await spend(10);
    await until('the counts are replicated', async () =>
      (await Promise.all(replicas.map(usedIn))).every((used) => used === admitted),
    );
    const replicated = admitted;
    await redis.isolateFirst();

    let isRunning = true;
    const decisions: Decision[] = [];
    const clients = all.map(async ({ limiter }) => {
      while (isRunning) {
        const decision = await limiter.decide(key, { bans }, { units: 1 });
        if (decision.kind !== 'stale') decisions.push(decision);
        await sleep(5);
      }
    });
    await until('the old master counts alone', async () => (await usedIn(old)) > replicated);
    const isolatedMs = performance.now();
    await redis.promoteAfter(500);
    await until('another master is announced', async () => (await redis.master()) !== old);
    const announcedMs = performance.now();
    // The new master must remain the master.
    await redis.promoteAfter(600_000);
    let lastWriteMs = announcedMs;
    let [before, seen] = [await usedIn(old), -1];
    const master = await redis.master();
    await until('the new master decides', async () => {
      seen = await usedIn(old);
      if (seen !== before) lastWriteMs = performance.now();
      before = seen;
      return all.every(({ limiter }) => isWhole(limiter)) && (await usedIn(master)) > replicated;
    });
    const backAfterMs = performance.now() - isolatedMs;
    isRunning = false;
    await Promise.all(clients);
    admitted += admittedOf(decisions);
    const lost = (await usedIn(old)) - replicated;
    await spend(limit);
    return {
      limit,
      admitted,
      lost,
      left: all.flatMap(({ logged }) => logged.filter((msg) => msg === 'Redis is away')).length,
      local: admittedOf(decisions.filter(({ source }) => source !== 'shared')),
      used: await usedIn(master),
      wroteToOldForMs: lastWriteMs - announcedMs,
      announcedAfterMs: announcedMs - isolatedMs,
      backAfterMs,
    };
  } finally {
    await Promise.all(all.map(({ limiter }) => limiter.close()));
    await redis.stop();
  }
}
