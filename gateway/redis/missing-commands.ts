import type { Redis } from 'ioredis';
import type { RedisConnection } from './redis-connection.ts';

/**
 * Every command that Tollgate sends, or runs in a script, with arguments that change nothing: of a key that does not exist,
 * or such as the command refuses. Redis looks whether the user may run a command, and touch the key, before it does either.
 */
const trials: readonly string[] = [
  'TIME',
  'INFO memory',
  'GET key',
  'MGET key',
  'SET key 0 XX',
  'DEL key',
  'EXISTS key',
  'TYPE key',
  'INCRBY key no-number',
  'EXPIRE key 1',
  'EXPIREAT key 1',
  'PEXPIRE key 1',
  'PEXPIREAT key 1',
  'PTTL key',
  'HGET key f',
  'HMGET key f',
  'HGETALL key',
  'HSET key f 0 without-value',
  'HDEL key f',
  'XADD key NOMKSTREAM * f 0',
  'XDEL key 0-1',
  'XLEN key',
  'XRANGE key - +',
  'XREVRANGE key + -',
  'ZADD key XX 0 m',
  'ZREM key m',
  'ZCARD key',
  'ZMSCORE key m',
  'ZRANGE key 0 0',
  'ZREVRANGE key 0 0',
  'ZRANGEBYLEX key - +',
  'ZRANGEBYSCORE key 0 0',
  'ZREMRANGEBYRANK key 0 0',
  'MULTI',
  'DISCARD',
  `EVALSHA ${'0'.repeat(40)} 1 key`,
];

/**
 * Tries every needed command on each server, at each connection, and again as long as one is refused. An ACL without
 * one of them would show much later, as an error of one feature.
 *
 * @param onChange hears the names of what this user may not do, and of nothing once all is allowed
 */
export function watchMissingCommands(
  redis: RedisConnection,
  {
    retryMs,
    onChange,
  }: { readonly retryMs: number; readonly onChange: (missing: readonly string[]) => void },
): { current(): readonly string[]; close(): void } {
  let known: readonly string[] = [];
  let timer: NodeJS.Timeout | undefined;
  const stopListening = redis.on('ready', look);
  look();

  function look(): void {
    clearTimeout(timer);
    const servers = redis.nodes().flatMap(({ client, keyHere }) => {
      return client?.status === 'ready' ? [missingOn(client, keyHere(`${redis.prefix}:acl`))] : [];
    });
    Promise.all(servers).then(
      (lists) => hear([...new Set(lists.flat())]),
      () => {
        // The connection was lost: the next one is looked at again.
      },
    );
  }

  function hear(missing: readonly string[]): void {
    if (missing.length > 0) timer = setTimeout(look, retryMs).unref();
    if (missing.join() === known.join()) return;
    known = missing;
    onChange(missing);
  }

  return {
    current: () => known,
    close() {
      clearTimeout(timer);
      stopListening();
    },
  };
}

/** @throws when the connection is lost meanwhile */
async function missingOn(client: Redis, key: string): Promise<readonly string[]> {
  const tried = trials.map(async (trial) => {
    const [command = '', ...args] = trial.split(' ').map((word) => (word === 'key' ? key : word));
    const refusal = await client.call(command, ...args).then(
      () => undefined,
      (error: Error) => error,
    );
    if (refusal === undefined || refusal.name === 'ReplyError') {
      return refusal?.message.startsWith('NOPERM') ? command : undefined;
    }
    throw refusal;
  });
  return (await Promise.all(tried)).filter((command) => command !== undefined);
}
