import type { Redis } from 'ioredis';
import { inspect } from './inspect.ts';
import { type RedisServer, startRedis } from './start-redis.ts';
import { until } from './until.ts';

/** A Redis that replicates another Redis until it is promoted. */
export interface Replica {
  readonly port: number;
  /** A connection to the replica. */
  readonly inspector: Redis;
  /** Waits until the replica has applied every write that the primary has already applied. */
  catchUp(): Promise<void>;
  /** Makes the replica a primary, which accepts writes. */
  promote(): Promise<void>;
  stop(): Promise<void>;
}

export async function startReplica(primary: RedisServer): Promise<Replica> {
  const server = await startRedis();
  const [atPrimary, inspector] = [inspect(primary.url), inspect(server.url)];
  // By default, Redis waits five seconds for more replicas before it sends the first copy.
  await atPrimary.config('SET', 'repl-diskless-sync-delay', 0);
  await inspector.replicaof('127.0.0.1', primary.port);
  await until('the replica is synchronised with its master', async () =>
    (await inspector.info('replication')).includes('master_link_status:up'),
  );

  return {
    port: server.port,
    inspector,
    async catchUp() {
      const written = await offset(atPrimary, 'master_repl_offset');
      await until(
        'the replica has caught up',
        async () => (await offset(inspector, 'slave_repl_offset')) >= written,
      );
    },
    async promote() {
      await inspector.replicaof('NO', 'ONE');
    },
    async stop() {
      atPrimary.disconnect();
      inspector.disconnect();
      await server.stop();
    },
  };
}

/** The number of bytes of the replication stream that the server has sent (as primary) or applied (as replica). */
async function offset(redis: Redis, field: 'master_repl_offset' | 'slave_repl_offset'): Promise<number> {
  const found = new RegExp(`^${field}:(\\d+)`, 'm').exec(await redis.info('replication'));
  return Number(found?.[1]);
}
