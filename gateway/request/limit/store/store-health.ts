/** The availability of the store. `StoreWatch` implements this interface for Redis. The memory store is always available. */
export interface StoreHealth {
  /** Resolves when the store was reached for the first time, or after a time limit. */
  readonly started: Promise<void>;
  /** Whether all servers are available, some of them, or none. The servers of a Redis Cluster can fail independently. */
  reach(): 'all' | 'some' | 'none';
  /** Returns the part of the store that contains the counts of a key. */
  partOf(keyId: string): StorePart;
  /** Groups calls by part of the store, in the order of the calls. */
  divide<Call extends { readonly keyId: string }>(
    calls: readonly Call[],
  ): readonly { readonly part: StorePart; readonly calls: readonly Call[] }[];
}

/** The availability of one part of the store. The limiter reports the outcome of each call to this object. */
export interface StorePart {
  available(): boolean;
  succeeded(): void;
  failed(reason: string): void;
}
