import type { Redis } from 'ioredis';
import { redisServerOf } from '../shared/addresses/redis-url.ts';
import type { RedisSettings } from '../shared/model.ts';
import type { Bounds } from '../shared/timeouts-and-sizes.ts';
import { connectToCluster } from './cluster-connection.ts';
import { createCork } from './cork.ts';
import { loadIoredis, watchSentinels } from './ioredis-patches.ts';
import { clockOfNode, type RedisConnection, type RedisNode, type ServerOptions } from './redis-connection.ts';

type Servers = Omit<RedisSettings, 'onFailure'>;

/**
 * Connects to the Redis of the configuration, and reconnects after a failure. By its options, ioredis neither queues commands while a
 * server is disconnected, nor sends a command twice. Only the caller knows whether that is safe. A connection is closed when expected
 * replies do not arrive. Each caller has a shorter deadline of its own (`within-deadline.ts`).
 *
 * Rate-limit decisions and records use separate connections, so that a large reply with records does not delay a decision.
 */
export function openRedis(settings: Servers, bounds: Bounds): RedisConnection {
  const { url, cluster, sentinel, prefix } = settings;
  const options = optionsOf(settings, bounds);
  if (cluster !== undefined) return connectToCluster({ urls: cluster, prefix, options, bounds });
  if (sentinel !== undefined) {
    const client = connectToSentinel(sentinel, options, bounds);
    const unknownBecause = watchSentinels(client, sentinel.name);
    return toConnection(client, prefix, { unknownBecause, retryAfterMs: bounds.storeReconnectMaxMs });
  }
  const { isTls, host, port, db, family, ...credentials } = redisServerOf(url ?? '');
  const client = new (loadIoredis().Redis)({
    ...options,
    ...ofOneServer(bounds),
    ...{ host, port, db, family },
    username: options.username ?? credentials.username,
    password: options.password ?? credentials.password,
    tls: options.tls ?? (isTls ? {} : undefined),
  });
  return toConnection(client, prefix, { retryAfterMs: bounds.storeReconnectMaxMs });
}

function optionsOf({ username, password, tls }: Servers, bounds: Bounds): ServerOptions {
  return {
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    connectTimeout: bounds.storeConnectTimeoutMs,
    // The server hangs or has disappeared. Pending commands fail.
    socketTimeout: bounds.storeSilenceMaxMs,
    maxLoadingRetryTime: bounds.storeReconnectMaxMs,
    username,
    password,
    tls: tls && { ca: tls.ca, ...tls.clientCertificate },
  };
}

function ofOneServer({ storeReconnectMaxMs }: Bounds) {
  return {
    enableOfflineQueue: false,
    retryStrategy: (attempt: number) => Math.min(attempt * 50, storeReconnectMaxMs),
  };
}

/**
 * After a failover the address may belong to a replica, which accepts no writes. For a new connection, ioredis resolves the name again, or
 * asks Sentinel again. All pending commands get the same error, and ioredis would add a timer for each, so only the first error causes a
 * reconnect.
 */
function leaveReplicas(client: Redis): void {
  let isLeaving = false;
  client.options.reconnectOnError = ({ message }) => {
    if (isLeaving || !message.startsWith('READONLY')) return false;
    isLeaving = true;
    return true;
  };
  client.on('close', () => {
    isLeaving = false;
  });
}

function connectToSentinel(
  { name, hosts, username, password }: NonNullable<RedisSettings['sentinel']>,
  options: ServerOptions,
  bounds: Bounds,
): Redis {
  const { tls } = options;
  return new (loadIoredis().Redis)({
    ...options,
    ...ofOneServer(bounds),
    name,
    sentinels: hosts.map((text) => {
      const { host, port } = redisServerOf(`redis://${text}`);
      return { host, port };
    }),
    sentinelUsername: username,
    sentinelPassword: password,
    sentinelTLS: tls,
    enableTLSForSentinelMode: tls !== undefined,
    sentinelCommandTimeout: bounds.storeConnectTimeoutMs,
    sentinelRetryStrategy: (attempt) => Math.min(attempt * 50, bounds.storeReconnectMaxMs),
    // An isolated old master would accept writes that are lost later.
    failoverDetector: true,
  });
}

interface OneServer extends Partial<Pick<RedisNode, 'unknownBecause'>> {
  /** The pause after which the gateway tries again if ioredis stops. */
  readonly retryAfterMs: number;
}

function toConnection(
  client: Redis,
  prefix: string,
  { unknownBecause = () => undefined, retryAfterMs }: OneServer,
): RedisConnection {
  let isOpen = true;
  // ioredis prints `error` events that have no listener. The gateway logs outages in `store-watch.ts`.
  client.on('error', () => {});
  leaveReplicas(client);
  // ioredis stops connecting if an attempt fails before a socket exists, for example if a Sentinel announces another master during the
  // look-up.
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
      cork([client]);
      return send();
    },
    isReady: () => client.status === 'ready',
    nodeOf: () => node,
    // The server stores all keys, so no place is better than another.
    placeOf: () => Math.random(),
    clockOf: () => clockOfNode(node),
    nodes: () => nodes,
    on(event, listener) {
      // The list of servers never changes.
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
