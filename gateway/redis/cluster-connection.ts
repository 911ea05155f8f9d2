import { EventEmitter } from 'node:events';
import keySlot from 'cluster-key-slot';
import type { Redis } from 'ioredis';
import { redisServerOf } from '../shared/addresses/redis-url.ts';
import type { Bounds } from '../shared/timeouts-and-sizes.ts';
import { createCork } from './cork.ts';
import { ignoreLostAsking, leaveGently, loadIoredis, onContactError } from './ioredis-patches.ts';
import { clockOfNode, type RedisConnection, type RedisNode, type ServerOptions } from './redis-connection.ts';

const slotsCount = 16_384;

/**
 * Attempts to find a key that a given server stores: twelve times the number of slots, so the search succeeds even for a server with a
 * single slot.
 */
const attemptsMax = 200_000;

/**
 * Connects to a Redis Cluster. ioredis follows MOVED and ASK for single commands, but not for a pipeline that has partly run. A redirected
 * command waits until one attempt to connect to the new server has ended.
 *
 * | default of ioredis | why it is changed | option |
 * |---|---|---|
 * | repeats a command whose connection has closed | the command may have run, and would charge a request twice | `retryDelayOnFailover: 0` |
 * | repeats a command 100 ms after CLUSTERDOWN | the gateway has already responded to the request | `retryDelayOnClusterDown: 0` |
 * | is not ready while one server is dead | each server has a circuit breaker of its own | `enableReadyCheck: false` |
 * | does not reconnect to a lost server | | `clusterNodeRetryStrategy` |
 */
export function connectToCluster({
  urls,
  prefix,
  options,
  bounds,
}: {
  readonly urls: readonly string[];
  readonly prefix: string;
  readonly options: ServerOptions;
  readonly bounds: Bounds;
}): RedisConnection {
  const retryAfter = (attempt: number) => Math.min(attempt * 50, bounds.storeReconnectMaxMs);
  const cluster = new (loadIoredis().Cluster)(urls.map(addressOf), {
    redisOptions: options,
    clusterRetryStrategy: retryAfter,
    clusterNodeRetryStrategy: retryAfter,
    enableReadyCheck: false,
    retryDelayOnFailover: 0,
    retryDelayOnClusterDown: 0,
    slotsRefreshTimeout: bounds.storeSlotsTimeoutMs,
    // The certificate of a server is issued for its name.
    dnsLookup: (host, callback) => callback(null, host),
  });
  const events = new EventEmitter();
  const cork = createCork();
  let lastError: string | undefined;
  /** ioredis itself reports only "connection closed". */
  let contactError: string | undefined;
  /** Stands for all slots whose server is unknown. */
  const placeholder: RedisNode = {
    name: 'Cluster',
    client: undefined,
    unknownBecause: () => lastError,
    keyHere: (base) => base,
  };
  const known = new Map<string, RedisNode>();
  let nodes: readonly RedisNode[] = [placeholder];
  let isClosing = false;
  /** Commands that were redirected to these servers wait for the connection. */
  const isFirstConnection = new WeakSet<Redis>();

  cluster.on('error', (error: Error & { readonly lastNodeError?: Error | null }) => {
    lastError = contactError ?? error.lastNodeError?.message ?? error.message;
    contactError = undefined;
  });
  cluster.on('refresh', () => {
    contactError = undefined;
    update();
  });
  cluster.on('+node', (client: Redis) => {
    client.on('ready', () => events.emit('ready'));
    isFirstConnection.add(client);
    client.once('close', () => isFirstConnection.delete(client));
    // A replica may replace the server. A command to a server that is not connected is not sent, and gets no redirection. Without new
    // slots, commands for its keys would fail until the server is back.
    client.on('close', refresh);
    ignoreLostAsking(client);
    leaveGently(client, { graceMs: bounds.storeSilenceMaxMs, isClosing: () => isClosing });
    onContactError(client, (message) => {
      contactError = `${nameOf(client)}: ${message}`;
    });
    update();
  });
  cluster.on('-node', update);

  return {
    prefix,
    commands: cluster,
    oneServer: false,
    gather(send) {
      cork(cluster.nodes('master'));
      return send();
    },
    isReady(key) {
      const { client } = nodeOf(key);
      if (client === undefined) return false;
      return client.status === 'ready' || (isFirstConnection.has(client) && client.status !== 'end');
    },
    nodeOf,
    placeOf: (key) => keySlot(key) / slotsCount,
    clockOf: (key) => clockOfNode(nodeOf(key)),
    nodes: () => nodes,
    on(event, listener) {
      events.on(event, listener);
      return () => void events.off(event, listener);
    },
    refresh,
    close() {
      isClosing = true;
      cluster.disconnect();
    },
  };

  function refresh(): void {
    if (cluster.status === 'ready') cluster.refreshSlotsCache();
  }

  function nodeOf(key: string): RedisNode {
    const name = cluster.slots[keySlot(key)]?.[0];
    if (name === undefined) return placeholder;
    const node = known.get(name);
    if (node !== undefined) return node;
    // The slot belongs to a new server, to which a command was just redirected.
    update();
    return known.get(name) ?? placeholder;
  }

  function update(): void {
    const clients = new Map(cluster.nodes('master').map((client) => [nameOf(client), client]));
    const names = new Set<string | undefined>();
    for (let slot = 0; slot < slotsCount; slot++) names.add(cluster.slots[slot]?.[0]);
    const next: RedisNode[] = [];
    for (const name of names) {
      if (name === undefined) next.push(placeholder);
      else next.push(adopt(name, clients.get(name)));
    }
    for (const name of known.keys()) if (!names.has(name)) known.delete(name);
    if (next.length === nodes.length && next.every((node) => nodes.includes(node))) return;
    nodes = next;
    events.emit('nodes');
  }

  function adopt(name: string, client: Redis | undefined): RedisNode {
    const before = known.get(name);
    if (before?.client === client && before !== undefined) return before;
    const node = { name, client, unknownBecause: () => undefined, keyHere: keysOn(name) };
    known.set(name, node);
    // ioredis would connect with the first command, which would have to wait.
    if (client?.status === 'wait') client.connect().catch(() => {});
    return node;
  }

  function keysOn(name: string): (base: string) => string {
    let number = 0;
    return (base) => {
      for (let attempts = 0; attempts < attemptsMax; attempts++) {
        const key = `${base}:${number}`;
        if (cluster.slots[keySlot(key)]?.[0] === name) return key;
        number = (number + 1) % attemptsMax;
      }
      return base;
    };
  }
}

function addressOf(url: string): { host: string; port: number } {
  const { host, port } = redisServerOf(url);
  return { host, port };
}

function nameOf({ options }: Redis): string {
  return `${options.host}:${options.port}`;
}
