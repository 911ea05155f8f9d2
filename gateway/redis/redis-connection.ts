import type { Redis, RedisCommander, RedisOptions } from 'ioredis';

/**
 * A connection to one server, to the master that Sentinels announce, or to a Cluster. Each command has one key, or several keys with the
 * same hash tag.
 *
 * A command whose connection closes is not sent again, because it may have run. A command that gets MOVED or ASK has not run, so it is
 * redirected.
 */
export interface RedisConnection {
  /** `redis.prefix` of the configuration. */
  readonly prefix: string;
  readonly commands: RedisCommands;
  /** Whether one server stores all keys. A command may then use any combination of keys. */
  readonly oneServer: boolean;
  /** Sends all commands of this turn of the event loop in one write to each server. */
  gather<T>(send: () => T): T;
  /** Whether the server of this key is connected. Otherwise commands fail immediately. */
  isReady(key: string): boolean;
  /** The server that currently stores this key. */
  nodeOf(key: string): RedisNode;
  /** From 0 to less than 1. A server usually stores the keys of neighbouring places. */
  placeOf(key: string): number;
  /** The clock of the key's server, epoch ms. */
  clockOf(key: string): Promise<number>;
  /** All masters with slots. */
  nodes(): readonly RedisNode[];
  /** When `nodes` has changed, or when a server is connected. @returns a function that removes the listener */
  on(event: 'nodes' | 'ready', listener: () => void): () => void;
  /** Reads the slots of a Cluster again, because a failover moves them to another server. */
  refresh(): void;
  /** Pending commands fail. */
  close(): void;
}

export type RedisCommands = RedisCommander<{ type: 'default'; mapping: 'resp2' }> &
  Pick<Redis, 'defineCommand' | 'multi'>;

export interface RedisNode {
  /** `host:port` in a Cluster; undefined for a single server. */
  readonly name: string | undefined;
  /** Undefined for the placeholder of an unknown server of a Cluster. */
  readonly client: Redis | undefined;
  /** Why the server or its address is unknown. */
  readonly unknownBecause: () => string | undefined;
  /** A Redis key that this server stores: `base`, or in a Cluster `base` with a number at its end. */
  keyHere(base: string): string;
}

/** @throws when the server is not connected or does not reply */
export async function clockOfNode({ client }: RedisNode): Promise<number> {
  if (client === undefined) throw new Error('not connected');
  const [seconds, micros] = await client.time();
  return Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000);
}

/** Resolves when every server is connected, or after the timeout. Until then, commands fail immediately. */
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

/** For the connection to each server. */
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
