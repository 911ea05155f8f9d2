import { readFileSync } from 'node:fs';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Result } from 'ioredis';
import type { RedisConnection } from '../redis/redis-connection.ts';
import { redisKeys } from '../redis/redis-keys.ts';
import { replyOrUndefined } from '../redis/redis-reply.ts';
import { withinDeadline } from '../shared/structures/within-deadline.ts';
import type { Bounds } from '../shared/timeouts-and-sizes.ts';
import { type ProcessState, parseProcessState, withoutHealthyTargets } from './process-state.ts';

export type Presence = ReturnType<typeof createPresence>;

/** The processes that share one store. */
export interface Fleet {
  /** False while Redis is unavailable; then only the processes of this gateway are listed. */
  readonly isComplete: boolean;
  /** The process that sends this response. It may be a supervisor, which is not listed because it serves no clients. */
  readonly answeredBy: string;
  readonly processes: readonly KnownProcess[];
}

export interface KnownProcess extends ProcessState {
  /** The age of the published state. */
  readonly ageMs: number;
}

const script = readFileSync(new URL('./note-seen.lua', import.meta.url), 'utf8');

/**
 * Publishes the state of this gateway's processes once a second, and reads the states of all gateways. A state expires if the process does
 * not publish it again. Requests never wait for a publication. Without Redis, or while it is unavailable, only the processes of this
 * gateway are known.
 *
 * @param own the present states of the processes of this gateway that serve requests
 * @param sendCounts makes these processes send their unsent counts; called again after each publication until their states contain the
 * number of the flush (`flushed`)
 */
export function createPresence({
  records,
  processId,
  own,
  sendCounts = () => {},
  bounds,
}: {
  readonly records: RedisConnection | undefined;
  readonly processId: string;
  readonly own: () => readonly ProcessState[];
  readonly sendCounts?: ((flush: number) => void) | undefined;
  readonly bounds: Bounds;
}) {
  if (records === undefined) {
    return {
      start: () => {},
      flushOwn: () => {},
      read: async (): Promise<Fleet> => fleetOf(processId, own(), []),
      close: async () => {},
    };
  }
  const { commands: client, prefix, isReady, clockOf } = records;
  const seenName = redisKeys.processesSeen.name(prefix);
  const stateName = (id: string) => redisKeys.processes.name(prefix, id);
  const flushName = redisKeys.flush.name(prefix);
  client.defineCommand('noteSeen', { numberOfKeys: 2, lua: script });
  let timer: NodeJS.Timeout | undefined;
  let publishing: Promise<unknown> = Promise.resolve();
  let publishedIds: readonly string[] = [];
  let reading: Promise<readonly KnownProcess[] | undefined> | undefined;

  function publish(): void {
    timer = setTimeout(publish, bounds.presenceIntervalMs).unref();
    if (!isReady(seenName)) return;
    const states = own();
    const { presenceExpiryMs: expiryMs, presenceProcessesMax: max } = bounds;
    const ids = states.map(({ id }) => id);
    const gone = publishedIds.filter((id) => !ids.includes(id));
    publishedIds = ids;
    const published = states.map(async (state) => {
      const [, flush] = await Promise.all([
        client.set(stateName(state.id), JSON.stringify(state), 'PX', expiryMs),
        client.noteSeen(seenName, flushName, state.id, expiryMs, max),
      ]);
      flushOwn(flush);
    });
    publishing = Promise.all([...published, ...remove(gone)]).catch(() => {
      // The next publication follows within a second. Until then, readers get `isComplete: false`.
    });
  }

  /** Does nothing if all these processes have sent their counts since this flush. */
  function flushOwn(flush: number): void {
    if (own().some(({ flushed = 0 }) => flushed < flush)) sendCounts(flush);
  }

  function remove(ids: readonly string[]): Promise<unknown>[] {
    return ids.length === 0 ? [] : [client.zrem(seenName, ...ids), client.del(...ids.map(stateName))];
  }

  /** Calls at the same time share a read. */
  function readAll(): Promise<readonly KnownProcess[] | undefined> {
    reading ??= readSeen(new Set()).finally(() => {
      reading = undefined;
    });
    return reading;
  }

  function readSeen(except: ReadonlySet<string>): Promise<readonly KnownProcess[] | undefined> {
    const call = () => readStates(except);
    return replyOrUndefined({ isReady }, [seenName], call, bounds.storePatientDeadlineMs);
  }

  /**
   * The states of a large fleet are many megabytes. Each turn of the event loop reads only a few, so that Redis and this process serve
   * other requests in between. All states together would contain each target thousands of times, so healthy targets are kept only in the
   * states of `presenceDetailedMax` processes. These are the first by id, because ids are random.
   */
  async function readStates(except: ReadonlySet<string>): Promise<readonly KnownProcess[]> {
    const [nowMs, flat] = await Promise.all([
      clockOf(seenName),
      client.zrange(seenName, 0, '-1', 'WITHSCORES'),
    ]);
    const seen = pairs(flat)
      .filter(([id]) => !except.has(id))
      .toSorted(([one], [other]) => (one < other ? -1 : 1));
    const known: KnownProcess[] = [];
    for (let from = 0; from < seen.length; from += bounds.presenceReadAtOnce) {
      const part = seen.slice(from, from + bounds.presenceReadAtOnce);
      const states = await client.mget(part.map(([id]) => stateName(id)));
      for (const [index, [, seenMs]] of part.entries()) {
        const ageMs = Math.max(0, nowMs - Number(seenMs));
        const state = parseProcessState(states[index]);
        if (state === undefined || ageMs > bounds.presenceExpiryMs) continue;
        known.push({
          ...(known.length < bounds.presenceDetailedMax ? state : withoutHealthyTargets(state)),
          ageMs,
        });
      }
      await nextTurn();
    }
    return known;
  }

  return {
    start: publish,
    flushOwn,
    /** @param except processes of other gateways that are left out */
    async read(except: ReadonlySet<string> = new Set()): Promise<Fleet> {
      const states = own();
      const ownIds = states.map(({ id }) => id);
      const seen = await (except.size === 0 ? readAll() : readSeen(except));
      return fleetOf(
        processId,
        states,
        seen?.filter(({ id }) => !ownIds.includes(id)),
      );
    },
    /** Removes the processes of this gateway from the list. */
    async close() {
      clearTimeout(timer);
      if (!isReady(seenName)) return;
      const removed = publishing.then(() => Promise.all(remove(publishedIds))).catch(() => undefined);
      await withinDeadline<unknown>(removed, bounds.storePatientDeadlineMs, () => undefined);
    },
  };
}

/** @param others undefined when the other processes are not known */
function fleetOf(
  answeredBy: string,
  own: readonly ProcessState[],
  others: readonly KnownProcess[] | undefined,
): Fleet {
  const processes = [...own.map((state) => ({ ...state, ageMs: 0 })), ...(others ?? [])].sort(byStart);
  return { isComplete: others !== undefined, answeredBy, processes };
}

/** By age, oldest first, so a row keeps its position while other processes start and exit. */
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
    noteSeen(
      seen: string,
      flush: string,
      id: string,
      expiryMs: number,
      processesMax: number,
    ): Result<number, Context>;
  }
}
