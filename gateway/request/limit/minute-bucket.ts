import {
  RateLimiterMemory,
  RateLimiterRedis,
  RateLimiterRes,
  RLWrapperTimeouts,
} from 'rate-limiter-flexible';
import type { RedisConnection } from '../../redis/redis-connection.ts';
import { redisKeys } from '../../redis/redis-keys.ts';
import type { BucketDecision, BucketName, Window } from '../../shared/model.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';

/**
 * A limit per minute for requests that are charged to no key's quota, by client address or by key. rate-limiter-flexible does the whole
 * job. It counts in Redis for all processes, refuses holders beyond the limit without a call, and counts in this process's memory while
 * Redis is away.
 */
export function createMinuteBucket(deps: {
  /** The name of the window, and a part of the Redis keys. */
  name: BucketName;
  /** Absent when this process counts alone. */
  redis?: {
    readonly connection: RedisConnection;
    /** Whether the Redis server with this key is available. */
    readonly available: (key: string) => boolean;
  };
  /** The store's clock, epoch ms. */
  nowMs: () => number;
  bounds: Pick<Bounds, 'rememberedAddressesMax' | 'storeDeadlineMs'>;
}): MinuteBucket {
  const { name, redis, nowMs, bounds } = deps;
  const own = new BoundedLimiterMemory({ points: 1, duration: windowSeconds }, bounds.rememberedAddressesMax);
  const sharedPrefix = redisKeys[name].name(redis?.connection.prefix ?? '');
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
   * Makes a new limiter when a reload changes the limit, because a holder beyond the old limit may be within the new one. Only one limiter
   * may exist at a time, because the library defines its script as a command on the Redis client.
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
    // Only the wrapper has an insurance limiter. An insurance limiter of the inner limiter would charge the request a second time, when
    // a call fails after the wrapper's timeout.
    shared = new RLWrapperTimeouts({ limiter, timeoutMs: bounds.storeDeadlineMs, insuranceLimiter: own });
  }
}

export interface MinuteBucket {
  /** @param holder the client address (`address-group.ts`) or the id of the key that is charged */
  charge(holder: string, perMinute: number): Promise<BucketDecision>;
}

const windowSeconds = 60;

/** The library rejects with the figures when the limit is exceeded. Any other rejection is a bug. */
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
 * The library's limiter in memory, with a bound on the number of remembered addresses, which the library lacks. At the bound, the
 * address that was counted first is forgotten. A client that guesses keys gains nothing: to make the limiter forget one address, it
 * needs requests from as many other addresses, and each address has its own limit.
 */
class BoundedLimiterMemory extends RateLimiterMemory {
  readonly #counted = new Set<string | number>();
  /** An iterator that stays open, because a new iterator would step over every deleted entry again. */
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
