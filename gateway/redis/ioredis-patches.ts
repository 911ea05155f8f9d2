import { createRequire } from 'node:module';
import type { Duplex } from 'node:stream';
import type * as Ioredis from 'ioredis';
import type { Redis } from 'ioredis';

/**
 * This file contains all changes to ioredis's own objects. ioredis has no options that have the same effects.
 * `/test/redis/ioredis-patches.test.ts` fails when a release of ioredis no longer has one of the changed members.
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

/** The undocumented members of ioredis clients that this file changes. */
interface Client {
  readonly connector: { connect: (onSentinelError: unknown) => Promise<Duplex> };
  setStatus(status: string, detail?: unknown): void;
}

const require = createRequire(import.meta.url);
let loaded: typeof Ioredis | undefined;

/** Loads ioredis with the first connection. A gateway without Redis therefore saves 60 ms of CPU time at its start, and 8 MB of heap. */
export function loadIoredis(): typeof Ioredis {
  if (loaded === undefined) {
    loaded = require('ioredis') as typeof Ioredis;
    closeFailedConnections(loaded.Redis.prototype as unknown as Client);
  }
  return loaded;
}

/**
 * Makes every client close its connection after an error. ioredis handles only the first error of a connection, and a second error
 * would end the process. A second error is possible, because Node keeps a TLS connection open after a broken record. A TLS alert of the
 * server can also arrive together with a certificate that is not valid. The function changes the prototype, because ioredis creates some
 * clients itself. Each client gets its connections from its `connector`.
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
 * Ignores a lost reply to ASKING. ioredis sends ASKING before a command that ASK redirects, and does not handle the reply to ASKING. If the
 * connection closes before this reply arrives, the unhandled rejection would end the process.
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
 * Delays the disconnection from a server without slots. ioredis would disconnect immediately. But a server whose last slot has just moved
 * may still send replies. ASK already redirects commands to a server that is about to receive its first slot.
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

/** Reports errors of the separate connections over which ioredis reads the slots. ioredis itself ignores these errors. */
export function onContactError(client: Redis, listener: (message: string) => void): void {
  const duplicate = client.duplicate.bind(client);
  client.duplicate = (options) => {
    const contact = duplicate(options);
    contact.on('error', ({ message }) => listener(message));
    return contact;
  };
}

/** The undocumented members of a client with Sentinels that this file changes. */
interface SentinelConnector {
  connectToSentinel(...args: unknown[]): Redis;
  resolve(endpoint: unknown): Promise<{ readonly host: string; readonly port: number } | null>;
}

/**
 * Changes how a client handles its Sentinels. ioredis prints all errors of connections to Sentinels, although one Sentinel that
 * replies is enough. This function collects the errors instead of printing them.
 *
 * ioredis also disconnects from the master at every announcement of a master. After a failover each Sentinel announces the same new
 * master. The last of these announcements may arrive seconds after the first. A Sentinel also announces masters with other names. This
 * function ignores repeated announcements, and announcements of masters with other names.
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
  // The message of a failed connection says only that the connection is closed, so the earlier error takes precedence.
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
