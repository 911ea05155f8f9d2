import type { Away } from '../../../redis/redis-reply.ts';
import type { DirectoryKey, KeyVersion } from '../directory-key.ts';

/**
 * The storage of the directory's keys. Each key has a record, which is authoritative. The index from digests to ids and the list
 * of ids are only hints. The promises never reject.
 */
export interface DirectoryStore {
  /** Returns the key that has a secret with this digest, also among its `pastSecrets`. */
  find(digest: string): Promise<FoundKey | Absent | Away>;
  /** @param deadlineMs by default the deadline of calls for which no request waits */
  read(id: string, deadlineMs?: number): Promise<FoundKey | Absent | Away>;
  /** Reads keys in the order of the given ids. If a server does not answer, its keys are `unknown`. */
  readMany(ids: readonly string[]): Promise<KeysFound | Away>;
  /**
   * Whether Tollgate issued every secret of the directory. Then a secret with a wrong checksum is not in the directory. The reply comes
   * from memory. A process that does not know the answer returns false.
   */
  isAllIssued(): boolean;
  /** Like `isAllIssued`, but reads the answer from the store. Without a reply, the answer is false. */
  confirmAllIssued(): Promise<boolean>;
  /**
   * Writes a new key with revision 1. The call is idempotent, so it can be repeated with the same key. Tollgate must have issued the secrets
   * of the key (`issueSecret`).
   *
   * @param often with `once`, a key with the same `createdMs` that was removed in the last `idempotencyKeptMs` stays removed
   * @returns `taken` when another key has this id; `removed` when `once` applies
   */
  create(key: Unrevised, often?: 'once'): Promise<Created>;
  /** Like `create`, for digests whose secrets may have any form. When the key is written, every process looks up every secret. */
  createImported(key: Unrevised): Promise<Created>;
  /**
   * Replaces a key if it still has the expected version. The new record gets the next revision. Tollgate must have issued each secret that
   * the key did not have before.
   */
  replace(key: Unrevised, expected: KeyVersion): Promise<Written | Changed | Absent | Away>;
  remove(id: string, expected: KeyVersion): Promise<Removed | Changed | Absent | Away>;
  /** Returns a page of ids in octet order. A key with a returned id may no longer exist. */
  page(query: PageQuery): Promise<IdPage | Away>;
  /** Returns the approximate number of keys. */
  count(): Promise<{ readonly kind: 'counted'; readonly keys: number } | Away>;
  /**
   * Stores a value under a name until the value expires. If the name already has a value, the call stores nothing and returns the existing
   * value.
   */
  remember(name: string, value: string, expiryMs: number): Promise<Remembered | Away>;
}

export type Created = Written | { readonly kind: 'taken' } | Removed | Away;

/** A key without its revision, which the store assigns. */
export type Unrevised = Omit<DirectoryKey, 'revision'>;

export interface FoundKey {
  readonly kind: 'found';
  readonly key: DirectoryKey;
  /**
   * A number that differs after each change of the key, from the key's quota hash. The generation is read before the record, so the record
   * is at least as new as the generation. The generation is 0 if the hash has none. Redis may then not reveal a change to a
   * process that uses the key for longer than `directoryCachedMs`.
   */
  readonly generation: number;
}

export interface Absent {
  readonly kind: 'absent';
}

interface KeysFound {
  readonly kind: 'found';
  /** The keys in the order of the ids. The value undefined stands for a key that does not exist. */
  readonly keys: readonly (DirectoryKey | 'unknown' | undefined)[];
}

export interface Written {
  readonly kind: 'written';
  readonly key: DirectoryKey;
}

interface Removed {
  readonly kind: 'removed';
}

/** Another caller has changed the key, so the expected version is out of date. */
export interface Changed {
  readonly kind: 'changed';
}

interface PageQuery {
  /** The last id of the previous page. The new page begins after this id. */
  readonly after?: string | undefined;
  /** The prefix of all listed ids. */
  readonly prefix?: string | undefined;
  readonly limit: number;
}

interface IdPage {
  readonly kind: 'page';
  readonly ids: readonly string[];
  /** The value of `after` for the next page. The field is absent if there are no more ids. */
  readonly next?: string | undefined;
}

export type Remembered = { readonly kind: 'stored' } | { readonly kind: 'known'; readonly value: string };
