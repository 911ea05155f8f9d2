import type { Redis, RedisCommander, RedisOptions } from 'ioredis';

/**
 * The Redis of the configuration: one server, the master that Sentinels name, or a Cluster. A command has one key, or several
 * keys that share a hash tag, so that callers need not know the form.
 *
 * A command whose connection closed may have run and is not sent again. A command that another server has to run (MOVED, ASK)
 * did not run and is redirected.
 */
export interface RedisConnection {
  /** The beginning of all names: `redis.prefix`. */
  readonly prefix: string;
  readonly commands: RedisCommands;
  /** Whether one server keeps all keys. Then a command may combine any keys. */
  readonly oneServer: boolean;
  /** Sends all commands that are gathered in this turn of the event loop in one write to each server. */
  gather<T>(send: () => T): T;
  /** Whether the server that keeps this key is connected. Otherwise a command fails at once. */
  isReady(key: string): boolean;
  /** The server that keeps this key now. */
  nodeOf(key: string): RedisNode;
  /** The clock of the server that keeps this key, epoch ms. */
  clockOf(key: string): Promise<number>;
  /** The servers that keep keys now: masters that have slots. */
  nodes(): readonly RedisNode[];
  /** Calls the listener when `nodes` has changed, or when a server is connected. @returns a function that stops this */
  on(event: 'nodes' | 'ready', listener: () => void): () => void;
  /** Reads the slots of a Cluster again, which another server keeps after a failover. */
  refresh(): void;
  /** Disconnects. Commands without a reply fail. */
  close(): void;
}

export type RedisCommands = RedisCommander<{ type: 'default'; mapping: 'resp2' }> &
  Pick<Redis, 'defineCommand' | 'multi'>;

/** A server that keeps keys. */
export interface RedisNode {
  /** `host:port` in a Cluster; undefined outside of a Cluster. */
  readonly name: string | undefined;
  /** Undefined for the placeholder of a Cluster that was not reached yet. */
  readonly client: Redis | undefined;
  /** Why the server, or its address, is unknown. */
  readonly unknownBecause: () => string | undefined;
  /** `base`, in a Cluster with a number appended that makes it a key of this server. */
  keyHere(base: string): string;
}

/** @throws when the server is not connected or does not reply */
export async function clockOfNode({ client }: RedisNode): Promise<number> {
  if (client === undefined) throw new Error('not connected');
  const [seconds, micros] = await client.time();
  return Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000);
}

/** Resolves when every server is connected, or after the timeout. Commands that are sent earlier fail at once. */
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

/** The options of the connection to each server in every form. */
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
