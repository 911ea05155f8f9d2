import { createRedisDirectoryStore } from '../../keys/directory/store/redis-directory-store.ts';
import { openRedis } from '../../redis/open-redis.ts';
import { type RedisConnection, untilConnected } from '../../redis/redis-connection.ts';
import { createStatusReader } from '../../request/limit/read-statuses.ts';
import { createRedisQuotaStore } from '../../request/limit/store/redis-quota-store.ts';
import type { RedisSettings } from '../../shared/model.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import { createRedisUsageStore } from '../../usage/store/redis-usage-store.ts';
import type { Kept } from './reading-messages.ts';

export interface KeptInRedis extends Kept {
  readonly connection: RedisConnection;
}

/**
 * Opens the records of keys in Redis over a separate connection, so that no client request waits behind replies with records.
 *
 * @returns the connection too, for the records of capabilities
 */
export async function keptInRedis(
  redis: RedisSettings,
  bounds: Bounds,
  closed: AbortSignal,
): Promise<KeptInRedis> {
  closed.throwIfAborted();
  const connection = openRedis(redis, bounds);
  closed.addEventListener('abort', () => connection.close());
  await untilConnected(connection, bounds.storeStartTimeoutMs);
  const records = createRedisUsageStore({ redis: connection, keptMs: 0, bounds });
  const directory = createRedisDirectoryStore({ redis: connection, bounds });
  const counts = createRedisQuotaStore({
    redis: connection,
    windowsMs: bounds.windowsMs,
    deadlineMs: bounds.storePatientDeadlineMs,
    patientDeadlineMs: bounds.storePatientDeadlineMs,
    keysPerCallMax: bounds.keysPerCallMax,
    functionRetryMs: bounds.storeAclRetryMs,
  });
  const isThere = () => connection.nodes().some(({ client }) => client?.status === 'ready');
  return {
    connection,
    readStatuses: createStatusReader({
      store: counts,
      reach: () => (connection.oneServer || !isThere() ? 'none' : 'some'),
      windowsMs: bounds.windowsMs,
    }),
    readRecords: records.read,
    readActive: records.active,
    readLastSeen: records.lastSeen,
    directory,
  };
}
