import { readFileSync } from 'node:fs';
import type { Result } from 'ioredis';
import type { RedisConnection } from '../redis/redis-connection.ts';
import { withinDeadline } from '../redis/within-deadline.ts';
import { redisKeys } from '../redis-keys.ts';
import type { Bounds } from '../timeouts-and-sizes.ts';
import type { ProcessState } from './process-state.ts';

/** The processes that share one store. */
export interface Presence {
  /** Begins to publish. */
  start(): void;
  read(): Promise<Fleet>;
  /** Stops publishing, and takes this process off the list. */
  close(): Promise<void>;
}

export interface Fleet {
  /** False while Redis is away: then only this process is known. */
  readonly isComplete: boolean;
  /** The id of the process that says so. */
  readonly answeredBy: string;
  readonly processes: readonly KnownProcess[];
}

export interface KnownProcess extends ProcessState {
  /** How long ago it said so. */
  readonly ageMs: number;
}

const script = readFileSync(new URL('./publish-presence.lua', import.meta.url), 'utf8');

/**
 * Each process publishes its own state once a second; what is not repeated expires. Nothing of it is on the path of a
 * request. Without Redis, and while it is away, there is this process alone.
 *
 * @param own what this process says of itself now
 */
export function createPresence({
  records,
  own,
  bounds,
}: {
  readonly records: RedisConnection | undefined;
  readonly own: () => ProcessState;
  readonly bounds: Pick<
    Bounds,
    'presenceIntervalMs' | 'presenceExpiryMs' | 'presenceProcessesMax' | 'storePatientDeadlineMs'
  >;
}): Presence {
  if (records === undefined) {
    return {
      start: () => {},
      read: () => Promise.resolve(fleetOf(own(), [])),
      close: () => Promise.resolve(),
    };
  }
  const { commands: client, prefix, isReady, clockOf } = records;
  const names = [redisKeys.processes.name(prefix), redisKeys.processesSeen.name(prefix)] as const;
  client.defineCommand('publishProcess', { numberOfKeys: 2, lua: script });
  let timer: NodeJS.Timeout | undefined;
  let publishing: Promise<unknown> = Promise.resolve();

  function publish(): void {
    timer = setTimeout(publish, bounds.presenceIntervalMs).unref();
    if (!isReady(names[0])) return;
    const state = own();
    const { presenceExpiryMs: expiryMs, presenceProcessesMax: max } = bounds;
    publishing = client.publishProcess(...names, state.id, JSON.stringify(state), expiryMs, max).catch(() => {
      // It is published again in a second, and whoever asks meanwhile is told that Redis is away.
    });
  }

  async function readOthers(ownId: string): Promise<readonly KnownProcess[] | undefined> {
    if (!isReady(names[0])) return undefined;
    const replies = Promise.all([
      clockOf(names[0]),
      client.zrange(names[1], 0, '-1', 'WITHSCORES'),
      client.hgetall(names[0]),
    ]);
    const reply = await withinDeadline(
      replies.catch(() => undefined),
      bounds.storePatientDeadlineMs,
      () => undefined,
    );
    if (reply === undefined) return undefined;
    const [nowMs, seen, states] = reply;
    return pairs(seen).flatMap(([id, seenMs]) => {
      const ageMs = Math.max(0, nowMs - Number(seenMs));
      const state = parseState(states[id]);
      if (id === ownId || state === undefined || ageMs > bounds.presenceExpiryMs) return [];
      return [{ ...state, ageMs }];
    });
  }

  return {
    start: publish,
    async read() {
      const state = own();
      return fleetOf(state, await readOthers(state.id));
    },
    async close() {
      clearTimeout(timer);
      if (!isReady(names[0])) return;
      const { id } = own();
      const removed = publishing
        .then(() => Promise.all([client.hdel(names[0], id), client.zrem(names[1], id)]))
        .catch(() => undefined);
      await withinDeadline<unknown>(removed, bounds.storePatientDeadlineMs, () => undefined);
    },
  };
}

/** @param others undefined when they are not known */
function fleetOf(own: ProcessState, others: readonly KnownProcess[] | undefined): Fleet {
  const processes = [{ ...own, ageMs: 0 }, ...(others ?? [])].sort(byStart);
  return { isComplete: others !== undefined, answeredBy: own.id, processes };
}

/** While a fleet is upgraded another version may have written it: what is not a state is left out. */
function parseState(text = ''): ProcessState | undefined {
  try {
    const state: ProcessState = JSON.parse(text);
    const hasTargets = state.upstreams.every(({ targets }) => Array.isArray(targets));
    return hasTargets && typeof state.id === 'string' ? state : undefined;
  } catch {
    return undefined;
  }
}

/** The oldest first, so that lists stay where they are while processes come and go. */
function byStart(a: ProcessState, b: ProcessState): number {
  const [first, second] = [a.startedAt + a.id, b.startedAt + b.id];
  return first < second ? -1 : 1;
}

/** `[a, 1, b, 2]` as `[[a, 1], [b, 2]]`. */
function pairs(flat: readonly string[]): readonly (readonly [string, string])[] {
  return flat.flatMap((item, index) => (index % 2 === 0 ? [[item, flat[index + 1] ?? ''] as const] : []));
}

declare module 'ioredis' {
  interface RedisCommander<Context> {
    publishProcess(
      states: string,
      seen: string,
      id: string,
      state: string,
      expiryMs: number,
      processesMax: number,
    ): Result<number, Context>;
  }
}
