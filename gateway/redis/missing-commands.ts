import type { Redis } from 'ioredis';
import type { RedisConnection } from './redis-connection.ts';

/**
 * Every command that Tollgate sends or runs in a script. They change no data, because the key does not exist or Redis refuses the
 * arguments. Redis checks the ACL of the user before the arguments.
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
  'EVAL return 1 key',
  `EVALSHA ${'0'.repeat(40)} 1 key`,
];

/**
 * Tries every required command on each server after each connect, and again while the ACL forbids a command. An incomplete ACL is therefore
 * reported at the start, not when a feature first fails.
 *
 * @param onChange called with the forbidden commands; with an empty list when all commands are allowed
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
      (lists) => update([...new Set(lists.flat())]),
      () => {
        // The connection was lost. The next connection tries again.
      },
    );
  }

  function update(missing: readonly string[]): void {
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

/** @throws when the connection is lost */
async function missingOn(client: Redis, key: string): Promise<readonly string[]> {
  const outcomes = trials.map(async (trial) => {
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
  return (await Promise.all(outcomes)).filter((command) => command !== undefined);
}
