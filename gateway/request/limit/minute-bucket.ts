import RateLimiterMemory from 'rate-limiter-flexible/lib/RateLimiterMemory.js';
import RateLimiterRedis from 'rate-limiter-flexible/lib/RateLimiterRedis.js';
import RateLimiterRes from 'rate-limiter-flexible/lib/RateLimiterRes.js';
import RLWrapperTimeouts from 'rate-limiter-flexible/lib/RLWrapperTimeouts.js';
import type { RedisConnection } from '../../redis/redis-connection.ts';
import type { BucketDecision, BucketName, Window } from '../../shared/model.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';

/**
 * Creates a limit per minute, by client address or by key, for requests that are not charged to a key's quota. The library
 * rate-limiter-flexible counts the requests of all processes in Redis. The library refuses an address or key above the limit without a call
 * to Redis. While Redis is unavailable, the library counts in the memory of this process.
 */
export function createMinuteBucket(deps: {
  name: BucketName;
  /** Returns the beginning of the Redis keys, before `:<client address>` or `:<key id>`. @param prefix `redis.prefix` */
  keyName: (prefix: string) => string;
  /** The Redis connection. Absent when the process counts only its own requests. */
  redis?: {
    readonly connection: RedisConnection;
    /** Whether the Redis server that stores this Redis key is available. */
    readonly available: (key: string) => boolean;
  };
  /** The store's clock, epoch ms. */
  nowMs: () => number;
  bounds: Pick<Bounds, 'rememberedAddressesMax' | 'storeDeadlineMs'>;
}): MinuteBucket {
  const { name, keyName, redis, nowMs, bounds } = deps;
  const own = new BoundedLimiterMemory({ points: 1, duration: windowSeconds }, bounds.rememberedAddressesMax);
  const sharedPrefix = keyName(redis?.connection.prefix ?? '');
  let shared: RLWrapperTimeouts | undefined;

  return {
    async charge(holder, perMinute) {
      if (own.points !== perMinute) setLimit(perMinute);
      const isThere = () => redis?.available(`${sharedPrefix}:${holder}`) === true;
      const limiter = shared !== undefined && isThere() ? shared : own;
      const ask = () => consume(limiter, holder);
      const spent = await (limiter === own || redis === undefined ? ask() : redis.connection.gather(ask));
      const atMs = nowMs();
      const window: Window = {
        name,
        limit: perMinute,
        remaining: spent.remainingPoints,
        resetMs: atMs + spent.msBeforeNext,
        windowSeconds,
      };
      return {
        kind: spent.refused ? 'refused' : 'counted',
        rateLimit: { nowMs: atMs, windows: [window], inForce: window },
        source: redis === undefined ? 'memory' : limiter === shared && isThere() ? 'shared' : 'local',
      };
    },
  };

  /**
   * Makes a new limiter when a reload changes the limit, because the old limiter remembers which addresses or keys exceeded the old limit.
   * Only one limiter may exist at a time, because the library defines its script as a command on the Redis client.
   */
  function setLimit(perMinute: number): void {
    own.points = perMinute;
    if (redis === undefined) return;
    const limiter = new RateLimiterRedis({
      storeClient: redis.connection.commands,
      keyPrefix: sharedPrefix,
      points: perMinute,
      duration: windowSeconds,
      inMemoryBlockOnConsumed: perMinute,
    });
    // Only the wrapper has an insurance limiter (the library's name for a fallback). With two insurance limiters, a call that times out and
    // then fails would be charged twice.
    shared = new RLWrapperTimeouts({ limiter, timeoutMs: bounds.storeDeadlineMs, insuranceLimiter: own });
  }
}

export interface MinuteBucket {
  /** @param holder the client address (`address-group.ts`) or the id of the key that is charged */
  charge(holder: string, perMinute: number): Promise<BucketDecision>;
}

const windowSeconds = 60;

/** Charges one request. Above the limit, the library rejects the promise with a `RateLimiterRes`. Any other rejection is a bug. */
async function consume(limiter: BoundedLimiterMemory | RLWrapperTimeouts, holder: string) {
  try {
    const { remainingPoints, msBeforeNext } = await limiter.consume(holder);
    return { refused: false, remainingPoints, msBeforeNext };
  } catch (rejection) {
    if (!(rejection instanceof RateLimiterRes)) throw rejection;
    return { refused: true, remainingPoints: 0, msBeforeNext: rejection.msBeforeNext };
  }
}

/**
 * The library's memory limiter with a maximum number of remembered addresses. At the maximum, the address that was counted first is
 * forgotten. A client that guesses keys gains nothing: it would need requests from `groupsMax` other addresses, each with its own limit.
 */
class BoundedLimiterMemory extends RateLimiterMemory {
  readonly #counted = new Set<string | number>();
  /**
   * The iterator that returns the oldest address. A new iterator for each call would be slow, because it would first skip all deleted
   * entries.
   */
  readonly #firstCounted = this.#counted.values();

  readonly #groupsMax: number;

  constructor(options: ConstructorParameters<typeof RateLimiterMemory>[0], groupsMax: number) {
    super(options);
    this.#groupsMax = groupsMax;
  }

  override consume(
    ...args: Parameters<RateLimiterMemory['consume']>
  ): ReturnType<RateLimiterMemory['consume']> {
    this.#makeRoomFor(args[0]);
    return super.consume(...args);
  }

  #makeRoomFor(group: string | number): void {
    if (this.#counted.has(group)) return;
    if (this.#counted.size === this.#groupsMax) {
      const first = this.#firstCounted.next();
      if (!first.done) {
        this.#counted.delete(first.value);
        void this.delete(first.value);
      }
    }
    this.#counted.add(group);
  }
}
