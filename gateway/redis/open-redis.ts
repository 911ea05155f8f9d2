import { Redis } from 'ioredis';
import type { RedisSettings } from '../shared/model.ts';
import { connectToCluster } from './cluster-connection.ts';
import { createCork } from './cork.ts';
import {
  type ConnectionBounds,
  clockOfNode,
  type RedisConnection,
  type ServerOptions,
} from './redis-connection.ts';

type Servers = Omit<RedisSettings, 'onFailure'>;

/**
 * Connects to the Redis of the configuration, and goes on trying. The library neither queues commands while a server is
 * disconnected nor sends one twice: only the caller knows whether that is safe. A connection that owes replies and is
 * silent is closed; each caller has a shorter deadline of its own (`within-deadline.ts`).
 *
 * Decisions and records have a connection each: the replies to records may be large, and one that is being read must not
 * delay the reply to a decision.
 */
export function openRedis(settings: Servers, bounds: ConnectionBounds): RedisConnection {
  const { url, cluster, sentinel, prefix } = settings;
  const options = optionsOf(settings, bounds);
  if (cluster !== undefined) return connectToCluster({ urls: cluster, prefix, options, bounds });
  if (sentinel !== undefined) {
    const client = connectToSentinel(sentinel, options, bounds);
    const unknownBecause = watchSentinels(client, sentinel.name);
    return toConnection(client, prefix, { unknownBecause, retryAfterMs: bounds.storeReconnectMaxMs });
  }
  const client = new Redis(url ?? '', { ...options, ...ofOneServer(bounds) });
  return toConnection(client, prefix, { retryAfterMs: bounds.storeReconnectMaxMs });
}

function optionsOf({ username, password, tls }: Servers, bounds: ConnectionBounds): ServerOptions {
  return {
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    connectTimeout: bounds.storeConnectTimeoutMs,
    // Closes the connection to a peer that froze or vanished; the calls without a reply then fail.
    socketTimeout: bounds.storeSilenceMaxMs,
    maxLoadingRetryTime: bounds.storeReconnectMaxMs,
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password }),
    ...(tls && { tls: { ...(tls.ca !== undefined && { ca: tls.ca }), ...tls.own } }),
  };
}

function ofOneServer({ storeReconnectMaxMs }: ConnectionBounds) {
  return {
    enableOfflineQueue: false,
    retryStrategy: (attempt: number) => Math.min(attempt * 50, storeReconnectMaxMs),
    // After a failover the address may be that of a replica. Connecting again resolves the name, or asks Sentinel, again.
    reconnectOnError: (error: Error) => error.message.startsWith('READONLY'),
  };
}

function connectToSentinel(
  { name, hosts, username, password }: NonNullable<RedisSettings['sentinel']>,
  options: ServerOptions,
  bounds: ConnectionBounds,
): Redis {
  const { tls } = options;
  return new Redis({
    ...options,
    ...ofOneServer(bounds),
    name,
    sentinels: hosts.map((text) => {
      const url = new URL(`redis://${text}`);
      return { host: url.hostname.replace(/^\[|\]$/g, ''), port: Number(url.port) };
    }),
    ...(username !== undefined && { sentinelUsername: username }),
    ...(password !== undefined && { sentinelPassword: password }),
    ...(tls && { sentinelTLS: tls, enableTLSForSentinelMode: true }),
    sentinelCommandTimeout: bounds.storeConnectTimeoutMs,
    sentinelRetryStrategy: (attempt) => Math.min(attempt * 50, bounds.storeReconnectMaxMs),
    // Leaves the old master as soon as a Sentinel announces another one. An old master that is cut off from Sentinels and
    // replicas does not know that it is none any more, and would go on taking writes that are lost.
    failoverDetector: true,
  });
}

/** What the library has for Sentinels, as far as it is changed here. */
interface SentinelConnector {
  connectToSentinel(...args: unknown[]): Redis;
  resolve(endpoint: unknown): Promise<{ readonly host: string; readonly port: number } | null>;
}

/**
 * The library listens to each Sentinel for another master. It prints the errors of those connections: a Sentinel that is away is
 * no fault as long as another answers, and is connected again. And it leaves the master at every announcement, though after
 * a failover each Sentinel makes one, up to seconds later, and may make those of other masters too.
 *
 * @returns why no Sentinel has named the master, in the words of the one that was asked last
 */
function watchSentinels(client: Redis, name: string): () => string | undefined {
  const { connector } = client as unknown as { connector: SentinelConnector };
  const connectToOne = connector.connectToSentinel.bind(connector);
  const resolve = connector.resolve.bind(connector);
  let because: string | undefined;
  let ofConnection: string | undefined;
  let master: string | undefined;
  connector.resolve = async (endpoint) => {
    const found = await resolve(endpoint);
    if (found !== null) master = `${found.host} ${found.port}`;
    return found;
  };
  connector.connectToSentinel = (...args) => {
    const sentinel = connectToOne(...args);
    const { host, port } = sentinel.options;
    ofConnection = undefined;
    sentinel.on('error', ({ message }) => {
      ofConnection = `Sentinel ${host}:${port}: ${message}`;
    });
    const emit = sentinel.emit.bind(sentinel);
    sentinel.emit = (event, ...details) => {
      if (event === 'message' && !isAnotherMaster(String(details[1]))) return false;
      return emit(event, ...details);
    };
    return sentinel;
  };
  // Of a connection that failed this says only that it is closed.
  client.on('sentinelError', ({ message }: Error) => {
    because = ofConnection ?? message;
  });
  client.on('connect', () => {
    because = undefined;
  });
  return () => because;

  /** @param announcement `<name> <old host> <old port> <new host> <new port>` */
  function isAnotherMaster(announcement: string): boolean {
    const [ofName, , , ...address] = announcement.split(' ');
    return ofName === name && address.join(' ') !== master;
  }
}

interface OneServer {
  /** As in `RedisNode`. */
  readonly unknownBecause?: () => string | undefined;
  /** The pause before another attempt to connect where the library makes none any more. */
  readonly retryAfterMs: number;
}

function toConnection(
  client: Redis,
  prefix: string,
  { unknownBecause = () => undefined, retryAfterMs }: OneServer,
): RedisConnection {
  let isOpen = true;
  // The watch over the store logs that Redis is away. An `error` event that nobody hears is printed by the library.
  client.on('error', () => {});
  // The library makes no further attempt when one fails before it has a socket, as when another master is announced while a
  // Sentinel is being asked for the master.
  client.on('end', () => {
    if (!isOpen) return;
    setTimeout(() => isOpen && client.connect().catch(() => {}), retryAfterMs).unref();
  });
  const node = { name: undefined, client, unknownBecause, keyHere: (base: string) => base };
  const nodes = [node];
  const cork = createCork();
  return {
    prefix,
    commands: client,
    oneServer: true,
    gather(send) {
      cork([client.stream]);
      return send();
    },
    isReady: () => client.status === 'ready',
    nodeOf: () => node,
    clockOf: () => clockOfNode(node),
    nodes: () => nodes,
    on(event, listener) {
      // The one server stays the same.
      if (event === 'nodes') return () => {};
      client.on(event, listener);
      return () => void client.off(event, listener);
    },
    refresh: () => {},
    close() {
      isOpen = false;
      client.disconnect();
    },
  };
}
