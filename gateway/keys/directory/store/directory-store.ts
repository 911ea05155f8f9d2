import type { Away } from '../../../redis/redis-reply.ts';
import type { DirectoryKey, KeyVersion } from '../directory-key.ts';

/** The record of a key is authoritative. The index from digests to ids and the list of ids are only hints. No promise rejects. */
export interface DirectoryStore {
  /** The key that has a secret with this digest, also among its `pastSecrets`. */
  find(digest: string): Promise<FoundKey | Absent | Away>;
  /** @param deadlineMs by default the deadline of calls for which no request waits */
  read(id: string, deadlineMs?: number): Promise<FoundKey | Absent | Away>;
  /** In the order of the ids. If a server does not answer, its keys are `unknown`. */
  readMany(ids: readonly string[]): Promise<KeysFound | Away>;
  /**
   * Whether Tollgate issued every secret of the directory, so that a secret with a wrong checksum is not in it. Replies from memory; false
   * if the process does not know.
   */
  isAllIssued(): boolean;
  /** As `isAllIssued`, but from the store. False without a reply. */
  confirmAllIssued(): Promise<boolean>;
  /**
   * Writes a new key with revision 1. The call is idempotent. Tollgate must have issued the secrets of the key (`issueSecret`).
   *
   * @param often with `once`, a key with the same `createdMs` that was removed in the last `idempotencyKeptMs` stays removed
   * @returns `taken` when another key has this id; `removed` when `once` applies
   */
  create(key: Unrevised, often?: 'once'): Promise<Created>;
  /** As `create`, for digests whose secrets may have any form. When the key is written, every process looks up every secret. */
  createImported(key: Unrevised): Promise<Created>;
  /** The new record gets the next revision. Tollgate must have issued each secret that the key did not have before. */
  replace(key: Unrevised, expected: KeyVersion): Promise<Written | Changed | Absent | Away>;
  remove(id: string, expected: KeyVersion): Promise<Removed | Changed | Absent | Away>;
  /** In octet order. A key with a returned id may no longer exist. */
  page(query: PageQuery): Promise<IdPage | Away>;
  /** Approximate. */
  count(): Promise<{ readonly kind: 'counted'; readonly keys: number } | Away>;
  /** Stores a value under a name until it expires. If the name already has a value, returns it and stores nothing. */
  remember(name: string, value: string, expiryMs: number): Promise<Remembered | Away>;
}

export type Created = Written | { readonly kind: 'taken' } | Removed | Away;

/** The store assigns the revision. */
export type Unrevised = Omit<DirectoryKey, 'revision'>;

export interface FoundKey {
  readonly kind: 'found';
  readonly key: DirectoryKey;
  /**
   * Differs after each change of the key; from its quota hash. It is read before the record, so the record is at least as new. A hash
   * without a generation has 0. Redis may then not reveal a change to a process that uses the key for longer than `directoryCachedMs`.
   */
  readonly generation: number;
}

export interface Absent {
  readonly kind: 'absent';
}

interface KeysFound {
  readonly kind: 'found';
  /** In the order of the ids; undefined for a key that does not exist. */
  readonly keys: readonly (DirectoryKey | 'unknown' | undefined)[];
}

export interface Written {
  readonly kind: 'written';
  readonly key: DirectoryKey;
}

interface Removed {
  readonly kind: 'removed';
}

/** Another caller has changed the key. */
export interface Changed {
  readonly kind: 'changed';
}

interface PageQuery {
  /** The last id of the previous page. */
  readonly after?: string | undefined;
  /** The prefix of all listed ids. */
  readonly prefix?: string | undefined;
  readonly limit: number;
}

interface IdPage {
  readonly kind: 'page';
  readonly ids: readonly string[];
  /** The `after` of the next page; absent if there are no more ids. */
  readonly next?: string | undefined;
}

export type Remembered = { readonly kind: 'stored' } | { readonly kind: 'known'; readonly value: string };
