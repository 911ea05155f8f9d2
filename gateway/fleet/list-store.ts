import { readFileSync } from 'node:fs';
import type { Result } from 'ioredis';
import type { RedisConnection } from '../redis/redis-connection.ts';
import { withinDeadline } from '../shared/structures/within-deadline.ts';
import type { Bounds } from '../shared/timeouts-and-sizes.ts';

/** A shared list in Redis. A stream has the entries, and a hash has the processes that reported each entry. */
export interface ListStore {
  /** @returns whether the entry is listed. If not, the caller adds the entry again. A report is counted only once. */
  add(report: StoredReport): Promise<boolean>;
  /**
   * @param after the id of the last entry of the page before
   * @returns undefined while Redis is away
   */
  read(options: {
    readonly limit: number;
    readonly after?: string | undefined;
  }): Promise<StoredPage | undefined>;
}

export interface StoredReport {
  /** Equal in all reports of one entry. */
  readonly what: string;
  readonly entry: string;
  readonly process: string;
  /** Unique among the reports of this process. */
  readonly number: number;
  readonly agoMs: number;
  readonly mergedWithinMs: number;
}

export interface StoredEntry {
  readonly id: string;
  /** Epoch ms. */
  readonly at: string;
  readonly entry: string;
  /** How many processes have reported it. */
  readonly processes: number;
}

interface StoredPage {
  /** Newest entry first. */
  readonly entries: readonly StoredEntry[];
  readonly next: string | undefined;
}

export type ListStoreBounds = Pick<
  Bounds,
  | 'storePatientDeadlineMs'
  | 'listReportsMax'
  | 'listClaimOverdueMs'
  | 'listRemovedAtOnceMax'
  | 'listSearchedMax'
>;

/** The script's reply for an entry that this process has to add. */
type Claim = readonly [name: string, what: string, at: string, entry: string, since: string];

type StreamEntry = readonly [id: string, fields: readonly string[]];

const script = readFileSync(new URL('./list-reports.lua', import.meta.url), 'utf8');

