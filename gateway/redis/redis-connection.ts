import type { Redis, RedisCommander, RedisOptions } from 'ioredis';
import type { Bounds } from '../shared/timeouts-and-sizes.ts';

/**
 * The Redis of the configuration, whatever its form: one server, the master that Sentinels name, or a Cluster. Its users
 * send commands with one key each, or with several that share a hash tag, and need not know the form.
 *
 * A command whose connection closed may have run, and is not sent again. One that a server refused because another one
 * keeps its key (MOVED, ASK) did not run, and is sent there.
 */
export interface RedisConnection {
  /** What all names begin with: `redis.prefix`. */
  readonly prefix: string;
  readonly commands: RedisCommands;
  /** Whether one server keeps all keys: then a command may have any of them together. */
  readonly oneServer: boolean;
  /** Sends the commands of `send`, and of all others that gather in this turn, in one write to each server. */
  gather<T>(send: () => T): T;
  /** Whether the server that keeps this key is connected. Ask before each command: it fails at once if not. */
  isReady(key: string): boolean;
  /** The server that keeps a key now. With a single server it is always the same, and the key is not looked at. */
  nodeOf(key: string): RedisNode;
  /** The clock of the server that keeps this key, epoch ms. */
  clockOf(key: string): Promise<number>;
  /** The servers that keep keys now: masters that have slots. */
  nodes(): readonly RedisNode[];
  /** Calls back when `nodes` has changed, or when a server is connected (again). The result stops that. */
  on(event: 'nodes' | 'ready', listener: () => void): () => void;
  /** Asks a Cluster which server keeps which keys: after a failover it is another one. */
  refresh(): void;
  /** Disconnects; what has no reply yet fails. */
  close(): void;
}

export type RedisCommands = RedisCommander<{ type: 'default'; mapping: 'resp2' }> &
  Pick<Redis, 'defineCommand' | 'multi'>;

/** One server that keeps keys. */
export interface RedisNode {
  /** Its `host:port` in a Cluster; undefined where there is one server only. */
  readonly name: string | undefined;
  /** The connection to it. Undefined in place of a server that nobody knows: a Cluster that was not reached yet. */
  readonly client: Redis | undefined;
  /** Why it is unknown, or where it is, as far as that is known. */
  readonly unknownBecause?: () => string | undefined;
  /** `base`, with a number behind it where only that makes it a key of this server. */
  keyHere(base: string): string;
}

/** @throws when the server is not connected, or gives no reply */
export async function clockOfNode({ client }: RedisNode): Promise<number> {
  if (client === undefined) throw new Error('not connected');
  const [seconds, micros] = await client.time();
  return Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000);
}

/** What holds for the connection to each server, whatever the form. */
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

export type ConnectionBounds = Pick<
  Bounds,
  'storeConnectTimeoutMs' | 'storeSilenceMaxMs' | 'storeReconnectMaxMs'
>;
