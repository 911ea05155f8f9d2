import { readFileSync } from 'node:fs';
import type { Result } from 'ioredis';
import type { RedisConnection } from '../redis/redis-connection.ts';
import { withinDeadline } from '../shared/structures/within-deadline.ts';
import type { Bounds } from '../shared/timeouts-and-sizes.ts';

/** A shared list as it is kept in Redis: entries in a stream, and who reported each of them in a hash beside it. */
export interface ListStore {
  /** @returns whether it is listed. If not, it is to be added again: it is counted once. */
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
  /** Equal in all reports of the same. */
  readonly what: string;
  readonly entry: string;
  readonly process: string;
  /** No other report of the process has it. */
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
  /** The last written first. */
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

/** An entry that this process is to add, as the script replies it. */
type Claim = readonly [name: string, what: string, at: string, entry: string, since: string];

type StreamEntry = readonly [id: string, fields: readonly string[]];

const script = readFileSync(new URL('./list-reports.lua', import.meta.url), 'utf8');

/** How an entry is added in steps, and what holds when a process dies between them, is in `list-reports.lua`. */
export function createListStore({
  records,
  names,
  entriesMax,
  keptMs,
  bounds,
}: {
  readonly records: RedisConnection;
  /** The stream and the hash beside it. */
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
   * After the deadline no further step is begun: the report is about to be added again, and both would add an entry.
   *
   * @returns whether all of it was done
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

  /** The entry of a claim that was to be added before, if it was. */
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
   * The oldest are read before they are counted. Where other processes remove some in between, these are the first of
   * those that were read, so that none is removed that may stay.
   *
   * @returns how many were removed
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
    // In this order: an entry without its reports is removed later, reports without their entry would stay.
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

  /** Those of processes that died before they added them. */
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
 * An entry may stand in the stream twice, where a process was stopped for so long while it added the entry that another
 * one did. The copy of which more is known is shown, of equal ones the older.
 *
 * @returns entries, and how many processes reported each
 */
function withoutCopies(
  page: readonly StreamEntry[],
  reports: readonly (string | null | undefined)[],
): readonly (readonly [StreamEntry, number])[] {
  const shown = new Map<string, readonly [StreamEntry, number]>();
  page.forEach((entry, index) => {
    const [id, fields] = entry;
    // An earlier version wrote none.
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

/** The clock of Redis when it was added, epoch ms. */
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
