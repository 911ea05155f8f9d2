import { addCount, addPacked, type Counts, type PackedCounts } from './store/counts.ts';
import type { Batch, Fields, StoredRecord } from './store/usage-store.ts';

/** Limits the unsent counts of the whole process, because the store may be away for a long time. */
export class UnsentRoom {
  private readonly countsMax: number;
  private left: number;
  /** The number of requests that were not recorded because there was no room. */
  lost = 0;

  constructor(countsMax: number) {
    this.countsMax = countsMax;
    this.left = countsMax;
  }

  get isHalfFull(): boolean {
    return this.left < this.countsMax / 2;
  }

  take(): boolean {
    if (this.left <= 0) return false;
    this.left -= 1;
    return true;
  }

  give(counts: number): void {
    this.left += counts;
  }
}

/** The counts that are not part of a batch yet. */
export class UnsentCounts {
  /** For each day, the counts of each field. Undefined while there are no counts, which saves memory for most keys. */
  private days: Map<number, Map<string, Counts>> | undefined;
  private readonly room: UnsentRoom;

  constructor(room: UnsentRoom) {
    this.room = room;
  }

  get isEmpty(): boolean {
    return this.days === undefined;
  }

  /** @returns false if there is no room for one more number */
  add(day: number, field: string, number: number, value: number): boolean {
    let fields = this.days?.get(day);
    let counts = fields?.get(field);
    if (counts?.has(number) !== true && !this.room.take()) return false;
    if (fields === undefined) {
      fields = new Map();
      this.days ??= new Map();
      this.days.set(day, fields);
    }
    if (counts === undefined) {
      counts = new Map();
      fields.set(field, counts);
    }
    addCount(counts, number, value);
    return true;
  }

  of(day: number): ReadonlyMap<string, Counts> | undefined {
    return this.days?.get(day);
  }

  /**
   * Removes and returns at most `fieldsMax` fields of the earliest day. After sending the fields, the caller must
   * return their part of the `UnsentRoom`.
   */
  takeDay(
    fieldsMax: number,
  ): { readonly day: number; readonly fields: ReadonlyMap<string, Counts> } | undefined {
    if (this.days === undefined) return undefined;
    const day = Math.min(...this.days.keys());
    const fields = this.days.get(day);
    if (fields === undefined) return undefined;
    if (fields.size <= fieldsMax) {
      this.days.delete(day);
      if (this.days.size === 0) this.days = undefined;
      return { day, fields };
    }
    const taken = new Map([...fields].slice(0, fieldsMax));
    for (const field of taken.keys()) fields.delete(field);
    return { day, fields: taken };
  }
}

/** Counts that the stored record may lack, as plain data for another thread. */
export interface UnsentRecord {
  readonly sender: string;
  /** Batches that were sent recently or are being sent, in ascending order. */
  readonly batches: readonly Pick<Batch, 'number' | 'fields'>[];
  /** Counts that are in no batch yet. */
  readonly counted: Fields;
}

/** Adds the unsent counts of the process to the stored record, and returns the sum by field. */
export function completeRecord(stored: StoredRecord, unsent: UnsentRecord | undefined): Map<string, Counts> {
  const { sender = '', batches = [], counted = [] } = unsent ?? {};
  const storedNumber = stored.batches.get(sender) ?? 0;
  const lacking = batches.filter(({ number }) => number > storedNumber);
  return sumOfFields([stored.fields, ...lacking.map(({ fields }) => fields), counted]);
}

/** Adds up several parts of a record. */
export function sumOfFields(
  parts: readonly Iterable<readonly [field: string, counts: PackedCounts]>[],
): Map<string, Counts> {
  const sums = new Map<string, Counts>();
  for (const part of parts) {
    for (const [field, packed] of part) {
      const counts = sums.get(field) ?? new Map();
      sums.set(field, counts);
      addPacked(counts, packed);
    }
  }
  return sums;
}
