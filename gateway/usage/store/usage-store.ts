import type { PackedCounts } from './counts.ts';

/** One record: a key's day, a day of all operations, or the totals of a key's past days. */
export type RecordName =
  | { readonly kind: 'day'; readonly keyId: string; readonly day: number }
  | { readonly kind: 'operations'; readonly day: number }
  | { readonly kind: 'totals'; readonly keyId: string };

/** Counts by field; which fields there are is in `record-fields.ts`. */
export type Fields = ReadonlyMap<string, PackedCounts>;

/** What is added to one record at once. A batch may be sent again when it is not known whether it arrived. */
export interface Batch {
  readonly record: RecordName;
  /** Who sends it, and a number that is greater than that of each earlier batch of this sender for this record. */
  readonly sender: string;
  readonly number: number;
  readonly fields: Fields;
  /** When nobody needs the record any more, epoch ms. */
  readonly expiresMs: number;
}

export interface StoredRecord {
  readonly fields: Fields;
  /** The number of the last batch of each sender that is in it, as far as the store remembers. */
  readonly batches: ReadonlyMap<string, number>;
}

/** What is read of a record: the named fields, or all. */
export interface RecordRead {
  readonly record: RecordName;
  readonly fields?: readonly string[];
}

export interface ActiveKey {
  readonly keyId: string;
  readonly lastSeenMs: number;
}

/** Where the usage record is kept. One suite of tests holds for both adapters. Nothing rejects. */
export interface UsageStore {
  /** A batch of a failed call may have been added all the same: sending it again adds it once. */
  add(batch: Batch): Promise<'added' | 'failed'>;
  remove(record: RecordName, fields: readonly string[]): Promise<boolean>;
  /**
   * In the order of what is asked for; of a record that is not there, nothing. Undefined in place of each that its server gives
   * no answer about, and as a whole when none does.
   */
  read(reads: readonly RecordRead[]): Promise<readonly (StoredRecord | undefined)[] | undefined>;
  /** Enters keys into the index of those that were active last; it holds at most `usageActiveKeysMax`. */
  noteActive(keys: readonly ActiveKey[]): Promise<boolean>;
  /** That index, last active first. */
  active(): Promise<readonly ActiveKey[] | undefined>;
  /** When keys were active last, in their order, epoch ms; 0 for one that is not in that index. */
  lastSeen(keyIds: readonly string[]): Promise<readonly number[] | undefined>;
  /** Why this record, or without one any, should not be written at the moment; undefined where all may be. */
  pausedBecause(record?: RecordName): string | undefined;
  close(): void;
}
