import { addPacked, type Counts, type PackedCounts, packCounts } from '../../usage/store/counts.ts';
import type { RecordName, RecordRead, StoredRecord } from '../../usage/store/usage-store.ts';

interface Remembered {
  readonly fields: Map<string, PackedCounts>;
  readonly batches: Map<string, number>;
  /** The length of all fields. */
  numbers: number;
}

const nothing: StoredRecord = { fields: new Map(), batches: new Map() };

/** The usage records that were read last. */
export class RecordMemory {
  private readonly numbersMax: number;
  private numbers = 0;
  /** The record that was read last comes last. */
  private readonly records = new Map<string, Remembered>();

  /** @param numbersMax the maximum length of all fields of all records */
  constructor(numbersMax: number) {
    this.numbersMax = numbersMax;
  }

  remember({ record, fields: asked }: RecordRead, { fields, batches }: StoredRecord): void {
    const name = nameOf(record);
    const known = this.records.get(name) ?? { fields: new Map(), batches: new Map(), numbers: 0 };
    this.records.delete(name);
    this.records.set(name, known);
    for (const [sender, number] of batches) known.batches.set(sender, number);
    const before = known.numbers;
    for (const field of asked ?? [...known.fields.keys()]) {
      known.numbers -= known.fields.get(field)?.length ?? 0;
      known.fields.delete(field);
    }
    for (const [field, packed] of fields) {
      known.numbers += packed.length - (known.fields.get(field)?.length ?? 0);
      known.fields.set(field, packed);
    }
    this.numbers += known.numbers - before;
    for (const [oldest, { numbers }] of this.records) {
      if (this.numbers <= this.numbersMax) break;
      this.numbers -= numbers;
      this.records.delete(oldest);
    }
  }

  /**
   * Returns a record as it was read last. A number that the process has recorded itself replaces a smaller number that was read.
   *
   * @param recorded the record with the counts of this process alone
   */
  find({ record, fields: asked }: RecordRead, recorded: StoredRecord = nothing): StoredRecord {
    const known = this.records.get(nameOf(record)) ?? nothing;
    const names = asked ?? [...known.fields.keys(), ...recorded.fields.keys()];
    const fields = new Map<string, PackedCounts>();
    for (const field of names) {
      const [read, own] = [known.fields.get(field), recorded.fields.get(field)];
      const larger = read === undefined || own === undefined ? (read ?? own) : largerOf(read, own);
      if (larger !== undefined) fields.set(field, larger);
    }
    const batches = new Map(known.batches);
    for (const [sender, number] of recorded.batches)
      batches.set(sender, Math.max(number, batches.get(sender) ?? 0));
    return { fields, batches };
  }
}

function largerOf(one: PackedCounts, other: PackedCounts): PackedCounts {
  const [counts, others]: [Counts, Counts] = [new Map(), new Map()];
  addPacked(counts, one);
  addPacked(others, other);
  for (const [number, value] of others) counts.set(number, Math.max(value, counts.get(number) ?? 0));
  return packCounts(counts);
}

function nameOf(record: RecordName): string {
  const { kind } = record;
  if (kind === 'operations') return `${kind}:${record.day}`;
  return kind === 'day' ? `${kind}:${record.day}:${record.keyId}` : `${kind}:${record.keyId}`;
}
