import type { RedisCommands, RedisConnection } from '../../gateway/redis/redis-connection.ts';
import type { QuotaStore } from '../../gateway/request/limit/store/quota-store.ts';
import type { WindowsMs } from '../../gateway/shared/calendar-windows.ts';
import { connectRedis, keysOf, type RedisPlace, removeAll } from '../support/connect-redis.ts';
import { freshPrefix, redisUrl } from '../support/redis.ts';
import type { Subject } from './quota-store-guarantees.ts';

/** Creates a store on Redis. Both the real store and the broken limiters are created by a function of this type. */
export type MakeStore = (deps: {
  redis: RedisConnection;
  windowsMs: WindowsMs;
  /** The deadlines are long, because these tests check the decisions of Redis and not the speed of this machine. */
  deadlineMs: number;
  patientDeadlineMs: number;
  keysPerCallMax: number;
  functionRetryMs: number;
  /** The clock of the process. The store must use the clock of Redis and not this clock. */
  nowMs: () => number;
}) => QuotaStore;

/** Stores on a Redis, each with its own connection. @param place by default the Redis of this test run */
export async function redisSubject(
  make: MakeStore,
  place: RedisPlace = { url: redisUrl() },
): Promise<RedisSubject> {
  const prefix = freshPrefix();
  const connections: RedisConnection[] = [];
  const own = await connect();

  return {
    prefix,
    client: own.commands,
    keys: () => keysOf(own),
    async open(windowsMs, skewMs = 0) {
      return make({
        redis: await connect(),
        windowsMs,
        deadlineMs: 20_000,
        patientDeadlineMs: 20_000,
        keysPerCallMax: 3,
        functionRetryMs: 10_000,
        nowMs: () => Date.now() + skewMs,
      });
    },
    nowMs: () => own.clockOf(prefix),
    async close() {
      for (const connection of connections) if (connection !== own) connection.close();
      await removeAll(own);
    },
  };

  async function connect(): Promise<RedisConnection> {
    const connection = await connectRedis({ prefix, place });
    connections.push(connection);
    return connection;
  }
}

export interface RedisSubject extends Subject {
  readonly prefix: string;
  readonly client: RedisCommands;
  /** The names of the stores' keys in Redis. */
  keys(): Promise<string[]>;
  /** Deletes the stores' keys in Redis and closes all connections. */
  close(): Promise<void>;
}