/** Adds entries in steps. `list-reports.lua` describes the steps, and the case that a process dies between two steps. */
export function createListStore({
  records,
  names,
  entriesMax,
  keptMs,
  bounds,
}: {
  readonly records: RedisConnection;
  /** The names of the stream and of its hash. */
  readonly names: (prefix: string) => readonly [string, string];
  readonly entriesMax: number;
  readonly keptMs: number;
  readonly bounds: ListStoreBounds;
}): ListStore {
  const { commands: client } = records;
  const [stream, hash] = names(records.prefix);
  const { listReportsMax, listClaimOverdueMs, listRemovedAtOnceMax, listSearchedMax } = bounds;
  let addingOverdue: Promise<boolean> | undefined;
  client.defineCommand('listReports', { numberOfKeys: 1, lua: script });

  async function add(report: StoredReport): Promise<boolean> {
    const { what, entry, process, number, agoMs, mergedWithinMs } = report;
    return inTime(async (isLate) => {
      const claims = await client.listReports<readonly Claim[]>(
        ...([hash, 'claim', what, entry, process, number, agoMs, mergedWithinMs] as const),
        ...[listReportsMax, listClaimOverdueMs, keptMs],
      );
      await addAll(claims, isLate);
    });
  }

  /**
   * Starts no further step after the deadline. The caller then adds the report again, and two attempts would add two entries.
   *
   * @returns whether all steps were done
   */
  function inTime(steps: (isLate: () => boolean) => Promise<void>): Promise<boolean> {
    if (!records.isReady(stream)) return Promise.resolve(false);
    let isLate = false;
    const done = steps(() => isLate).then(
      () => !isLate,
      () => false,
    );
    return withinDeadline(done, bounds.storePatientDeadlineMs, () => {
      isLate = true;
      return false;
    });
  }

  async function addAll(claims: readonly Claim[], isLate: () => boolean): Promise<void> {
    for (const claim of claims) await addOne(claim, isLate);
  }

  async function addOne([name, what, at, entry, since]: Claim, isLate: () => boolean): Promise<void> {
    const earlier = since === '' ? undefined : await find(name, since);
    if (isLate()) return;
    const [id] = await Promise.all([
      earlier ?? addToStream(name, what, at, entry),
      client.pexpire(stream, keptMs),
    ]);
    if (isLate()) return;
    const isItsEntry = await client.listReports<number>(hash, 'confirm', name, what, at, id, keptMs);
    if (isLate()) return;
    if (isItsEntry === 0) await client.xdel(stream, id);
    await removeOld(id, isLate);
  }

  /** The id of a claim's entry, if an earlier attempt added the entry. */
  async function find(name: string, since: string): Promise<string | undefined> {
    const entries = await client.xrange(stream, since, '+', 'COUNT', listSearchedMax);
    return entries.find(([, fields]) => reportOf(fields) === name)?.[0];
  }

  async function addToStream(name: string, what: string, at: string, entry: string): Promise<string> {
    const id = await client.xadd(stream, '*', 'what', what, 'at', at, 'entry', entry, 'report', name);
    if (id === null) throw new Error('XADD without NOMKSTREAM replies an id');
    return id;
  }

  async function removeOld(newestId: string, isLate: () => boolean): Promise<void> {
    let removed: number;
    do removed = await removeSome(newestId);
    while (removed === listRemovedAtOnceMax && !isLate());
  }

  /**
   * Removes the oldest entries beyond the maximum. The oldest entries are read before all entries are counted. Another process
   * may remove entries in between, but it removes the ones that were read first. So no entry is removed that should stay.
   *
   * @returns the number of removed entries
   */
  async function removeSome(newestId: string): Promise<number> {
    const [oldest, count] = await Promise.all([
      client.xrange(stream, '-', '+', 'COUNT', listRemovedAtOnceMax),
      client.xlen(stream),
    ]);
    const removed = oldest.filter(
      ([id], index) => index < count - entriesMax || instantOf(newestId) - instantOf(id) > keptMs,
    );
    if (removed.length === 0) return 0;
    // The entry goes last. An entry without reports is removed later, but reports without an entry would stay.
    const forgotten = removed.flatMap(([id, [, what = '']]) => [id, what]);
    await client.listReports<number>(hash, 'forget', ...forgotten);
    await client.xdel(stream, ...removed.map(([id]) => id));
    return removed.length;
  }

  async function read(limit: number, after: string | undefined): Promise<StoredPage> {
    const from = after === undefined ? '+' : `(${after}`;
    const found: readonly StreamEntry[] = await client.xrevrange(stream, from, '-', 'COUNT', limit + 1);
    const page = found.slice(0, limit);
    const [claims, ...reports] = await client.hmget(hash, 'claims', ...page.map(([id]) => `id:${id}`));
    if (claims) addingOverdue ??= addOverdue().finally(() => (addingOverdue = undefined));
    return {
      entries: withoutCopies(page, reports).map(([[id, [, , , at = '', , entry = '']], processes]) => {
        return { id, at, entry, processes };
      }),
      next: found.length > limit ? page.at(-1)?.[0] : undefined,
    };
  }

  /** Adds the entries of processes that died before they added them. */
  function addOverdue(): Promise<boolean> {
    return inTime(async (isLate) => {
      const claims = await client.listReports<readonly Claim[]>(hash, 'overdue', listClaimOverdueMs);
      await addAll(claims, isLate);
    });
  }

  return {
    add,
    async read({ limit, after }) {
      if (!records.isReady(stream)) return undefined;
      return withinDeadline<StoredPage | undefined>(
        read(limit, after).catch(() => undefined),
        bounds.storePatientDeadlineMs,
        () => undefined,
      );
    },
  };
}

/**
 * Removes copies. When a process is paused while it adds an entry, another process may add the same entry. The copy with more
 * reports is kept. Of copies with equal reports the older one is kept.
 *
 * @returns the entries, each with the number of processes that reported it
 */
function withoutCopies(
  page: readonly StreamEntry[],
  reports: readonly (string | null | undefined)[],
): readonly (readonly [StreamEntry, number])[] {
  const shown = new Map<string, readonly [StreamEntry, number]>();
  page.forEach((entry, index) => {
    const [id, fields] = entry;
    // An earlier version wrote no `report`.
    const report = reportOf(fields) ?? id;
    const processes = reports[index]?.split(' ').length ?? 0;
    const [, newerHas = 0] = shown.get(report) ?? [];
    if (processes < newerHas) return;
    shown.delete(report);
    shown.set(report, [entry, processes]);
  });
  return [...shown.values()].map(([entry, processes]) => [entry, Math.max(processes, 1)]);
}

function reportOf([, , , , , , name, report]: readonly string[]): string | undefined {
  return name === 'report' ? report : undefined;
}

/** Redis's clock when the entry was added, epoch ms. */
function instantOf(id: string): number {
  return Number.parseInt(id, 10);
}

declare module 'ioredis' {
  interface RedisCommander<Context> {
    listReports<Reply>(
      hash: string,
      verb: string,
      ...args: readonly (string | number)[]
    ): Result<Reply, Context>;
  }
}
