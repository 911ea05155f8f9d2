import { createServer, type IncomingMessage } from 'node:http';
import { Server as NetServer, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { TLSSocket } from 'node:tls';
import { addressGroup, plainAddress } from '../../shared/address-group.ts';
import type { Rejection } from '../../shared/errors.ts';
import { errors } from '../../shared/errors.ts';
import type { Certificate } from '../../shared/model.ts';
import { Shares } from '../../shared/structures/shares.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import { createTlsFront, tlsRequiredMessage } from '../../shared/tls/tls-front.ts';
import { ClientResponse } from '../respond/client-response.ts';
import { ClientConnection } from './client-connection.ts';
import { type ListenAt, type ListeningSocket, listenOn } from './listen-on.ts';
import { gatherPieces, hidePreface, isOtherProtocol, reportBodyFaults } from './node-patches.ts';
import { isHead, type ParserError, parserRejection } from './parser-rejection.ts';

/** A request, a WebSocket handshake, or input that Node's parser has refused: `res.rejection` is the reason. */
export type Arrival =
  | { readonly kind: 'request' | 'rejection'; readonly res: ClientResponse }
  | {
      readonly kind: 'upgrade';
      /** For every response to the handshake, including the 101. */
      readonly res: ClientResponse;
      /** Carries the other protocol after the 101. */
      readonly socket: Duplex;
      /** The octets that the client has sent behind the handshake. */
      readonly head: Buffer;
    };

export interface ListenerHandlers {
  /**
   * Called for everything that arrives, one at a time on each connection. Must not throw. A request without a body emits no
   * events. For `Expect: 100-continue`, call `res.writeContinue()` right before reading the body. A response before the end of the
   * body closes the connection; the rest of the body is read within bounds and discarded. If the parser finds a fault in a body,
   * it sets `res.rejection` and calls `res.onRejected`.
   */
  onArrival(arrival: Arrival): void;
  /**
   * Whether a request with an `Upgrade` field may change the protocol. Otherwise the field is ignored (RFC 9110 §7.8), and the
   * connection is closed after the response. Must have no effects.
   */
  wantsUpgrade(req: IncomingMessage): boolean;
  /** Called with an exception that belongs to no exchange yet. */
  reportBug(bug: unknown): void;
  /** Called with the reason for each TLS handshake that fails. */
  onFailedHandshake(reason: string): void;
}

export type Listener = ReturnType<typeof createListener>;

export interface ListenerOptions {
  readonly handlers: ListenerHandlers;
  readonly bounds: Bounds;
  /** If defined, the listener speaks only TLS. */
  readonly certificate?: Certificate | undefined;
  readonly ticketSecret?: Uint8Array | undefined;
}

/** The gateway's side towards clients: Node's HTTP server with every limit set and no response of its own. */
export function createListener({ handlers, bounds, certificate, ticketSecret }: ListenerOptions) {
  const connections = new Map<Duplex, ClientConnection>();
  /** The connections of each client address. IPv6 addresses count by their /64. */
  const shares = new Shares(bounds.connectionsMax);
  let draining = false;

  const server = createServer<typeof IncomingMessage, typeof ClientResponse>({
    ServerResponse: ClientResponse,
    insecureHTTPParser: false,
    // The screen checks Host. Node would write its own response.
    requireHostHeader: false,
    joinDuplicateHeaders: false,
    maxHeaderSize: bounds.headersBytesMax,
    headersTimeout: bounds.headersTimeoutMs,
    requestTimeout: bounds.requestTimeoutMs,
    connectionsCheckingInterval: bounds.connectionsCheckingIntervalMs,
    // `onInactive` closes idle connections instead. Node would set its timer twice a request: 3 % of the CPU of a refusal.
    keepAliveTimeout: 0,
    noDelay: true,
    // Requests without a body get no stream: 4 % less CPU for a refusal.
    optimizeEmptyRequests: true,
    shouldUpgradeCallback: mayUpgrade,
  });
  // Node drops fields beyond its own maximum silently. The screen counts and refuses them.
  server.maxHeadersCount = 0;
  server.timeout = Math.min(bounds.writeTimeoutMs, bounds.keepAliveTimeoutMs);

  const front =
    certificate &&
    createTlsFront({
      certificate,
      http: server,
      admit,
      ticketSecret,
      onFailure: handlers.onFailedHandshake,
      bounds,
    });
  const listening: NetServer = front?.server ?? server;
  listening.maxConnections = bounds.connectionsMax;
  /** The servers that accept connections. */
  const accepting = new Set([listening]);

  server.on('connection', front === undefined ? accept : connect);
  server.on('request', receive);
  server.on('checkContinue', receive);
  server.on('checkExpectation', receive);
  server.on('upgrade', upgrade);
  server.on('connect', (_req, socket) => {
    connections.get(socket)?.reject(lacksTls(socket) ? tlsRequired : tunnelRefused, { isHead: false });
  });
  server.on('clientError', onClientError);
  server.on('timeout', (socket) => connections.get(socket)?.onInactive());

  function accept(socket: Socket): void {
    if (admit(socket) === undefined) socket.destroy();
    else connect(socket);
  }

  /** Counts a TCP connection until it closes. @returns its holder; undefined when there is no room */
  function admit(socket: Socket): string | undefined {
    const group = addressGroup(plainAddress(socket.remoteAddress ?? ''));
    if (shares.heldBy(group) >= bounds.connectionsPerAddressMax || !shares.take(group, 1)) return undefined;
    socket.once('close', () => shares.give(group, 1));
    return group;
  }

  function connect(socket: Socket): void {
    // A reset may come in any state. Node has removed its own listener from an upgraded socket.
    socket.on('error', () => socket.destroy());
    const connection = new ClientConnection({ socket, serve, bounds });
    if (draining) connection.drain();
    connections.set(socket, connection);
    socket.once('close', () => connections.delete(socket));
  }

  function serve(res: ClientResponse): void {
    handlers.onArrival({ kind: res.rejection === undefined ? 'request' : 'rejection', res });
  }

  function receive(req: IncomingMessage, res: ClientResponse): void {
    if (lacksTls(req.socket)) res.reject(tlsRequired);
    hidePreface(req);
    const connection = connections.get(req.socket);
    // Another protocol would begin with the connection, so only HTTP/1.0 and the first request are examined.
    const isSuspect = req.httpVersion === '1.0' || connection?.isNew() === true;
    if (isSuspect && isOtherProtocol(req)) res.reject(otherProtocol);
    const { headers } = req;
    if (headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined)
      gatherPieces(req);
    connection?.receive(res);
  }

  /**
   * Whether the request may change the protocol: a GET without a body, while no other request of its connection is served.
   * Otherwise a body could be taken for the other protocol. A request that expects a 100 would have to get it first
   * (RFC 9110 §7.8).
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
    if (lacksTls(req.socket)) return false;
    if (isPlainGet && connection?.isIdle() === true && isWanted(req)) return true;
    connection?.receiveLast();
    setImmediate(() => reportBodyFaults(req));
    return false;
  }

  /** Node's parser calls this function and would lose an exception. */
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
    const rejection = lacksTls(socket) ? tlsRequired : rejectionOf(error);
    if (connection === undefined || rejection === undefined || connection.socket.bytesRead === 0) {
      // The connection failed, or it timed out before an octet arrived. There is no request to answer.
      socket.destroy();
    } else if (error.code === 'HPE_CLOSED_CONNECTION') {
      // Octets behind a request with `Connection: close`, whose response is the last.
      connection.stopReceiving();
    } else connection.reject(rejection, { isHead: isHead(error) });
  }

  /** Whether the client speaks cleartext HTTP to a TLS listener. */
  function lacksTls(socket: Duplex): boolean {
    return front !== undefined && !(socket instanceof TLSSocket);
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
    /** @throws when the address cannot be listened on */
    listen: (address: ListenAt) => listenOn(listening, address),
    /** Also accepts connections of a further socket until `stop` is called. Open connections then stay open. */
    alsoAccept(socket: ListeningSocket): { stop(): void } {
      // The options with which node:http creates its own server.
      const further = new NetServer({ allowHalfOpen: true, noDelay: true }, (connection) =>
        listening.emit('connection', connection),
      );
      further.listen(socket);
      accepting.add(further);
      return { stop: () => NetServer.prototype.close.call(further, () => accepting.delete(further)) };
    },
    /** Presents another certificate in later handshakes. No effect on a listener without TLS. */
    setCertificate: (next: Certificate) => front?.setCertificate(next),
    /**
     * Stops accepting connections, lets requests in flight finish with `Connection: close`, and destroys the rest after
     * `deadlineMs`. Idle connections stay open for `drainIdleGraceMs`, so that a request that is just arriving is not reset.
     */
    async drain({ deadlineMs }: { readonly deadlineMs: number }) {
      draining = true;
      const deadline = sleep(deadlineMs, undefined, { ref: false });
      // The close() of node:http would destroy idle connections at once, with requests that are just arriving.
      const closed = Promise.all(
        [...accepting].map(
          (server) => new Promise<void>((resolve) => NetServer.prototype.close.call(server, () => resolve())),
        ),
      );
      for (const connection of connections.values()) connection.drain();
      await Promise.race([closed, deadline, sleep(bounds.drainIdleGraceMs, undefined, { ref: false })]);
      for (const connection of connections.values()) connection.closeWhenIdle();
      front?.destroyUnfinished();
      await Promise.race([closed, deadline]);
      for (const { socket } of connections.values()) socket.destroy();
      await closed;
    },
    /** The number of open connections, not counting those in a TLS handshake. */
    connections: () => connections.size,
  };
}

const tlsRequired = { code: 'invalid_request', message: tlsRequiredMessage } as const;

const otherProtocol = { code: 'invalid_request', message: 'The HTTP version must be 1.1 or 1.0.' } as const;

const tunnelRefused = {
  code: 'method_not_implemented',
  message: 'The gateway does not support CONNECT.',
} as const;
