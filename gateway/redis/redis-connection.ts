import type { Redis, RedisCommander, RedisOptions } from 'ioredis';

/**
 * A connection to Redis: to one server, to the master that Sentinels announce, or to a Cluster. Callers use the same methods for all three
 * kinds. Each command has one key, or several keys with the same hash tag.
 *
 * A command whose connection closes is not sent again, because it may have run. A command that gets MOVED or ASK has not run, so it
 * is redirected.
 */
export interface RedisConnection {
  /** The prefix of all Redis keys (`redis.prefix` of the configuration). */
  readonly prefix: string;
  readonly commands: RedisCommands;
  /** Whether one server stores all keys. If so, a command may use any combination of keys. */
  readonly oneServer: boolean;
  /** Runs `send`. All commands of this turn of the event loop are sent in one write to each server. */
  gather<T>(send: () => T): T;
  /** Whether the server that stores this key is connected. While the server is not connected, commands fail immediately. */
  isReady(key: string): boolean;
  /** Returns the server that currently stores this key. */
  nodeOf(key: string): RedisNode;
  /** Returns the place of this key, from 0 to less than 1. A server usually stores the keys of neighbouring places. */
  placeOf(key: string): number;
  /** Reads the clock of the server that stores this key, epoch ms. */
  clockOf(key: string): Promise<number>;
  /** Returns the servers that currently store keys: all masters with slots. */
  nodes(): readonly RedisNode[];
  /** Calls the listener when `nodes` has changed, or when a server is connected. @returns a function that removes the listener */
  on(event: 'nodes' | 'ready', listener: () => void): () => void;
  /** Reads again which server stores each slot of a Cluster, because a failover moves slots to another server. */
  refresh(): void;
  /** Disconnects. Pending commands fail. */
  close(): void;
}

export type RedisCommands = RedisCommander<{ type: 'default'; mapping: 'resp2' }> &
  Pick<Redis, 'defineCommand' | 'multi'>;

/** A server that stores keys. */
export interface RedisNode {
  /** The server's `host:port` in a Cluster; undefined for a single server. */
  readonly name: string | undefined;
  /** The ioredis client; undefined for the placeholder of an unknown server of a Cluster. */
  readonly client: Redis | undefined;
  /** Returns why the server or its address is unknown. */
  readonly unknownBecause: () => string | undefined;
  /** Returns a Redis key that this server stores. The key is `base`, or in a Cluster `base` with a number at its end. */
  keyHere(base: string): string;
}

/** @throws when the server is not connected or does not reply */
export async function clockOfNode({ client }: RedisNode): Promise<number> {
  if (client === undefined) throw new Error('not connected');
  const [seconds, micros] = await client.time();
  return Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000);
}

/** Resolves when every server is connected, or after the timeout. A command to a server that is not connected yet fails immediately. */
export function untilConnected(redis: RedisConnection, timeoutMs: number): Promise<void> {
  return new Promise((resolve) => {
    const stop = redis.on('ready', look);
    const timer = setTimeout(end, timeoutMs).unref();
    look();

    function look(): void {
      if (redis.nodes().every(({ client }) => client?.status === 'ready')) end();
    }

    function end(): void {
      clearTimeout(timer);
      stop();
      resolve();
    }
  });
}

/** The ioredis options that apply to the connection to each server. */
export type ServerOptions = Pick<
  RedisOptions,
  | 'maxRetriesPerRequest'
  | 'autoResendUnfulfilledCommands'
  | 'connectTimeout'
  | 'socketTimeout'
  | 'maxLoadingRetryTime'
  | 'username'
  | 'password'
  | 'tls'
>;
