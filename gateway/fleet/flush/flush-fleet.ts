import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Result } from 'ioredis';
import type { RedisConnection } from '../../redis/redis-connection.ts';
import { redisKeys } from '../../redis/redis-keys.ts';
import { replyOrUndefined } from '../../redis/redis-reply.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import type { KnownProcess, Presence } from '../presence.ts';

/** Makes every process of the fleet send its unsent counts to Redis. The promise never rejects. */
export type FlushFleet = () => Promise<FlushedFleet>;

export interface FlushedFleet {
  /** False when Redis did not reply, so that the list of processes is not known. */
  readonly isComplete: boolean;
  /** The listed processes that have not sent all their counts in time. */
  readonly behind: readonly KnownProcess[];
}

const script = readFileSync(new URL('./raise-flush.lua', import.meta.url), 'utf8');

/**
 * Creates the function that flushes the counts of all processes. An operator's command calls the function before it reads counts of all
 * processes. After the flush, Redis has every count that a listed process had made before the call. A process of an earlier version never
 * reports a flush, so the function waits for it until the timeout.
 *
 * The function raises a number in Redis. Each process reads the number when it publishes its state, sends its counts, and then states the
 * number in its published state (`flushed`). Without Redis, there is nothing to send, because readers add the counts in memory.
 *
 * Calls at the same time share a flush. A call never uses a flush that began before the call.
 */
export function createFlushFleet({
  records,
  presence,
  bounds,
}: {
  readonly records: RedisConnection | undefined;
  readonly presence: Pick<Presence, 'read' | 'flushOwn'>;
  readonly bounds: Bounds;
}): FlushFleet {
  if (records === undefined) return async () => ({ isComplete: true, behind: [] });
  const { commands: client, prefix } = records;
  const name = redisKeys.flush.name(prefix);
  client.defineCommand('raiseFlush', { numberOfKeys: 1, lua: script });
  let running: Promise<FlushedFleet> | undefined;
  let next: Promise<FlushedFleet> | undefined;

  return flushFleet;

  function flushFleet(): Promise<FlushedFleet> {
    if (running === undefined) return begin();
    next ??= running.then(() => {
      next = undefined;
      return begin();
    });
    return next;
  }

  function begin(): Promise<FlushedFleet> {
    running = flush().finally(() => {
      running = undefined;
    });
    return running;
  }

  async function flush(): Promise<FlushedFleet> {
    const { fleetFlushTimeoutMs, fleetFlushPollMs, storePatientDeadlineMs } = bounds;
    const deadlineMs = performance.now() + fleetFlushTimeoutMs;
    const raise = () => client.raiseFlush(name, fleetFlushTimeoutMs);
    const number = await replyOrUndefined(records as RedisConnection, [name], raise, storePatientDeadlineMs);
    if (number === undefined) return { isComplete: false, behind: [] };
    presence.flushOwn(number);
    for (;;) {
      const { isComplete, processes } = await presence.read();
      const behind = processes.filter(({ flushed = 0 }) => flushed < number);
      const isDone = isComplete && behind.length === 0;
      if (isDone || performance.now() >= deadlineMs) return { isComplete, behind };
      await sleep(fleetFlushPollMs);
    }
  }
}

declare module 'ioredis' {
  interface RedisCommander<Context> {
    raiseFlush(name: string, lifetimeMs: number): Result<number, Context>;
  }
}
