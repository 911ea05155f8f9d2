import { readFileSync } from 'node:fs';
import type { Result } from 'ioredis';
import type { RedisConnection } from '../redis/redis-connection.ts';
import { replyOrUndefined } from '../redis/redis-reply.ts';
import { withinDeadline } from '../shared/structures/within-deadline.ts';
import type { Bounds } from '../shared/timeouts-and-sizes.ts';

export interface Report<Entry extends object> {
  /** The same in the reports of all processes. */
  readonly what: readonly unknown[];
  /** The maximum time between two reports that are merged into one entry. */
  readonly mergedWithinMs: number;
  readonly entry: Entry;
  /** The process that detected the event, if another process records it. */
  readonly seenBy?: string | undefined;
}

export type Listed<Entry extends object> = Entry & {
  /** The position in the list. The `after` of the next page is the id of the last entry. */
  readonly id: string;
  /** ISO 8601, in UTC. */
  readonly at: string;
  /** The first process that reported the event, and the number of all that did. */
  readonly process: string;
  readonly processes: number;
};

export interface PageQuery {
  readonly limit: number;
  /** The id of the last entry of the previous page. */
  readonly after?: string | undefined;
}

export interface ListQuery<Entry extends object> extends PageQuery {
  /** Only these entries are listed. */
  readonly isAsked?: ((entry: Listed<Entry>) => boolean) | undefined;
}

export interface ListPage<Entry extends object> {
  /** False while Redis is unavailable; then the page has only the entries of this process. */
  readonly isComplete: boolean;
  /** The newest first. */
  readonly entries: readonly Listed<Entry>[];
  readonly next?: string | undefined;
}

interface Unsent<Entry extends object> extends Report<Entry> {
  readonly number: number;
  /** On the clock of `performance.now()`. */
  readonly happenedMs: number;
}

/** The number of entries that a filtered read reads with one command. */
const filteredAtOnce = 500;

const script = readFileSync(new URL('./add-report.lua', import.meta.url), 'utf8');

