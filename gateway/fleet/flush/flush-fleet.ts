import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Result } from 'ioredis';
import type { RedisConnection } from '../../redis/redis-connection.ts';
import { redisKeys } from '../../redis/redis-keys.ts';
import { replyOrUndefined } from '../../redis/redis-reply.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import type { KnownProcess, Presence } from '../presence.ts';

/**
 * Makes every process of the fleet send its unsent counts to Redis, and waits until all have. Never rejects.
 *
 * @param reusedMs an earlier flush suffices if it began less than this time ago; by default, none suffices
 */
export type FlushFleet = (reusedMs?: number) => Promise<FlushedFleet>;

/**
 * Makes every process send its unsent counts, and waits for nothing. Has no effect for `fleetFlushReusedMs` after the last flush of the
 * fleet.
 */
export type RequestFlush = () => void;

export interface FlushedFleet {
  /** False when Redis did not reply, so that the list of processes is not known. */
  readonly isComplete: boolean;
  /** Processes that were listed during the flush and have not sent all their counts in time, for example because they hang. */
  readonly behind: readonly KnownProcess[];
}

const script = readFileSync(new URL('./raise-flush.lua', import.meta.url), 'utf8');

/**
 * An operator's command waits for a flush before it reads counts of all processes. After the flush, Redis has every count that a listed
 * process had made before the flush began. A process of an earlier version never reports a flush, so the wait for it ends with the timeout.
 *
 * The flush raises a number in Redis. Each process reads the number when it publishes its state, sends its counts, and then states the
 * number in its published state (`flushed`). Without Redis, there is nothing to send, because readers add the counts in memory.
 *
 * Calls at the same time share a flush.
 */
export function createFlushFleet({
  records,
  presence,
  bounds,
}: {
  readonly records: RedisConnection | undefined;
  readonly presence: Pick<Presence, 'read' | 'flushOwn'>;
  readonly bounds: Bounds;
}): { readonly flushFleet: FlushFleet; readonly requestFlush: RequestFlush } {
  if (records === undefined)
    return { flushFleet: async () => ({ isComplete: true, behind: [] }), requestFlush: () => {} };
  const redis = records;
  const { commands: client, prefix } = redis;
  const { fleetFlushTimeoutMs, fleetFlushPollMs, fleetFlushReusedMs, storePatientDeadlineMs } = bounds;
  const lifetimeMs = Math.max(fleetFlushTimeoutMs, fleetFlushReusedMs);
  const name = redisKeys.flush.name(prefix);
  client.defineCommand('raiseFlush', { numberOfKeys: 1, lua: script });
  let running: Promise<FlushedFleet> | undefined;
  let next: Promise<FlushedFleet> | undefined;
  let requestedMs = Number.NEGATIVE_INFINITY;

  return {
    flushFleet(reusedMs = 0) {
      if (running === undefined) return begin(reusedMs);
      // The running flush began less than `fleetFlushTimeoutMs` ago.
      if (reusedMs >= fleetFlushTimeoutMs) return running;
      next ??= running.then(() => {
        next = undefined;
        return begin(0);
      });
      return next;
    },
    requestFlush() {
      const nowMs = performance.now();
      if (nowMs - requestedMs < fleetFlushReusedMs) return;
      requestedMs = nowMs;
      void raise(fleetFlushReusedMs);
    },
  };

  function begin(reusedMs: number): Promise<FlushedFleet> {
    running = flush(reusedMs).finally(() => {
      running = undefined;
    });
    return running;
  }

  async function flush(reusedMs: number): Promise<FlushedFleet> {
    const deadlineMs = performance.now() + fleetFlushTimeoutMs;
    const number = await raise(reusedMs);
    if (number === undefined) return { isComplete: false, behind: [] };
    // The states of 2,000 processes take 60 ms of CPU time, so each read leaves out the processes that have already sent their counts.
    const done = new Set<string>();
    const awaited = new Map<string, KnownProcess>();
    for (;;) {
      const { isComplete, processes } = await presence.read(done);
      // A process that hangs leaves the list, and so does a process that ends in order, but the latter sends its counts first.
      for (const { id, phase } of awaited.values()) if (phase === 'draining') awaited.delete(id);
      for (const one of processes) {
        if ((one.flushed ?? 0) < number) awaited.set(one.id, one);
        else {
          awaited.delete(one.id);
          done.add(one.id);
        }
      }
      const isDone = isComplete && awaited.size === 0;
      if (isDone || performance.now() >= deadlineMs) return { isComplete, behind: [...awaited.values()] };
      await sleep(fleetFlushPollMs);
    }
  }

  /** @returns the number of the flush; undefined if Redis does not reply */
  async function raise(reusedMs: number): Promise<number | undefined> {
    const call = () => client.raiseFlush(name, lifetimeMs, reusedMs);
    const number = await replyOrUndefined(redis, [name], call, storePatientDeadlineMs);
    if (number !== undefined) presence.flushOwn(number);
    return number;
  }
}

declare module 'ioredis' {
  interface RedisCommander<Context> {
    raiseFlush(name: string, lifetimeMs: number, reusedMs: number): Result<number, Context>;
  }
}
