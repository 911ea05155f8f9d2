import type { RedisConnection } from '../redis/redis-connection.ts';
import { withinDeadline } from '../shared/structures/within-deadline.ts';
import type { Bounds } from '../shared/timeouts-and-sizes.ts';
import { createListStore, type ListStoreBounds, type StoredEntry } from './list-store.ts';

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

export type ListBounds = Pick<Bounds, 'presenceIntervalMs'> & ListStoreBounds;

interface Unsent<Entry extends object> extends Report<Entry> {
  readonly number: number;
  /** When it happened, of `performance.now()`. */
  readonly happenedMs: number;
}

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
  readonly bounds: ListBounds;
}): SharedList<Entry> {
  /** Those of this process, the newest first. */
  const own: Listed<Entry>[] = [];
  const unsent: Unsent<Entry>[] = [];
  let number = 0;
  let sending: Promise<void> | undefined;
  const store = records && createListStore({ records, names, entriesMax, keptMs, bounds });
  const timer = store && setInterval(send, bounds.presenceIntervalMs).unref();

  function record(report: Report<Entry>): void {
    number += 1;
    const atMs = nowMs();
    const at = new Date(atMs).toISOString();
    own.unshift({ ...report.entry, id: `${atMs}-${number}`, at, process: seenBy(report), processes: 1 });
    if (own.length > entriesMax) own.pop();
    if (store === undefined) return;
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
    for (let first = unsent[0]; first !== undefined && store !== undefined; first = unsent[0]) {
      const isSent = await store.add({
        what: JSON.stringify(first.what),
        entry: JSON.stringify({ ...first.entry, process: seenBy(first) }),
        process: seenBy(first),
        number: first.number,
        agoMs: Math.round(performance.now() - first.happenedMs),
        mergedWithinMs: first.mergedWithinMs,
      });
      if (!isSent) return;
      if (unsent[0] === first) unsent.shift();
    }
  }

  return {
    record,
    async read({ limit, after }) {
      // Whoever has changed something and looks at the list finds it there.
      await sent();
      const shared = await store?.read({ limit, after });
      if (shared === undefined) return { isComplete: store === undefined, ...pageOf(own, limit, after) };
      const entries = byInstant(shared.entries.flatMap((entry) => toListed<Entry>(entry)));
      return { isComplete: true, entries, ...(shared.next !== undefined && { next: shared.next }) };
    },
    async close() {
      clearInterval(timer);
      send();
      await sent();
    },
  };

  /** When what is being sent has been, at the latest after a deadline. */
  async function sent(): Promise<void> {
    await withinDeadline(sending ?? Promise.resolve(), bounds.storePatientDeadlineMs, () => undefined);
  }
}

function pageOf<Entry extends object>(
  own: readonly Listed<Entry>[],
  limit: number,
  after: string | undefined,
): Omit<ListPage<Entry>, 'isComplete'> {
  const found = own.slice(after === undefined ? 0 : own.findIndex(({ id }) => id === after) + 1);
  const page = found.slice(0, limit);
  const last = page.at(-1);
  return { entries: byInstant(page), ...(found.length > limit && last && { next: last.id }) };
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

/** Somebody else may have written to the stream: that is left out. */
function toListed<Entry extends object>({ id, at, entry, processes }: StoredEntry): Listed<Entry>[] {
  try {
    const members = JSON.parse(entry) as Entry & { process: string };
    return [{ id, at: new Date(Number(at)).toISOString(), ...members, processes }];
  } catch {
    return [];
  }
}
