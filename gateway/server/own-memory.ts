import type { KnownKey } from '../keys/directory/held-keys.ts';
import type { KeyInMemory } from '../request/limit/read-statuses.ts';
import type { KeyStatus } from '../shared/model.ts';
import { latestOf } from '../usage/store/active-keys.ts';
import { type Counts, packCounts } from '../usage/store/counts.ts';
import type { StoredRecord, UsageStore } from '../usage/store/usage-store.ts';
import { completeRecord, sumOfFields } from '../usage/unsent-counts.ts';
import type { Stores } from './stores.ts';

/**
 * The data about keys in the memory of a process that serves requests, for operators while Redis is away. Arguments and results are plain
 * data, so that a supervisor can ask its workers. The result is undefined if a worker does not reply in time.
 */
export interface OwnMemory {
  /** The counts as the process has last seen them, with its own decisions. */
  readStatuses(keys: readonly KeyInMemory[]): Promise<readonly (KeyStatus | undefined)[] | undefined>;
  /** The requests that the process has recorded. */
  readRecords: UsageStore['read'];
  readActive: UsageStore['active'];
  readLastSeen: UsageStore['lastSeen'];
  /** The keys of the directory as the process has last read them for requests; undefined for a key that it does not have. */
  readHeldKeys(ids: readonly string[]): Promise<readonly (KnownKey | undefined)[] | undefined>;
}

type RememberingStores = Pick<Stores, 'limiter' | 'usage' | 'directory'>;

export function ownMemoryOf({ limiter, usage, directory }: RememberingStores): OwnMemory {
  return {
    async readStatuses(keys) {
      const read = await limiter.readOwnMemory(keys);
      return read.kind === 'read' ? read.keys : undefined;
    },
    readRecords: async (reads) => usage?.remembered.read(reads),
    readActive: async () => usage?.remembered.active(),
    readLastSeen: async (ids) => usage?.remembered.lastSeen(ids),
    readHeldKeys: async (ids) => ids.map((id) => directory?.known(id)),
  };
}

/** The memory of a worker, whose records also have the requests that the worker has not sent to Redis yet. */
export function memoryOfWorker(stores: RememberingStores): OwnMemory {
  const { usage } = stores;
  const own = ownMemoryOf(stores);
  return {
    ...own,
    async readRecords(reads) {
      const stored = (await own.readRecords(reads)) ?? [];
      const unsent = usage?.recorder.unsent(reads.map(({ record }) => record)) ?? [];
      return reads.map(({ fields }, index) => {
        const complete = [...completeRecord(stored[index] ?? nothing, unsent[index])];
        return recordOf(complete.filter(([field]) => fields === undefined || fields.includes(field)));
      });
    },
    readActive: async () => latestOf((await own.readActive()) ?? [], usage?.recorder.lastSeen()),
  };
}

/**
 * Joins the memories of several processes: the counts of a key with the most requests, the sums of the recorded requests, and the latest
 * version of each key.
 */
export function joinMemories(all: () => readonly OwnMemory[]): OwnMemory {
  return {
    async readStatuses(keys) {
      const read = await Promise.all(all().map((one) => one.readStatuses(keys)));
      return keys.map((_, index) => fullest(read.flatMap((found) => found?.[index] ?? [])));
    },
    async readRecords(reads) {
      const read = await Promise.all(all().map((one) => one.readRecords(reads)));
      return reads.map((_, index) => {
        const records = read.flatMap((found) => found?.[index] ?? []);
        return recordOf(sumOfFields(records.map(({ fields }) => fields)));
      });
    },
    async readActive() {
      const read = await Promise.all(all().map((one) => one.readActive()));
      return latestOf(read.flatMap((found) => found ?? []));
    },
    async readLastSeen(ids) {
      const read = await Promise.all(all().map((one) => one.readLastSeen(ids)));
      return ids.map((_, index) => Math.max(0, ...read.map((found) => found?.[index] ?? 0)));
    },
    async readHeldKeys(ids) {
      const read = await Promise.all(all().map((one) => one.readHeldKeys(ids)));
      return ids.map((_, index) => latestVersion(read.flatMap((found) => found?.[index] ?? [])));
    },
  };
}

const nothing: StoredRecord = { fields: new Map(), batches: new Map() };

function fullest(all: readonly KeyStatus[]): KeyStatus | undefined {
  const usedIn = ({ used, isUnknown }: KeyStatus) =>
    isUnknown ? -1 : used.reduce((sum, requests) => sum + requests, 0);
  return all.toSorted((a, b) => usedIn(b) - usedIn(a))[0];
}

function latestVersion(all: readonly KnownKey[]): KnownKey | undefined {
  return all.toSorted((a, b) => b.generation - a.generation)[0];
}

function recordOf(fields: Iterable<readonly [field: string, counts: Counts]>): StoredRecord {
  return { ...nothing, fields: new Map([...fields].map(([field, counts]) => [field, packCounts(counts)])) };
}
