import { createRequire } from 'node:module';
import type { Duplex } from 'node:stream';
import type * as Ioredis from 'ioredis';
import type { Redis } from 'ioredis';

/**
 * All changes to ioredis's own objects, for which it has no options. `/test/redis/ioredis-patches.test.ts` fails when a release of ioredis
 * no longer has one of the changed members.
 *
 * | changed member | effect |
 * |---|---|
 * | `connector.connect` of every client, at `setStatus` | a second error of a TLS connection does not end the process |
 * | `asking` of a Cluster server's client | a lost reply to ASKING does not end the process |
 * | `disconnect` of a Cluster server's client | the replies of a server that has lost its slots still arrive |
 * | `duplicate` of a Cluster server's client | the gateway can report why a seed node is unreachable |
 * | `connector.resolve` of a client with Sentinels | the gateway knows the current master |
 * | `connector.connectToSentinel` | errors of connections to Sentinels are collected instead of printed |
 * | `emit` of a connection to a Sentinel | repeated announcements of the current master are ignored |
 */

/** Undocumented. */
interface Client {
  readonly connector: { connect: (onSentinelError: unknown) => Promise<Duplex> };
  setStatus(status: string, detail?: unknown): void;
}

const require = createRequire(import.meta.url);
let loaded: typeof Ioredis | undefined;

/** With the first connection. A gateway without Redis saves 60 ms of CPU time at its start, and 8 MB of heap. */
export function loadIoredis(): typeof Ioredis {
  if (loaded === undefined) {
    loaded = require('ioredis') as typeof Ioredis;
    closeFailedConnections(loaded.Redis.prototype as unknown as Client);
  }
  return loaded;
}

/**
 * ioredis handles only the first error of a connection, and a second error would end the process. Node keeps a TLS connection open after a
 * broken record, and a TLS alert of the server can arrive together with an invalid certificate. A connection is therefore closed after its
 * first error. The prototype is changed, because ioredis creates some clients itself; each gets its connections from its `connector`.
 */
function closeFailedConnections(prototype: Client): void {
  const { setStatus } = prototype;
  const changed = new WeakSet<Client['connector']>();
  prototype.setStatus = function (this: Client, status, detail) {
    const { connector } = this;
    if (status === 'connecting' && !changed.has(connector)) {
      changed.add(connector);
      const connect = connector.connect.bind(connector);
      connector.connect = async (onSentinelError) => {
        const stream = await connect(onSentinelError);
        return stream.on('error', () => stream.destroy());
      };
    }
    setStatus.call(this, status, detail);
  };
}

/**
 * ioredis sends ASKING before a command that ASK redirects, and does not handle its reply. If the connection closes first, the unhandled
 * rejection would end the process.
 */
export function ignoreLostAsking(client: Redis): void {
  const asking = client.asking.bind(client);
  client.asking = () => {
    const reply = asking();
    reply.catch(() => {});
    return reply;
  };
}

/**
 * Delays the disconnection from a server without slots. A server whose last slot has just moved may still send replies, and ASK redirects
 * commands to a server that is about to receive its first slot.
 */
export function leaveGently(
  client: Redis,
  { graceMs, isClosing }: { readonly graceMs: number; readonly isClosing: () => boolean },
): void {
  const disconnect = client.disconnect.bind(client);
  client.disconnect = (reconnect = false) => {
    const mayOweReplies = ['connecting', 'connect', 'ready'].includes(client.status);
    if (reconnect || isClosing() || !mayOweReplies) disconnect(reconnect);
    else setTimeout(disconnect, graceMs).unref();
  };
}

/** ioredis ignores errors of the separate connections over which it reads the slots. */
export function onContactError(client: Redis, listener: (message: string) => void): void {
  const duplicate = client.duplicate.bind(client);
  client.duplicate = (options) => {
    const contact = duplicate(options);
    contact.on('error', ({ message }) => listener(message));
    return contact;
  };
}

/** Undocumented. */
interface SentinelConnector {
  connectToSentinel(...args: unknown[]): Redis;
  resolve(endpoint: unknown): Promise<{ readonly host: string; readonly port: number } | null>;
}

/**
 * Collects the errors of connections to Sentinels, which ioredis would print although one Sentinel that replies is enough.
 *
 * ioredis also disconnects from the master at every announcement of a master. After a failover each Sentinel announces the same new master,
 * the last Sentinel seconds after the first. A Sentinel also announces masters with other names. These announcements are ignored.
 *
 * @returns a function that returns the last Sentinel's error; undefined when the client is connected
 */
export function watchSentinels(client: Redis, name: string): () => string | undefined {
  const { connector } = client as unknown as { connector: SentinelConnector };
  const connectToOne = connector.connectToSentinel.bind(connector);
  const resolve = connector.resolve.bind(connector);
  let because: string | undefined;
  let contactError: string | undefined;
  let master: string | undefined;
  connector.resolve = async (endpoint) => {
    const found = await resolve(endpoint);
    if (found !== null) master = `${found.host} ${found.port}`;
    return found;
  };
  connector.connectToSentinel = (...args) => {
    const sentinel = connectToOne(...args);
    const { host, port } = sentinel.options;
    contactError = undefined;
    sentinel.on('error', ({ message }) => {
      contactError = `Sentinel ${host}:${port}: ${message}`;
    });
    const emit = sentinel.emit.bind(sentinel);
    sentinel.emit = (event, ...details) => {
      if (event === 'message' && !isAnotherMaster(String(details[1]))) return false;
      return emit(event, ...details);
    };
    return sentinel;
  };
  // The message of a failed connection says only that it is closed, so the earlier error takes precedence.
  client.on('sentinelError', ({ message }: Error) => {
    because = contactError ?? message;
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
