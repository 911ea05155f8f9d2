import { type DirectoryKey, digestsOf, type KeyVersion } from '../directory-key.ts';
import {
  type Changed,
  type Created,
  type DirectoryStore,
  type FoundKey,
  pageOf,
  type Remembered,
  type Unrevised,
  type Written,
} from './directory-store.ts';

/** The in-memory directory of a single process. The keys are lost when the process exits. */
export function createMemoryDirectoryStore({
  nowMs,
  keysMax,
  removedKeptMs,
}: {
  readonly nowMs: () => number;
  readonly keysMax: number;
  readonly removedKeptMs: number;
}): DirectoryStore {
  const keys = new Map<string, DirectoryKey>();
  const idOfDigest = new Map<string, string>();
  /** The digests that were imported. Their secrets may have any form. */
  const imported = new Set<string>();
  const remembered = new Map<string, { readonly value: string; readonly expiresMs: number }>();
  const removed = new Map<string, number>();
  /** All ids, sorted. When a key is added or removed, the list becomes undefined until the next sort. */
  let sorted: readonly string[] | undefined;

  return {
    find(digest) {
      const key = keys.get(idOfDigest.get(digest) ?? '');
      return Promise.resolve(
        foundOrAbsent(key !== undefined && digestsOf(key).includes(digest) ? key : undefined),
      );
    },
    read: (id) => Promise.resolve(foundOrAbsent(keys.get(id))),
    readMany: (ids) => Promise.resolve({ kind: 'found', keys: ids.map((id) => keys.get(id)) }),
    isAllIssued: () => imported.size === 0,
    confirmAllIssued: () => Promise.resolve(imported.size === 0),
    create: (key, often) => Promise.resolve(create(key, often)),
    createImported(key) {
      const created = create(key);
      if (created.kind === 'written') for (const digest of digestsOf(key)) imported.add(digest);
      return Promise.resolve(created);
    },
    replace(key, expected) {
      return Promise.resolve(differsFrom(key.id, expected) ?? write(key, expected.revision + 1));
    },
    remove(id, expected) {
      const differs = differsFrom(id, expected);
      if (differs !== undefined) return Promise.resolve(differs);
      const key = keys.get(id);
      noteRemoved(key);
      unlist(id);
      keys.delete(id);
      forgetImported(key);
      sorted = undefined;
      return Promise.resolve({ kind: 'removed' });
    },
    page({ after = '', prefix = '', limit }) {
      sorted ??= [...keys.keys()].sort();
      const ids = sorted.filter((id) => id.startsWith(prefix) && id > after);
      return Promise.resolve(pageOf(ids, limit));
    },
    count: () => Promise.resolve({ kind: 'counted', keys: keys.size }),
    remember: (name, value, expiryMs) => Promise.resolve(remember(name, value, expiryMs)),
  };

  function create(key: Unrevised, often?: 'once'): Created {
    if (keys.has(key.id)) return { kind: 'taken' };
    if (often && (removed.get(nameOf(key)) ?? 0) > nowMs()) return { kind: 'removed' };
    if (keys.size >= keysMax) {
      const reason = `without Redis the key directory has room for ${keysMax} keys`;
      return { kind: 'away', mayHaveRun: false, reason };
    }
    sorted = undefined;
    return write(key, 1);
  }

  function write(key: Unrevised, revision: number): Written {
    const written = { ...key, revision };
    const before = keys.get(key.id);
    unlist(key.id);
    keys.set(key.id, written);
    for (const digest of digestsOf(key)) idOfDigest.set(digest, key.id);
    forgetImported(before);
    return { kind: 'written', key: written };
  }

  function noteRemoved(key: DirectoryKey | undefined): void {
    for (const [name, untilMs] of removed) {
      if (untilMs > nowMs() && removed.size < keysMax) break;
      removed.delete(name);
    }
    if (key !== undefined) removed.set(nameOf(key), nowMs() + removedKeptMs);
  }

  /** Forgets imported digests that no key has any more. */
  function forgetImported(before: DirectoryKey | undefined): void {
    if (before === undefined) return;
    for (const digest of digestsOf(before)) if (!idOfDigest.has(digest)) imported.delete(digest);
  }

  function unlist(id: string): void {
    const key = keys.get(id);
    for (const digest of key === undefined ? [] : digestsOf(key)) {
      if (idOfDigest.get(digest) === id) idOfDigest.delete(digest);
    }
  }

  function differsFrom(
    id: string,
    { revision, changedMs }: KeyVersion,
  ): Changed | { readonly kind: 'absent' } | undefined {
    const known = keys.get(id);
    if (known === undefined) return { kind: 'absent' };
    return known.revision === revision && known.changedMs === changedMs ? undefined : { kind: 'changed' };
  }

  function remember(name: string, value: string, expiryMs: number): Remembered {
    for (const [other, { expiresMs }] of remembered) if (expiresMs <= nowMs()) remembered.delete(other);
    const known = remembered.get(name);
    if (known !== undefined) return { kind: 'known', value: known.value };
    const [oldest] = remembered.keys();
    if (oldest !== undefined && remembered.size >= keysMax) remembered.delete(oldest);
    remembered.set(name, { value, expiresMs: nowMs() + expiryMs });
    return { kind: 'stored' };
  }
}

function nameOf({ id, createdMs }: Pick<DirectoryKey, 'id' | 'createdMs'>): string {
  return `${id} ${createdMs}`;
}

/** The generation is always 0, because a single process makes all changes. */
function foundOrAbsent(key: DirectoryKey | undefined): FoundKey | { readonly kind: 'absent' } {
  return key === undefined ? { kind: 'absent' } : { kind: 'found', key, generation: 0 };
}
