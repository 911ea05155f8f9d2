import type { DirectoryKey, KeyVersion } from '../directory-key.ts';

/**
 * Where the keys of the directory are kept: a record for each, by id, which is the truth; an index from digests to ids and a
 * list of all ids, which are hints. One suite of tests holds for every adapter. Nothing rejects.
 */
export interface DirectoryStore {
  /** The key that has a secret with this digest. */
  find(digest: string): Promise<FoundKey | Absent | Away>;
  read(id: string): Promise<FoundKey | Absent | Away>;
  /** In the order of the ids. Where only some servers of the store give an answer, the others' keys are `unknown`. */
  readMany(ids: readonly string[]): Promise<KeysFound | Away>;
  /**
   * Writes a new key, with revision 1; `taken` when its id is. A call that may have run can be repeated with the same key. With
   * `once` the reply is `removed` when the key, as `createdMs` tells it, was removed less than `idempotencyKeptMs` ago.
   */
  create(key: Unrevised, often?: 'once'): Promise<Created>;
  /** Writes a key over the one in this version, and gives it the next revision. */
  replace(key: Unrevised, expected: KeyVersion): Promise<Written | Changed | Absent | Away>;
  remove(id: string, expected: KeyVersion): Promise<Removed | Changed | Absent | Away>;
  /**
   * Ids in the order of their octets, at most `limit`, and where the next page begins. One may be among them whose key is
   * not there (any more).
   */
  page(query: PageQuery): Promise<IdPage | Away>;
  /** About how many keys there are. */
  count(): Promise<{ readonly kind: 'counted'; readonly keys: number } | Away>;
  /** Keeps a value under a name for a time, unless there is one already: that one is given back then. */
  remember(name: string, value: string, expiryMs: number): Promise<Remembered | Away>;
}

export type Created = Written | { readonly kind: 'taken' } | Removed | Away;

/** The store gives the revision. */
export type Unrevised = Omit<DirectoryKey, 'revision'>;

export interface FoundKey {
  readonly kind: 'found';
  readonly key: DirectoryKey;
  /** What the key's counts said before the record was read about when it was changed last: it is at least as new. */
  readonly generation: number;
}

export interface Absent {
  readonly kind: 'absent';
}

/** The store gave no reply, or refused. A write that `mayHaveRun` may be in force, in part or whole. */
export interface Away {
  readonly kind: 'away';
  readonly mayHaveRun: boolean;
  readonly reason: string;
}

export interface KeysFound {
  readonly kind: 'found';
  /** Undefined: it is not there. */
  readonly keys: readonly (DirectoryKey | 'unknown' | undefined)[];
}

export interface Written {
  readonly kind: 'written';
  readonly key: DirectoryKey;
}

export interface Removed {
  readonly kind: 'removed';
}

/** Somebody else has changed the key: it is in another version. */
export interface Changed {
  readonly kind: 'changed';
}

export interface PageQuery {
  /** The last id of the page before. */
  readonly after?: string | undefined;
  /** What the ids begin with. */
  readonly prefix?: string | undefined;
  readonly limit: number;
}

export interface IdPage {
  readonly kind: 'page';
  readonly ids: readonly string[];
  /** Where the next page goes on, when there may be more. */
  readonly next?: string;
}

export type Remembered = { readonly kind: 'stored' } | { readonly kind: 'known'; readonly value: string };

export function pageOf(ids: readonly string[], limit: number, hasMore = ids.length > limit): IdPage {
  const page = ids.slice(0, limit);
  const next = page.at(-1);
  return { kind: 'page', ids: page, ...(hasMore && next !== undefined && { next }) };
}
