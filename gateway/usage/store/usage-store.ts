import type { PackedCounts } from './counts.ts';

/** The name of a record: a key's day, a day of all operations, or the totals of a key's past days. */
export type RecordName =
  | { readonly kind: 'day'; readonly keyId: string; readonly day: number }
  | { readonly kind: 'operations'; readonly day: number }
  | { readonly kind: 'totals'; readonly keyId: string };

/** The counts of a record. The key of the Map is the name of the field. `record-fields.ts` lists the fields. */
export type Fields = ReadonlyMap<string, PackedCounts>;

/** The counts that one call adds to a record. The sender repeats a batch if it receives no reply. */
export interface Batch {
  readonly record: RecordName;
  /** The process that sends the batch. A process numbers its batches for each record in ascending order. */
  readonly sender: string;
  readonly number: number;
  readonly fields: Fields;
  /** When the record expires, epoch ms. */
  readonly expiresMs: number;
}

export interface StoredRecord {
  readonly fields: Fields;
  /** The number of the last added batch of each sender. The store may have dropped older senders. */
  readonly batches: ReadonlyMap<string, number>;
}

/** Reads the named fields of a record, or all fields. */
export interface RecordRead {
  readonly record: RecordName;
  readonly fields?: readonly string[] | undefined;
}

export interface ActiveKey {
  readonly keyId: string;
  readonly lastSeenMs: number;
}

/** Stores the usage record. The adapters for Redis and for memory pass the same test suite. No method rejects. */
export interface UsageStore {
  /** Adds a batch. The store may have added the batch even if the call fails. A repeated batch is added only once. */
  add(batch: Batch): Promise<'added' | 'failed'>;
  /**
   * Returns the place of a key's records, from 0 to less than 1. Keys at near places are usually on the same server. The store adds batches
   * to several records of one server with one call if `add` is called in the same turn of the event loop.
   */
  placeOf(keyId: string): number;
  remove(record: RecordName, fields: readonly string[]): Promise<boolean>;
  /**
   * Returns the records in the order of `reads`. A missing record is returned as an empty record. A record is undefined
   * when its server does not answer, and the whole result is undefined when no server answers.
   */
  read(reads: readonly RecordRead[]): Promise<readonly (StoredRecord | undefined)[] | undefined>;
  /** Adds keys to the index of active keys, which holds at most `usageActiveKeysMax`. */
  noteActive(keys: readonly ActiveKey[]): Promise<boolean>;
  /** Returns the index of active keys, the most recently active key first. */
  active(): Promise<readonly ActiveKey[] | undefined>;
  /** Returns the last activity of each key, epoch ms; 0 for a key that is not in the index. */
  lastSeen(keyIds: readonly string[]): Promise<readonly number[] | undefined>;
  /**
   * Returns the reason why the record must not be written now. If `record` is absent, the result contains the reasons
   * of all servers on which recording is paused. The result is undefined if writing is allowed.
   */
  pausedBecause(record?: RecordName): string | undefined;
  close(): void;
}
