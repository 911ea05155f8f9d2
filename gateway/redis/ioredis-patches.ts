import { Redis } from 'ioredis';

/**
 * All changes of ioredis's own objects, in one place. The library has no option for these effects.
 * `/test/redis/ioredis-patches.test.ts` fails when a release of the library no longer has the members.
 *
 * | changed | why |
 * |---|---|
 * | `setStatus` of every client | a second error of a TLS connection does not end the process |
 * | `asking` of a server of a Cluster | a lost reply to ASKING does not end the process |
 * | `disconnect` of a server of a Cluster | a server without slots still delivers the replies that it owes |
 * | `duplicate` of a server of a Cluster | the reason why a seed node cannot be reached is known |
 * | `connector.resolve` of a client of Sentinels | the current master is known |
 * | `connector.connectToSentinel` | errors of these connections are collected instead of printed |
 * | `emit` of a connection to a Sentinel | repeated announcements of the current master are ignored |
 */

/** The undocumented part of every client that is used here. */
interface Client extends Pick<Redis, 'stream'> {
  setStatus(status: string, detail?: unknown): void;
}

/**
 * Closes connections that fail. ioredis handles only the first error of a connection. But Node does not close a TLS connection
 * that receives a broken record, and a second error would end the process. ioredis creates some clients itself, so this function
 * changes their prototype.
 */
export function closeFailedConnections(): void {
  const prototype = Redis.prototype as unknown as Client;
  const { setStatus } = prototype;
  prototype.setStatus = function (this: Client, status, detail) {
    const { stream } = this;
    if (status === 'connect') stream.on('error', () => stream.destroy());
    setStatus.call(this, status, detail);
  };
}

/**
 * ioredis sends ASKING ahead of a command that ASK redirects, and does not handle its reply. If the connection closes first,
 * the unhandled rejection would end the process.
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
 * ioredis disconnects a server at once when it has no slots. A server whose last slot has just moved away still owes replies,
 * and a server that is about to receive its first slot gets commands that ASK redirects.
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

/** ioredis asks a server for the slots over a further connection and ignores the errors of that connection. */
export function onContactError(client: Redis, listener: (message: string) => void): void {
  const duplicate = client.duplicate.bind(client);
  client.duplicate = (options) => {
    const contact = duplicate(options);
    contact.on('error', ({ message }) => listener(message));
    return contact;
  };
}

/** The undocumented part of a client of Sentinels that is used here. */
interface SentinelConnector {
  connectToSentinel(...args: unknown[]): Redis;
  resolve(endpoint: unknown): Promise<{ readonly host: string; readonly port: number } | null>;
}

/**
 * ioredis prints the errors of its connections to Sentinels, although a Sentinel that is away is no fault while another
 * replies. It also leaves the master at every announcement. But after a failover each Sentinel announces the new master, up to
 * seconds later, and a Sentinel may announce masters of other names.
 *
 * @returns why no Sentinel has named the master, according to the Sentinel that was asked last
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
  // For a connection that failed, the message is only that it is closed.
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
