import { readFileSync } from 'node:fs';
import type { Result } from 'ioredis';
import type { RecordsInRedis } from '../redis/redis-client.ts';
import { withinDeadline } from '../redis/within-deadline.ts';
import { redisKeys } from '../redis-keys.ts';
import type { Bounds } from '../timeouts-and-sizes.ts';

/** Something that was changed, or that failed to be. */
export interface Change {
  readonly action: 'reload' | 'reload_failed';
  /** Who did it: `file` where the configuration files were edited. */
  readonly by: string;
  /** The versions of the configuration: the one in force until then, and the new one, or the one that is not valid. */
  readonly before: string;
  readonly after?: string;
  /** Why it failed. */
  readonly error?: string;
}

export interface RecordedChange extends Change {
  /** Where it stands in the list: the `after` of a further page. */
  readonly id: string;
  /** ISO 8601, in UTC. */
  readonly at: string;
  /** The process that was first to report it, and how many have. */
  readonly process: string;
  readonly processes: number;
}

export interface ChangesPage {
  /** False while Redis is away: then only those of this process are known. */
  readonly isComplete: boolean;
  /** The newest first. */
  readonly changes: readonly RecordedChange[];
  readonly next?: string;
}

/** The record of changes, which all processes share. */
export interface Changes {
  record(change: Change): void;
  /** @param after the id of the last change of the page before */
  read(options: { readonly limit: number; readonly after?: string }): Promise<ChangesPage>;
  /** Sends what is left to send, and stops. */
  close(): Promise<void>;
}

interface Report {
  readonly number: number;
  readonly recorded: RecordedChange;
}

const script = readFileSync(new URL('./record-change.lua', import.meta.url), 'utf8');

/**
 * Keeps changes in a stream in Redis, where the reload that each process does of the same files is one entry; in this
 * process's memory without Redis. What cannot be written now is written later.
 */
export function createChanges({
  records,
  processId,
  nowMs,
  bounds,
}: {
  readonly records: RecordsInRedis | undefined;
  readonly processId: string;
  readonly nowMs: () => number;
  readonly bounds: Pick<
    Bounds,
    | 'changesMax'
    | 'changesKeptMs'
    | 'changesMergedWithinMs'
    | 'changeErrorCharsMax'
    | 'presenceIntervalMs'
    | 'storePatientDeadlineMs'
  >;
}): Changes {
  /** Those of this process, the newest first. */
  const own: RecordedChange[] = [];
  const unsent: Report[] = [];
  let number = 0;
  let sending: Promise<void> | undefined;
  records?.client.defineCommand('recordChange', { numberOfKeys: 1, lua: script });
  const timer = records && setInterval(send, bounds.presenceIntervalMs).unref();

  function record(change: Change): void {
    number += 1;
    const atMs = nowMs();
    const recorded = {
      ...change,
      ...(change.error !== undefined && { error: change.error.slice(0, bounds.changeErrorCharsMax) }),
      id: `${atMs}-${number}`,
      at: new Date(atMs).toISOString(),
      process: processId,
      processes: 1,
    };
    own.unshift(recorded);
    if (own.length > bounds.changesMax) own.pop();
    if (records === undefined) return;
    unsent.push({ number, recorded });
    if (unsent.length > bounds.changesMax) unsent.shift();
    send();
  }

  /** One after the other, so that they stand in their order. */
  function send(): void {
    if (unsent.length > 0) sending ??= sendAll().finally(() => (sending = undefined));
  }

  async function sendAll(): Promise<void> {
    for (let first = unsent[0]; first !== undefined && records !== undefined; first = unsent[0]) {
      if (records.client.status !== 'ready') return;
      const isSent = await sendOne(records, first);
      if (!isSent) return;
      if (unsent[0] === first) unsent.shift();
    }
  }

  function sendOne({ client, prefix }: RecordsInRedis, { number, recorded }: Report): Promise<boolean> {
    const { action, by, before, after } = recorded;
    const { id: _, processes: __, ...change } = recorded;
    const sent = client.recordChange(
      redisKeys.changes.name(prefix),
      JSON.stringify([action, by, before, after]),
      JSON.stringify(change),
      processId,
      number,
      bounds.changesMergedWithinMs,
      bounds.changesMax,
      bounds.changesKeptMs,
    );
    return withinDeadline(
      sent.then(
        () => true,
        () => false,
      ),
      bounds.storePatientDeadlineMs,
      () => false,
    );
  }

  async function readShared({ client, prefix }: RecordsInRedis, limit: number, after: string | undefined) {
    if (client.status !== 'ready') return undefined;
    const from = after === undefined ? '+' : `(${after}`;
    const read = client.xrevrange(redisKeys.changes.name(prefix), from, '-', 'COUNT', limit + 1);
    return withinDeadline(
      read.then(
        (entries) => entries.flatMap(toChange),
        () => undefined,
      ),
      bounds.storePatientDeadlineMs,
      () => undefined,
    );
  }

  return {
    record,
    async read({ limit, after }) {
      const shared = records && (await readShared(records, limit, after));
      const found =
        shared ?? own.slice(after === undefined ? 0 : own.findIndex(({ id }) => id === after) + 1);
      const changes = found.slice(0, limit);
      const last = changes.at(-1);
      const isComplete = records === undefined || shared !== undefined;
      return { isComplete, changes, ...(found.length > limit && last && { next: last.id }) };
    },
    async close() {
      clearInterval(timer);
      send();
      await withinDeadline(sending ?? Promise.resolve(), bounds.storePatientDeadlineMs, () => undefined);
    },
  };
}

/** The fields as `record-change.lua` writes them. */
function toChange([id, fields]: readonly [string, readonly string[]]): RecordedChange[] {
  const [, , , change = '', , reports = ''] = fields;
  try {
    return [{ id, ...JSON.parse(change), processes: reports.split(' ').length }];
  } catch {
    // Somebody else has written to the stream.
    return [];
  }
}

declare module 'ioredis' {
  interface RedisCommander<Context> {
    recordChange(
      stream: string,
      what: string,
      change: string,
      processId: string,
      number: number,
      mergedWithinMs: number,
      changesMax: number,
      keptMs: number,
    ): Result<null, Context>;
  }
}
