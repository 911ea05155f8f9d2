import { RateLimiterRedis, RateLimiterRes, RLWrapperTimeouts } from 'rate-limiter-flexible';
import type { RedisConnection } from '../../redis/redis-connection.ts';
import { redisKeys } from '../../redis/redis-keys.ts';
import type { BucketDecision, BucketName, Window } from '../../shared/model.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import { BoundedLimiterMemory } from './bounded-limiter-memory.ts';

/**
 * A limit on what is charged to no key's quota: so many requests a minute of one client address, or of one key. Here
 * rate-limiter-flexible does the whole job: it counts in Redis for all processes, refuses whoever is beyond the limit
 * without asking Redis, and counts in this process's memory while Redis is away.
 */
export function createMinuteBucket(deps: {
  /** The name of its window and a part of its Redis keys. */
  name: BucketName;
  /** Absent: this process counts alone. */
  redis?: {
    readonly connection: RedisConnection;
    /** Whether the server that keeps this key of Redis is there. */
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
   * A reload may change the limit, and who is beyond the old limit may be within the new one, so the limiter is made
   * anew. Only one may be in use at a time: the library defines its script as a command on the Redis client.
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
    // Only the wrapper has an insurance limiter. With one of its own the limiter would charge the request a second time,
    // when a call that the wrapper has given up fails at last.
    shared = new RLWrapperTimeouts({ limiter, timeoutMs: bounds.storeDeadlineMs, insuranceLimiter: own });
  }
}

export interface MinuteBucket {
  /** @param holder the client address (`address-group.ts`) or the id of the key that is charged */
  charge(holder: string, perMinute: number): Promise<BucketDecision>;
}

const windowSeconds = 60;

/** The library rejects with the figures when the limit is passed; any other rejection is a bug. */
async function consume(limiter: BoundedLimiterMemory | RLWrapperTimeouts, holder: string) {
  try {
    const { remainingPoints, msBeforeNext } = await limiter.consume(holder);
    return { refused: false, remainingPoints, msBeforeNext };
  } catch (rejection) {
    if (!(rejection instanceof RateLimiterRes)) throw rejection;
    return { refused: true, remainingPoints: 0, msBeforeNext: rejection.msBeforeNext };
  }
}