/**
 * Events or changes of all processes, in a stream in Redis or, without Redis, in this process's memory. In Redis, the reports of several
 * processes about one event are merged into one entry. If Redis is unavailable, an entry is written later with the original time of the
 * event.
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
  /** The stream and its hash. */
  readonly names: (prefix: string) => readonly [string, string];
  readonly processId: string;
  readonly nowMs: () => number;
  readonly entriesMax: number;
  readonly keptMs: number;
  readonly bounds: Bounds;
}) {
  /** Newest first. */
  const own: Listed<Entry>[] = [];
  const unsent: Unsent<Entry>[] = [];
  let number = 0;
  /** Ids grow, as in Redis, also if the clock of this process is set back. */
  let lastIdMs = 0;
  let sending: Promise<void> | undefined;
  const [stream, hash] = names(records?.prefix ?? '');
  records?.commands.defineCommand('addReport', { numberOfKeys: 2, lua: script });
  const timer = records && setInterval(send, bounds.presenceIntervalMs).unref();

  function record(report: Report<Entry>): void {
    number += 1;
    const atMs = nowMs();
    const at = new Date(atMs).toISOString();
    lastIdMs = Math.max(lastIdMs, atMs);
    own.unshift({ ...report.entry, id: `${lastIdMs}-${number}`, at, process: seenBy(report), processes: 1 });
    if (own.length > entriesMax) own.pop();
    if (records === undefined) return;
    unsent.push({ ...report, number, happenedMs: performance.now() });
    if (unsent.length > entriesMax) unsent.shift();
    send();
  }

  function seenBy(report: Report<Entry>): string {
    return report.seenBy ?? processId;
  }

  /** Sends one report at a time, so reports keep their order. */
  function send(): void {
    if (unsent.length > 0) sending ??= sendAll().finally(() => (sending = undefined));
  }

  async function sendAll(): Promise<void> {
    for (let first = unsent[0]; first !== undefined && records?.isReady(stream); first = unsent[0]) {
      const isSent = await withinDeadline(
        add(records, first).then(
          () => true,
          () => false,
        ),
        bounds.storePatientDeadlineMs,
        () => false,
      );
      if (!isSent) return;
      if (unsent[0] === first) unsent.shift();
    }
  }

  function add({ commands }: RedisConnection, report: Unsent<Entry>): Promise<unknown> {
    return commands.addReport(
      ...[stream, hash, JSON.stringify(report.what)],
      ...[JSON.stringify({ ...report.entry, process: seenBy(report) }), seenBy(report), report.number],
      ...[Math.round(performance.now() - report.happenedMs), report.mergedWithinMs],
      ...[bounds.listReportsMax, entriesMax, keptMs],
    );
  }

  /** A filter reads the whole stream, because a further page is only named if it has an entry. */
  async function readShared(
    { commands }: RedisConnection,
    { limit, after, isAsked }: ListQuery<Entry>,
  ): Promise<ListPage<Entry>> {
    const count = isAsked === undefined ? limit + 1 : filteredAtOnce;
    const found: { readonly id: string; readonly listed: Listed<Entry> | undefined }[] = [];
    let before = after;
    let isRead = false;
    while (!isRead && found.length <= limit) {
      const from = before === undefined ? '+' : `(${before}`;
      const part = await commands.xrevrange(stream, from, '-', 'COUNT', count);
      const reports = part.length === 0 ? [] : await commands.hmget(hash, ...part.map(([id]) => `id:${id}`));
      for (const [index, entry] of part.entries()) {
        const [id] = entry;
        const listed = toListed<Entry>(entry, reports[index]);
        if (isAsked === undefined || (listed !== undefined && isAsked(listed))) found.push({ id, listed });
      }
      before = part.at(-1)?.[0];
      isRead = part.length < count;
    }
    const page = found.slice(0, limit);
    const next = found.length > limit ? page.at(-1)?.id : undefined;
    return { isComplete: true, entries: byInstant(page.flatMap(({ listed }) => listed ?? [])), next };
  }

  return {
    record,
    async read(query: ListQuery<Entry>): Promise<ListPage<Entry>> {
      // A client finds its own change in the list.
      await sent();
      const deadlineMs = bounds.storePatientDeadlineMs;
      const shared =
        records && (await replyOrUndefined(records, [stream], () => readShared(records, query), deadlineMs));
      return shared ?? { isComplete: records === undefined, ...pageOf(own, query) };
    },
    /** Sends the remaining reports, and stops. */
    async close() {
      clearInterval(timer);
      send();
      await sent();
    },
  };

  /** Resolves when the current reports are sent, or after a deadline. */
  async function sent(): Promise<void> {
    await withinDeadline(sending ?? Promise.resolve(), bounds.storePatientDeadlineMs, () => undefined);
  }
}

function pageOf<Entry extends object>(
  own: readonly Listed<Entry>[],
  { limit, after, isAsked = () => true }: ListQuery<Entry>,
): Omit<ListPage<Entry>, 'isComplete'> {
  const found = own
    .slice(after === undefined ? 0 : own.findIndex(({ id }) => id === after) + 1)
    .filter(isAsked);
  const page = found.slice(0, limit);
  const last = page.at(-1);
  return { entries: byInstant(page), next: found.length > limit ? last?.id : undefined };
}

/**
 * By the time of the event, because an entry may be written late. Entries of one process keep the order in which they were sent, because
 * times are only accurate to one or two milliseconds. @param entries the last written entry first
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

/** Undefined for an entry that another program wrote to the stream. @param reports `<process>:<number> …` */
function toListed<Entry extends object>(
  [id, [, , , at, , entry = '']]: readonly [id: string, fields: readonly string[]],
  reports: string | null | undefined,
): Listed<Entry> | undefined {
  try {
    const members = JSON.parse(entry) as Entry & { process: string };
    const processes = reports?.split(' ').length ?? 1;
    return { id, at: new Date(Number(at)).toISOString(), ...members, processes };
  } catch {
    return undefined;
  }
}

declare module 'ioredis' {
  interface RedisCommander<Context> {
    addReport(...args: readonly (string | number)[]): Result<null, Context>;
  }
}
