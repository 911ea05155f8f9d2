import { createServer, type IncomingMessage } from 'node:http';
import { type AddressInfo, Server as NetServer, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { addressGroup, plainAddress } from '../address-group.ts';
import type { Rejection } from '../errors.ts';
import { errors } from '../errors.ts';
import { ClientResponse } from '../respond/client-response.ts';
import { Shares } from '../shares.ts';
import type { Bounds } from '../timeouts-and-sizes.ts';
import { type Connection, createConnection } from './client-connection.ts';
import { listenOn } from './listen-on.ts';
import { isOtherProtocol, reportBodyFaults } from './parser-internals.ts';
import { isHead, type ParserError, parserRejection } from './parser-rejection.ts';

/**
 * What reaches the gateway: a request; a WebSocket handshake, whose `res` is for refusing it; or what Node's parser made
 * of neither, whose `res.rejection` says why.
 */
export type Arrival =
  | { readonly kind: 'request' | 'rejection'; readonly res: ClientResponse }
  | {
      readonly kind: 'upgrade';
      readonly res: ClientResponse;
      /** To be taken over, once `res` is detached from it. */
      readonly socket: Duplex;
      /** What came behind the handshake. */
      readonly head: Buffer;
    };

export interface ListenerHandlers {
  /**
   * Everything that arrives, one at a time on each connection; must not throw. A request without a body emits no event of
   * its own. For `Expect: 100-continue` no 100 has been sent: that is `res.writeContinue()`, right before the body is read.
   * An answer given before the body has arrived says `Connection: close`; what then still arrives is read within limits
   * and thrown away. A fault that the parser finds in a body is told by `res.rejection` and `res.onRejected`.
   */
  onArrival(arrival: Arrival): void;
  /**
   * A pure look at a request with an `Upgrade` field. When false the field is ignored (RFC 9110 §7.8) and the
   * connection closed after the answer.
   */
  wantsUpgrade(req: IncomingMessage): boolean;
  /** Hears of bugs in what has no exchange yet. */
  reportBug(bug: unknown): void;
}

export type ListenerBounds = Pick<
  Bounds,
  | 'headersBytesMax'
  | 'headersTimeoutMs'
  | 'requestTimeoutMs'
  | 'connectionsCheckingIntervalMs'
  | 'keepAliveTimeoutMs'
  | 'keepAliveAnnouncedSeconds'
  | 'writeTimeoutMs'
  | 'connectionsMax'
  | 'connectionsPerAddressMax'
  | 'pipelinedMax'
  | 'lingerBytesMax'
  | 'lingerTimeoutMs'
  | 'drainIdleGraceMs'
>;

export interface Listener {
  /** @throws when the address cannot be listened on */
  listen(address: { readonly host: string; readonly port: number }): Promise<AddressInfo>;
  /**
   * Stops accepting, lets answers in flight finish with `Connection: close`, and cuts what is left after `deadlineMs`.
   * An idle connection stays open for a moment, so that a request just on its way is served and not reset.
   */
  drain(options: { readonly deadlineMs: number }): Promise<void>;
  /** How many connections are open. */
  connections(): number;
}

export interface ListenerOptions {
  readonly handlers: ListenerHandlers;
  readonly bounds: ListenerBounds;
}

/** The edge towards clients: Node's HTTP server with every limit set and no answer of its own. */
export function createListener({ handlers, bounds }: ListenerOptions): Listener {
  const connections = new Map<Duplex, Connection>();
  /** By address as the address bucket tells them apart: IPv6 by /64. */
  const shares = new Shares(bounds.connectionsMax);
  let draining = false;

  const server = createServer<typeof IncomingMessage, typeof ClientResponse>({
    ServerResponse: ClientResponse,
    insecureHTTPParser: false,
    // The screen looks at Host itself: Node would answer bare.
    requireHostHeader: false,
    joinDuplicateHeaders: false,
    maxHeaderSize: bounds.headersBytesMax,
    headersTimeout: bounds.headersTimeoutMs,
    requestTimeout: bounds.requestTimeoutMs,
    connectionsCheckingInterval: bounds.connectionsCheckingIntervalMs,
    // Node would change a socket's timer twice a request for it, 3 % of the CPU of a refusal; see `onInactive`.
    keepAliveTimeout: 0,
    noDelay: true,
    // No stream machinery for a body that is not there: 4 % less CPU a refusal.
    optimizeEmptyRequests: true,
    shouldUpgradeCallback: mayUpgrade,
  });
  // Node drops fields above its own count silently; the screen counts and refuses.
  server.maxHeadersCount = 0;
  server.maxConnections = bounds.connectionsMax;
  server.timeout = Math.min(bounds.writeTimeoutMs, bounds.keepAliveTimeoutMs);

  server.on('connection', accept);
  server.on('request', receive);
  server.on('checkContinue', receive);
  server.on('checkExpectation', receive);
  server.on('upgrade', upgrade);
  server.on('connect', (_req, socket) => connections.get(socket)?.reject(tunnelRefused, { isHead: false }));
  server.on('clientError', onClientError);
  server.on('timeout', (socket) => connections.get(socket)?.onInactive());

  function accept(socket: Socket): void {
    const group = addressGroup(plainAddress(socket.remoteAddress ?? ''));
    // A reset may come in any state; an upgraded socket has lost Node's own listener.
    socket.on('error', () => socket.destroy());
    if (shares.heldBy(group) >= bounds.connectionsPerAddressMax || !shares.take(group, 1)) {
      socket.destroy();
      return;
    }
    const connection = createConnection({ socket, serve, bounds });
    if (draining) connection.drain();
    connections.set(socket, connection);
    socket.once('close', () => {
      connections.delete(socket);
      shares.give(group, 1);
    });
  }

  function serve(res: ClientResponse): void {
    handlers.onArrival({ kind: res.rejection === undefined ? 'request' : 'rejection', res });
  }

  function receive(req: IncomingMessage, res: ClientResponse): void {
    // Half an HTTP/2 preface reads as a request, and Node drops the connection of whatever is called PRI. An empty method
    // makes the screen answer 501.
    if (req.method === 'PRI') req.method = '';
    const connection = connections.get(req.socket);
    // An empty version makes the screen answer 400. Where that costs least: clients of RTSP begin with it.
    const isSuspect = req.httpVersion === '1.0' || connection?.isNew() === true;
    if (isSuspect && isOtherProtocol(req)) req.httpVersion = '';
    connection?.receive(res);
  }

  /**
   * Only for a plain GET that nothing is in flight before: the protocol after it could not be told from a body. One that
   * also expects a 100 would have to get that first (RFC 9110 §7.8).
   */
  function mayUpgrade(req: IncomingMessage): boolean {
    const { method, headers, httpVersion } = req;
    const isPlainGet =
      method === 'GET' &&
      httpVersion === '1.1' &&
      headers.expect === undefined &&
      headers['content-length'] === undefined &&
      headers['transfer-encoding'] === undefined;
    const connection = connections.get(req.socket);
    if (isPlainGet && connection?.isIdle() === true && isWanted(req)) return true;
    connection?.receiveLast();
    setImmediate(() => reportBodyFaults(req));
    return false;
  }

  /** Node's parser asks, and hears of no bug. */
  function isWanted(req: IncomingMessage): boolean {
    try {
      return handlers.wantsUpgrade(req);
    } catch (bug) {
      handlers.reportBug(bug);
      return false;
    }
  }

  function upgrade(req: IncomingMessage, socket: Duplex, head: Buffer): void {
    const res = new ClientResponse(req);
    connections.get(socket)?.handOver(res);
    handlers.onArrival({ kind: 'upgrade', res, socket, head });
  }

  function onClientError(error: ParserError, socket: Duplex): void {
    const connection = connections.get(socket);
    const rejection = rejectionOf(error);
    if (connection === undefined || rejection === undefined || connection.socket.bytesRead === 0) {
      // A failed connection, or one that timed out without a byte: there is nothing to answer.
      socket.destroy();
    } else if (error.code === 'HPE_CLOSED_CONNECTION') {
      // Bytes behind a request that said `Connection: close` itself; its answer is the last.
      connection.stopReceiving();
    } else connection.reject(rejection, { isHead: isHead(error) });
  }

  function rejectionOf(error: ParserError): Rejection | undefined {
    try {
      return parserRejection(error);
    } catch (bug) {
      handlers.reportBug(bug);
      return { code: 'internal', message: errors.internal.message };
    }
  }

  return {
    listen: (address) => listenOn(server, address),
    async drain({ deadlineMs }) {
      draining = true;
      const deadline = sleep(deadlineMs, undefined, { ref: false });
      // Not http's own close(), which cuts idle connections at once, and with them requests that are just arriving.
      const closed = new Promise<void>((resolve) => NetServer.prototype.close.call(server, () => resolve()));
      for (const connection of connections.values()) connection.drain();
      await Promise.race([closed, deadline, sleep(bounds.drainIdleGraceMs, undefined, { ref: false })]);
      for (const connection of connections.values()) if (connection.isIdle()) connection.close();
      await Promise.race([closed, deadline]);
      for (const { socket } of connections.values()) socket.destroy();
      await closed;
    },
    connections: () => connections.size,
  };
}

const tunnelRefused = {
  code: 'method_not_implemented',
  message: 'The gateway makes no tunnels: CONNECT is not offered.',
} as const;
