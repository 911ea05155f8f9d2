import { EventEmitter } from 'node:events';
import keySlot from 'cluster-key-slot';
import { Cluster, type Redis } from 'ioredis';
import { createCork } from './cork.ts';
import {
  type ConnectionBounds,
  clockOfNode,
  type RedisConnection,
  type RedisNode,
  type ServerOptions,
} from './redis-connection.ts';

/** All keys are divided into so many slots, and each slot is on one server. */
const slotsCount = 16_384;

/** How many keys are tried in search of one that a server keeps: a server with a single slot has one too. */
const triedKeysMax = 200_000;

/**
 * A Redis Cluster. `ioredis` follows MOVED and ASK for each command on its own; a pipeline would not, once part of it has
 * run. What it does besides is switched off:
 *
 * - `retryDelayOnFailover: 0`. By default it sends a command again when its connection has closed, though it may have run:
 *   a request would be charged twice.
 * - `retryDelayOnClusterDown: 0`. A refusal with CLUSTERDOWN is a reply: nothing ran, and the caller knows what to do. A
 *   command that is sent again 100 ms later would run when its request has long been answered.
 * - `enableReadyCheck: false`. With one server dead it never becomes ready. Each server is watched on its own instead.
 * - `clusterNodeRetryStrategy`. By default a server that was lost is not connected again.
 *
 * Commands that are sent on to a server without a connection yet wait for it, at most for one attempt.
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
  readonly bounds: ConnectionBounds;
}): RedisConnection {
  const retryAfter = (attempt: number) => Math.min(attempt * 50, bounds.storeReconnectMaxMs);
  const cluster = new Cluster(urls.map(addressOf), {
    redisOptions: options,
    clusterRetryStrategy: retryAfter,
    clusterNodeRetryStrategy: retryAfter,
    enableReadyCheck: false,
    retryDelayOnFailover: 0,
    retryDelayOnClusterDown: 0,
    slotsRefreshTimeout: bounds.storeReconnectMaxMs,
    // A name stays a name, which the certificate of a server over TLS is for.
    dnsLookup: (host, callback) => callback(null, host),
  });
  const events = new EventEmitter();
  const cork = createCork();
  let lastError: string | undefined;
  /** Of a server that was asked for the others: the library says of it only that its connection is closed. */
  let contactError: string | undefined;
  const nobody: RedisNode = {
    name: 'Cluster',
    client: undefined,
    unknownBecause: () => lastError,
    keyHere: (base) => base,
  };
  const known = new Map<string, RedisNode>();
  let nodes: readonly RedisNode[] = [nobody];
  let isClosing = false;
  /** What is sent to a server that was just found waits for its first connection: another server has said that it is there. */
  const isFirstConnection = new WeakSet<Redis>();

  cluster.on('error', (error: Error & { readonly lastNodeError?: Error | null }) => {
    lastError = contactError ?? error.lastNodeError?.message ?? error.message;
  });
  cluster.on('refresh', () => {
    contactError = undefined;
    update();
  });
  cluster.on('+node', (client: Redis) => {
    client.on('ready', () => events.emit('ready'));
    isFirstConnection.add(client);
    client.once('close', () => isFirstConnection.delete(client));
    ignoreLostAsking(client);
    leaveGently(client);
    noteContactErrors(client);
    update();
  });
  cluster.on('-node', update);

  return {
    prefix,
    commands: cluster,
    oneServer: false,
    gather(send) {
      const streams = cluster.nodes('master').flatMap(({ stream }) => stream ?? []);
      cork(streams);
      return send();
    },
    isReady(key) {
      const { client } = nodeOf(key);
      if (client === undefined) return false;
      return client.status === 'ready' || (isFirstConnection.has(client) && client.status !== 'end');
    },
    nodeOf,
    clockOf: (key) => clockOfNode(nodeOf(key)),
    nodes: () => nodes,
    on(event, listener) {
      events.on(event, listener);
      return () => void events.off(event, listener);
    },
    refresh() {
      if (cluster.status === 'ready') cluster.refreshSlotsCache();
    },
    close() {
      isClosing = true;
      cluster.disconnect();
    },
  };

  function nodeOf(key: string): RedisNode {
    const name = cluster.slots[keySlot(key)]?.[0];
    if (name === undefined) return nobody;
    const node = known.get(name);
    if (node !== undefined) return node;
    // A command has just been sent on to a server that was not known.
    update();
    return known.get(name) ?? nobody;
  }

  function update(): void {
    const clients = new Map(cluster.nodes('master').map((client) => [nameOf(client), client]));
    const names = new Set<string | undefined>();
    for (let slot = 0; slot < slotsCount; slot++) names.add(cluster.slots[slot]?.[0]);
    const next: RedisNode[] = [];
    for (const name of names) {
      if (name === undefined) next.push(nobody);
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
    const node = { name, client, keyHere: keysOn(name) };
    known.set(name, node);
    // The library would connect with the first command, and that one would wait for it.
    if (client?.status === 'wait') client.connect().catch(() => {});
    return node;
  }

  /**
   * The library disconnects a server at once when it has no slots. It still owes replies when its last slot was just moved
   * away; and one that is given its first slot has none yet, but gets commands that ASK sends on.
   */
  function leaveGently(client: Redis): void {
    const disconnect = client.disconnect.bind(client);
    client.disconnect = (reconnect = false) => {
      const mayOweReplies = ['connecting', 'connect', 'ready'].includes(client.status);
      if (reconnect || isClosing || !mayOweReplies) disconnect(reconnect);
      else setTimeout(disconnect, bounds.storeSilenceMaxMs).unref();
    };
  }

  /** The library asks a server for the others over one more connection, and drops what goes wrong there. */
  function noteContactErrors(client: Redis): void {
    const duplicate = client.duplicate.bind(client);
    client.duplicate = (options) => {
      const contact = duplicate(options);
      contact.on('error', ({ message }) => {
        contactError = `${nameOf(client)}: ${message}`;
      });
      return contact;
    };
  }

  function keysOn(name: string): (base: string) => string {
    let number = 0;
    return (base) => {
      for (let tried = 0; tried < triedKeysMax; tried++) {
        const key = `${base}:${number}`;
        if (cluster.slots[keySlot(key)]?.[0] === name) return key;
        number = (number + 1) % triedKeysMax;
      }
      return base;
    };
  }
}

/**
 * Before a command that ASK sends on, the library sends ASKING and does not look at its reply. When the connection closes
 * before that, its promise is rejected with nobody to hear it, which would end the process.
 */
function ignoreLostAsking(client: Redis): void {
  const asking = client.asking.bind(client);
  client.asking = () => {
    const reply = asking();
    reply.catch(() => {});
    return reply;
  };
}

function addressOf(url: string): { host: string; port: number } {
  const { hostname, port } = new URL(url);
  return { host: hostname.replace(/^\[|\]$/g, ''), port: port === '' ? 6379 : Number(port) };
}

function nameOf({ options }: Redis): string {
  return `${options.host}:${options.port}`;
}
