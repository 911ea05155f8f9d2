import { Redis } from 'ioredis';
import type { Bounds } from '../../timeouts-and-sizes.ts';

/**
 * The connection to Redis that the limiter's parts share. No command is kept for later and none is sent twice by the
 * library: what became of it is for the caller to judge. A connection that goes silent is given up; each caller has its
 * own, shorter deadline (`within-deadline.ts`).
 */
export function createRedisClient(
  url: string,
  bounds: Pick<Bounds, 'storeConnectTimeoutMs' | 'storeSilenceMaxMs' | 'storeReconnectMaxMs'>,
): Redis {
  return new Redis(url, {
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    connectTimeout: bounds.storeConnectTimeoutMs,
    // A peer that vanished without a word, or froze, is given up, and with it the replies that are still owed.
    socketTimeout: bounds.storeSilenceMaxMs,
    maxLoadingRetryTime: bounds.storeReconnectMaxMs,
    retryStrategy: (attempt) => Math.min(attempt * 50, bounds.storeReconnectMaxMs),
    // After a failover the old address may be a replica: connect again, which looks the name up again.
    reconnectOnError: (error) => error.message.startsWith('READONLY'),
  });
}
