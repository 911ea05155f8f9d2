import { keySchema, type RawKey } from '../../keys/key-schema.ts';
import { KeyTable } from '../../keys/key-table.ts';
import { createPacker } from '../../keys/packed-keys.ts';
import type { Settings } from '../../shared/model.ts';
import { createKeyUses, type KeyUses } from './key-uses.ts';
import { compareLists, entryText, gone, type ListDifference, type SplitList } from './split-list.ts';

/** A valid list of keys with what it was read from: the next load reads only what is different there. */
export interface ReadEntries {
  readonly list: SplitList;
  readonly keys: KeyTable;
  /** Which entry each key is, by the rank of its id. */
  readonly order: Uint32Array;
  readonly uses: KeyUses;
}

/** The value of one entry, as a parser of the whole file would give it; undefined when it takes that one to say. */
export type ReadEntry = (text: string) => { readonly value: unknown } | undefined;

/** More changed keys than this are packed anew with all others: a table carries its changes from load to load. */
export const changesMax = 256;

/**
 * Reads the keys of a list, of a list that was read before only what has changed. Undefined when an entry is no key, or two
 * share an id or a digest: then all of them must be looked at, to say what is wrong and where.
 *
 * @param before of whichever load; its entries are valid by themselves, whatever their plans have become
 */
export function readEntries(
  list: SplitList,
  readEntry: ReadEntry,
  plans: Settings['plans'],
  before?: ReadEntries,
): ReadEntries | undefined {
  const keyAt = (from: SplitList, index: number): RawKey | undefined => {
    const read = readEntry(entryText(from, index));
    return read && keySchema.safeParse(read.value).data;
  };
  if (before !== undefined) {
    const difference = compareLists(before.list, list);
    const { removed, added } = difference;
    if (before.keys.changes.size + removed.length + added.length <= changesMax)
      return readChanged(difference, { before, list, plans, keyAt });
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
  const keys = new KeyTable(packed.keys, new Map(), plans);
  return { list, keys, order: packed.order, uses: uses.uses() };
}

interface Changing {
  readonly before: ReadEntries;
  readonly list: SplitList;
  readonly plans: Settings['plans'];
  readonly keyAt: (list: SplitList, index: number) => RawKey | undefined;
}

function readChanged(
  { removed, added, now }: ListDifference,
  { before, list, plans, keyAt }: Changing,
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
  const keys = before.keys.with(changes, plans);
  return { list, keys, order: changedOrder({ before, keys, now, entryOf }), uses: uses.uses() };
}

/** Keys that stay keep their order; each new one has its rank. */
function changedOrder(options: {
  readonly before: ReadEntries;
  readonly keys: KeyTable;
  readonly now: Uint32Array;
  /** New entries by their ids. */
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
