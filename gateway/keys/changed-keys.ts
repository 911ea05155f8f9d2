import { isDeepStrictEqual } from 'node:util';
import type { RawKey } from './key-schema.ts';
import type { KeyTable } from './key-table.ts';
import { idAt, type PackedKeys } from './packed-keys.ts';

/** An edit of the configuration added, changed or removed the key. */
export interface KeyEdit {
  readonly id: string;
  readonly edit: 'added' | 'removed' | 'disabled' | 'enabled' | 'changed';
  /** Undefined for an added key. */
  readonly before: RawKey | undefined;
  readonly after: RawKey | undefined;
}

const keysPerStep = 2_000;

/**
 * Yields the keys that differ: packed keys by id, and then changed keys. Packed keys are compared by their bytes in steps, so that the
 * caller can serve requests in between. @returns a generator that yields undefined after each step
 */
export function* changedKeys(before: KeyTable, after: KeyTable): Generator<KeyEdit | undefined> {
  const replaced = new Set([...before.changes.keys(), ...after.changes.keys()]);
  if (before.packed !== after.packed) {
    for (const id of differingIds(before.packed, after.packed)) {
      if (id === undefined) yield undefined;
      else if (!replaced.has(id)) yield* editOf(id, before, after);
    }
  }
  for (const id of replaced) yield* editOf(id, before, after);
}

function* editOf(id: string, before: KeyTable, after: KeyTable): Generator<KeyEdit> {
  const [from, to] = [before.statedOf(id), after.statedOf(id)];
  if (!isDeepStrictEqual(from, to)) yield { id, edit: kindOf(from, to), before: from, after: to };
}

function kindOf(from: RawKey | undefined, to: RawKey | undefined): KeyEdit['edit'] {
  if (from === undefined) return 'added';
  if (to === undefined) return 'removed';
  if (from.disabled === to.disabled) return 'changed';
  return to.disabled ? 'disabled' : 'enabled';
}

/** Walks both tables at the same time, because both are sorted by id. */
function* differingIds(before: PackedKeys, after: PackedKeys): Generator<string | undefined> {
  let [from, to] = [0, 0];
  for (let step = 1; from < before.starts.length || to < after.starts.length; step++) {
    if (step % keysPerStep === 0) yield undefined;
    if (isSameRecord(before, from, after, to)) {
      from += 1;
      to += 1;
      continue;
    }
    const [fromId, toId] = [idOrEnd(before, from), idOrEnd(after, to)];
    yield fromId < toId ? fromId : toId;
    if (fromId <= toId) from += 1;
    if (toId <= fromId) to += 1;
  }
}

function isSameRecord(before: PackedKeys, from: number, after: PackedKeys, to: number): boolean {
  const { starts, ends } = before;
  if (from >= starts.length || to >= after.starts.length) return false;
  return (
    before.records.compare(after.records, after.starts[to], after.ends[to], starts[from], ends[from]) === 0
  );
}

/** After the last rank, a text that sorts after every id. */
function idOrEnd(keys: PackedKeys, rank: number): string {
  return rank < keys.starts.length ? idAt(keys, rank) : '\uffff';
}
