import type { Change } from '../../quota/adjust.ts';
import type { QuotaState } from '../../quota/hash.ts';
import type { RedisConnection } from '../../redis/redis-connection.ts';
import type { BucketName } from '../../shared/model.ts';
import type { MinuteBucket } from './minute-bucket.ts';

/** The counts of keys, which the limiter lends to capabilities. */
export interface CountsOfKeys {
  /** The connection to the counts in Redis; undefined if the counts are in memory. */
  readonly redis: RedisConnection | undefined;
  /** Resolves when the store of the counts is connected or its start timeout has passed. */
  readonly started: Promise<void>;
  /** Whether the part of the store with the counts of a key is available. */
  isThere(keyId: string): boolean;
  adjustInMemory(keyId: string, changeOf: (counts: Readonly<QuotaState>) => Change): void;
  /** Opens a limit per minute on requests that do not count towards a quota. @param keyName see `createMinuteBucket` */
  openBucket(name: BucketName, keyName: (prefix: string) => string): MinuteBucket;
  /** Makes the store decide the next request of a key. */
  forgetRefusalsOf(keyId: string): void;
}
