import type { Away } from '../../../redis/redis-reply.ts';
import type { Leak } from '../../../shared/model.ts';

/**
 * The storage of the leaked secrets of keys in the configuration. A secret stays in the store until no gateway's configuration has it any
 * more. The promises never reject.
 */
export interface BlockStore {
  /** Resolves when the store is connected or its start timeout has passed. */
  readonly started: Promise<void>;
  /** Stores a leak. A leak that is stored already changes only if the secret ends now and did not end before. */
  add(leaked: LeakedSecret): Promise<Added | Away>;
  /**
   * Reads all leaks.
   *
   * @param known the version that the caller has read before; if the store still has this version, the reply has no leaks; undefined to read
   *   the leaks in any case
   * @param withClock whether the reply has the store's clock
   */
  read(known: number | undefined, withClock: boolean): Promise<LeaksRead | Away>;
  /**
   * Renews the leaks that a configuration still has, so that they stay. If `removes` is true, the call removes the leaks that no gateway
   * has renewed within `bounds.leakBlockKeptMs`.
   */
  renew(digests: readonly string[], removes: boolean): Promise<void>;
  /** Calls the listener when the store is available again, and its leaks may have changed meanwhile. */
  onReturn(listener: () => void): void;
}

/** A leaked secret of a key in the configuration. */
export interface LeakedSecret {
  readonly digest: string;
  readonly keyId: string;
  readonly leak: Leak;
}

export interface Added {
  readonly kind: 'added' | 'known';
  readonly leak: Leak;
}

export interface LeaksRead {
  readonly kind: 'read';
  /** Increases with each change of the leaks; 0 when there has been no leak. */
  readonly version: number;
  /** The store's clock, epoch ms, which is less than every later version; 0 if it was not requested. */
  readonly nowMs: number;
  /** Undefined if the version has not changed. */
  readonly leaks: readonly LeakedSecret[] | undefined;
}
