import { Redis } from 'ioredis';
import type { Bounds } from '../timeouts-and-sizes.ts';

/**
 * The connection to Redis that the limiter's parts share. The library neither queues commands while it is disconnected
 * nor sends one twice: only the caller knows whether that is safe. A connection that owes replies and is silent is
 * closed; each caller has a shorter deadline of its own (`within-deadline.ts`).
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
    // Closes the connection to a peer that froze or vanished; the calls without a reply then fail.
    socketTimeout: bounds.storeSilenceMaxMs,
    maxLoadingRetryTime: bounds.storeReconnectMaxMs,
    retryStrategy: (attempt) => Math.min(attempt * 50, bounds.storeReconnectMaxMs),
    // After a failover the address may be that of a replica. Connecting again resolves the name again.
    reconnectOnError: (error) => error.message.startsWith('READONLY'),
  });
}

/** Where everything is kept that is not a decision: what processes publish of themselves, changes, the record of usage. */
export interface RecordsInRedis {
  readonly client: Redis;
  readonly prefix: string;
}

/**
 * A connection of its own for records: their replies may be large, and one that is being read must not delay the reply to a
 * decision. Whoever calls has a deadline of its own, and goes on without Redis while `client.status` is not `ready`.
 */
export function openRecords(
  { url, prefix }: { readonly url: string; readonly prefix: string },
  bounds: Parameters<typeof createRedisClient>[1],
): RecordsInRedis {
  const client = createRedisClient(url, bounds);
  // The watch over the other connection logs that Redis is away.
  client.on('error', () => {});
  return { client, prefix };
}
