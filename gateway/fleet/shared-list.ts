import { readFileSync } from 'node:fs';
import type { Result } from 'ioredis';
import type { RedisConnection } from '../redis/redis-connection.ts';
import { withinDeadline } from '../redis/within-deadline.ts';
import type { Bounds } from '../timeouts-and-sizes.ts';

/** A list of what happened, which all processes share. */
export interface SharedList<Entry extends object> {
  record(report: Report<Entry>): void;
  /** @param after the id of the last entry of the page before */
  read(options: { readonly limit: number; readonly after?: string }): Promise<ListPage<Entry>>;
  /** Sends what is left to send, and stops. */
  close(): Promise<void>;
}

export interface Report<Entry extends object> {
  /** Equal in the reports of all processes that have seen the same. */
  readonly what: readonly unknown[];
  /** How far apart reports of the same may be. */
  readonly mergedWithinMs: number;
  readonly entry: Entry;
  /** Of the process that has seen it, where that is another one. */
  readonly seenBy?: string | undefined;
}

export type Listed<Entry extends object> = Entry & {
  /** Where it stands in the list: the `after` of a further page. */
  readonly id: string;
  /** ISO 8601, in UTC. */
  readonly at: string;
  /** The process that was first to report it, and how many have. */
  readonly process: string;
  readonly processes: number;
};

export interface ListPage<Entry extends object> {
  /** False while Redis is away: then only those of this process are known. */
  readonly isComplete: boolean;
  /** The newest first. */
  readonly entries: readonly Listed<Entry>[];
  readonly next?: string;
}

interface Unsent<Entry extends object> extends Report<Entry> {
  readonly number: number;
  /** When it happened, of `performance.now()`. */
  readonly happenedMs: number;
}

const script = readFileSync(new URL('./add-to-list.lua', import.meta.url), 'utf8');

/**
 * Keeps entries in a stream in Redis, where what several processes report of the same is one entry; in this process's
 * memory without Redis. What cannot be written now is written later, and keeps the instant at which it happened.
 */
export function createSharedList<Entry extends object>({
  records,
  names,
  processId,
  nowMs,
  entriesMax,
  keptMs,
  bounds,
}: {
  readonly records: RedisConnection | undefined;
  /** The stream and the hash beside it. */
  readonly names: (prefix: string) => readonly [string, string];
  readonly processId: string;
  readonly nowMs: () => number;
  readonly entriesMax: number;
  readonly keptMs: number;
  readonly bounds: Pick<Bounds, 'presenceIntervalMs' | 'storePatientDeadlineMs' | 'listReportsMax'>;
}): SharedList<Entry> {
  /** Those of this process, the newest first. */
  const own: Listed<Entry>[] = [];
  const unsent: Unsent<Entry>[] = [];
  let number = 0;
  let sending: Promise<void> | undefined;
  records?.commands.defineCommand('addToList', { numberOfKeys: 2, lua: script });
  const timer = records && setInterval(send, bounds.presenceIntervalMs).unref();

  function record(report: Report<Entry>): void {
    number += 1;
    const atMs = nowMs();
    const at = new Date(atMs).toISOString();
    own.unshift({ ...report.entry, id: `${atMs}-${number}`, at, process: seenBy(report), processes: 1 });
    if (own.length > entriesMax) own.pop();
    if (records === undefined) return;
    unsent.push({ ...report, number, happenedMs: performance.now() });
    if (unsent.length > entriesMax) unsent.shift();
    send();
  }

  function seenBy(report: Report<Entry>): string {
    return report.seenBy ?? processId;
  }

  /** One after the other, so that they stand in their order. */
  function send(): void {
    if (unsent.length > 0) sending ??= sendAll().finally(() => (sending = undefined));
  }

  async function sendAll(): Promise<void> {
    for (let first = unsent[0]; first !== undefined && records !== undefined; first = unsent[0]) {
      if (!records.isReady(names(records.prefix)[0])) return;
      const isSent = await sendOne(records, first);
      if (!isSent) return;
      if (unsent[0] === first) unsent.shift();
    }
  }

  function sendOne({ commands: client, prefix }: RedisConnection, report: Unsent<Entry>): Promise<boolean> {
    const sent = client.addToList(
      ...names(prefix),
      JSON.stringify(report.what),
      JSON.stringify({ ...report.entry, process: seenBy(report) }),
      seenBy(report),
      report.number,
      Math.round(performance.now() - report.happenedMs),
      report.mergedWithinMs,
      entriesMax,
      keptMs,
      bounds.listReportsMax,
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

  async function readShared(records: RedisConnection, limit: number, after: string | undefined) {
    const { commands: client, prefix } = records;
    const [stream, hash] = names(prefix);
    if (!records.isReady(stream)) return undefined;
    const from = after === undefined ? '+' : `(${after}`;
    const read = client.xrevrange(stream, from, '-', 'COUNT', limit + 1).then(async (entries) => {
      if (entries.length === 0) return [];
      const reports = await client.hmget(hash, ...entries.map(([id]) => `id:${id}`));
      return entries.flatMap((entry, index) => toListed<Entry>(entry, reports[index] ?? ''));
    });
    return withinDeadline(
      read.catch(() => undefined),
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
      const page = found.slice(0, limit);
      const last = page.at(-1);
      return {
        isComplete: records === undefined || shared !== undefined,
        entries: byInstant(page),
        ...(found.length > limit && last && { next: last.id }),
      };
    },
    async close() {
      clearInterval(timer);
      send();
      await withinDeadline(sending ?? Promise.resolve(), bounds.storePatientDeadlineMs, () => undefined);
    },
  };
}

/**
 * What was written late stands behind what happened after it. Those of one process keep the order in which it sent them:
 * when something happened is known to a millisecond or two.
 *
 * @param entries the last written first
 */
function byInstant<Entry extends { readonly at: string; readonly process: string }>(
  entries: readonly Entry[],
): readonly Entry[] {
  const latest = new Map<string, string>();
  const placed = entries.toReversed().map((entry) => {
    const before = latest.get(entry.process) ?? '';
    const at = entry.at > before ? entry.at : before;
    latest.set(entry.process, at);
    return { entry, at };
  });
  return placed
    .toReversed()
    .sort((a, b) => (a.at < b.at ? 1 : a.at > b.at ? -1 : 0))
    .map(({ entry }) => entry);
}

/** The fields as `add-to-list.lua` writes them. Somebody else may have written to the stream: that is left out. */
function toListed<Entry extends object>(
  [id, fields]: readonly [string, readonly string[]],
  reports: string,
): Listed<Entry>[] {
  const [, , , at = '', , entry = ''] = fields;
  try {
    const members = JSON.parse(entry) as Entry & { process: string };
    return [{ id, at: new Date(Number(at)).toISOString(), ...members, processes: reports.split(' ').length }];
  } catch {
    return [];
  }
}

declare module 'ioredis' {
  interface RedisCommander<Context> {
    addToList(
      stream: string,
      hash: string,
      what: string,
      entry: string,
      processId: string,
      number: number,
      agoMs: number,
      mergedWithinMs: number,
      entriesMax: number,
      keptMs: number,
      reportsMax: number,
    ): Result<null, Context>;
  }
}
