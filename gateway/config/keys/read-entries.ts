import { keySchema, type RawKey } from '../../keys/key-schema.ts';
import { KeyTable } from '../../keys/key-table.ts';
import { createPacker } from '../../keys/packed-keys.ts';
import type { InForce } from '../../keys/plans/compile-key.ts';
import { createKeyUses, type KeyUses } from './key-uses.ts';
import { compareLists, entryText, gone, type ListDifference, type SplitList } from './split-list.ts';

/** Valid keys with their source bytes, so that after an edit only changed entries are read. */
export interface ReadEntries {
  readonly list: SplitList;
  readonly keys: KeyTable;
  /** The indexes of entries in the list, sorted by the ids of the keys. */
  readonly order: Uint32Array;
  readonly uses: KeyUses;
}

/** Reads one entry as a parse of the whole file would. Undefined for an entry that can only be read as part of the whole file. */
export type ReadEntry = (text: string) => { readonly value: unknown } | undefined;

/** Changed keys in a key table. With more, the table is built again from all keys. */
export const changesMax = 256;

/**
 * Reads the keys of a list, after the first time only changed entries.
 *
 * @param before the entries of any earlier load; each is valid by itself, even if its plan has changed
 * @param onManyChanges called before all entries are read again, because too many have changed
 * @returns undefined when an entry is invalid, or two keys share an id or a digest; the caller must then parse the whole list, so that each
 * problem is reported with its line and column
 */
export function readEntries(
  list: SplitList,
  readEntry: ReadEntry,
  inForce: InForce,
  before?: ReadEntries,
  onManyChanges?: () => void,
): ReadEntries | undefined {
  const keyAt = (from: SplitList, index: number): RawKey | undefined => {
    const read = readEntry(entryText(from, index));
    return read && keySchema.safeParse(read.value).data;
  };
  if (before !== undefined) {
    const difference = compareLists(before.list, list);
    const { removed, added } = difference;
    if (before.keys.changes.size + removed.length + added.length <= changesMax)
      return readChanged(difference, { before, list, inForce, keyAt });
    onManyChanges?.();
  }
  const packer = createPacker();
  const uses = createKeyUses();
  for (let index = 0; index < list.lines.length; index++) {
    const key = keyAt(list, index);
    if (key === undefined) return undefined;
    packer.add(key);
    uses.count(key, 1);
  }
  const packed = packer.finish();
  if (packed === undefined) return undefined;
  const keys = new KeyTable(packed.keys, new Map(), inForce);
  return { list, keys, order: packed.order, uses: uses.uses() };
}

interface Changing {
  readonly before: ReadEntries;
  readonly list: SplitList;
  readonly inForce: InForce;
  readonly keyAt: (list: SplitList, index: number) => RawKey | undefined;
}

function readChanged(
  { removed, added, now }: ListDifference,
  { before, list, inForce, keyAt }: Changing,
): ReadEntries | undefined {
  const uses = createKeyUses(before.uses);
  const changes = new Map<string, RawKey | undefined>();
  for (const index of removed) {
    const key = keyAt(before.list, index);
    if (key === undefined) return undefined;
    uses.count(key, -1);
    changes.set(key.id, undefined);
  }
  const digests = new Set<string>();
  const entryOf = new Map<string, number>();
  for (const index of added) {
    const key = keyAt(list, index);
    if (key === undefined) return undefined;
    const isTaken = entryOf.has(key.id) || (before.keys.has(key.id) && !changes.has(key.id));
    if (isTaken) return undefined;
    for (const { sha256 } of key.secrets) {
      const owner = before.keys.find(sha256)?.key.id;
      if (digests.has(sha256) || (owner !== undefined && !changes.has(owner))) return undefined;
      digests.add(sha256);
    }
    entryOf.set(key.id, index);
    changes.set(key.id, key);
    uses.count(key, 1);
  }
  const keys = before.keys.with(changes, inForce);
  return { list, keys, order: changedOrder({ before, keys, now, entryOf }), uses: uses.uses() };
}

/** Remaining keys keep their relative order, and new keys are inserted by id. */
function changedOrder(options: {
  readonly before: ReadEntries;
  readonly keys: KeyTable;
  readonly now: Uint32Array;
  /** Indexes of new entries by id. */
  readonly entryOf: ReadonlyMap<string, number>;
}): Uint32Array {
  const { before, keys, now, entryOf } = options;
  const order = new Uint32Array(keys.size).fill(gone);
  for (const [id, entry] of entryOf) order[keys.rankOf(id) ?? 0] = entry;
  let rank = 0;
  for (const entryBefore of before.order) {
    const entry = now[entryBefore] ?? gone;
    if (entry === gone) continue;
    while (order[rank] !== gone) rank += 1;
    order[rank] = entry;
  }
  return order;
}
