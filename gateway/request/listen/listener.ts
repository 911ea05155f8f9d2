import type { IncomingMessage } from 'node:http';
import { Server as NetServer, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { TLSSocket } from 'node:tls';
import { addressGroup, plainAddress } from '../../shared/addresses/address-group.ts';
import type { Rejection } from '../../shared/errors.ts';
import { errors } from '../../shared/errors.ts';
import { http } from '../../shared/http/node-http.ts';
import type { Certificate } from '../../shared/model.ts';
import { Shares } from '../../shared/structures/shares.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import { createTlsFront, tlsRequiredMessage } from '../../shared/tls/tls-front.ts';
import { ClientResponse } from '../respond/client-response.ts';
import { ClientConnection } from './client-connection.ts';
import { type ListenAt, type ListeningSocket, listenOn } from './listen-on.ts';
import {
  answerHalfClosed,
  gatherPieces,
  hidePreface,
  isOtherProtocol,
  readBeforeTimeouts,
  reportBodyFaults,
} from './node-patches.ts';
import { isHead, type ParserError, parserRejection } from './parser-rejection.ts';

/** A request, a WebSocket handshake, or input that Node's parser has refused. `res.rejection` is the reason for a refusal. */
export type Arrival =
  | { readonly kind: 'request' | 'rejection'; readonly res: ClientResponse }
  | {
      readonly kind: 'upgrade';
      /** The response to the handshake, either a 101 or an error. */
      readonly res: ClientResponse;
      /** The client's socket, which carries the WebSocket after the 101. */
      readonly socket: Duplex;
      /** The octets that the client has sent after the handshake request. */
      readonly head: Buffer;
    };

interface ListenerHandlers {
  /**
   * Called for each arrival, one at a time on each connection. Must not throw. A request without a body emits no events. For `Expect:
   * 100-continue`, call `res.writeContinue()` immediately before reading the body. A response before the end of the body closes the
   * connection. Before the close, the rest of the body is read up to a limit and discarded. If the parser finds a fault in a body, the
   * listener sets `res.rejection` and calls `res.onRejected`.
   */
  onArrival(arrival: Arrival): void;
  /**
   * Whether a request with an `Upgrade` field may change the protocol. If the function returns false, the field is ignored (RFC 9110 §7.8),
   * and the connection is closed after the response. The function must have no side effects.
   */
  wantsUpgrade(req: IncomingMessage): boolean;
  /** Called with an exception that occurs before an exchange exists. */
  reportBug(bug: unknown): void;
  /** Called with the reason for each TLS handshake that fails. */
  onFailedHandshake(reason: string): void;
}

export type Listener = ReturnType<typeof createListener>;

export interface ListenerOptions {
  readonly handlers: ListenerHandlers;
  readonly bounds: Bounds;
  /** The TLS certificate. With a certificate the listener accepts only TLS connections. */
  readonly certificate?: Certificate | undefined;
  readonly ticketSecret?: Uint8Array | undefined;
}

/** Creates the public HTTP server: Node's server with all its limits set and without Node's own error responses. */
export function createListener({ handlers, bounds, certificate, ticketSecret }: ListenerOptions) {
  const connections = new Map<Duplex, ClientConnection>();
  /** The number of connections of each client address. All IPv6 addresses of one /64 network count as one address. */
  const shares = new Shares(bounds.connectionsMax);
  let draining = false;

  const server = http.createServer<typeof IncomingMessage, typeof ClientResponse>({
    ServerResponse: ClientResponse,
    insecureHTTPParser: false,
    // `screen-fields.ts` checks Host, because Node would write its own error response.
    requireHostHeader: false,
    joinDuplicateHeaders: false,
    maxHeaderSize: bounds.headersBytesMax,
    headersTimeout: bounds.headersTimeoutMs,
    requestTimeout: bounds.requestTimeoutMs,
    connectionsCheckingInterval: bounds.connectionsCheckingIntervalMs,
    // `onInactive` closes idle connections. Node's own timer is set twice per request, which took 3 % of the CPU time of a refused request.
    keepAliveTimeout: 0,
    noDelay: true,
    // Requests without a body get no stream, which saves 4 % of the CPU time of a refused request.
    optimizeEmptyRequests: true,
    shouldUpgradeCallback: mayUpgrade,
  });
  // Node would silently drop header fields above its maximum. `screen-fields.ts` counts the fields and refuses a request with too many.
  server.maxHeadersCount = 0;
  server.timeout = Math.min(bounds.writeTimeoutMs, bounds.keepAliveTimeoutMs);
  readBeforeTimeouts(server);
  answerHalfClosed(server);

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
  // After a long pause of the process, this timer runs before sockets are read. `setImmediate` lets Node read pending octets first.
  server.on('timeout', (socket) => setImmediate(() => connections.get(socket)?.onInactive()));

  function accept(socket: Socket): void {
    if (admit(socket) === undefined) socket.destroy();
    else connect(socket);
  }

  /** Counts a TCP connection until it closes. @returns the address group of the client; undefined when the limit is reached */
  function admit(socket: Socket): string | undefined {
    const group = addressGroup(plainAddress(socket.remoteAddress ?? ''));
    if (shares.heldBy(group) >= bounds.connectionsPerAddressMax || !shares.take(group, 1)) return undefined;
    socket.once('close', () => shares.give(group, 1));
    return group;
  }

  function connect(socket: Socket): void {
    // The client can reset the connection in any state. This listener is needed because Node removes its own error listener from an
    // upgraded socket.
    socket.on('error', () => socket.destroy());
    const connection = new ClientConnection({ socket, serve, bounds });
    if (draining) connection.drain();
    connections.set(socket, connection);
    socket.once('end', () => connection.onHalfClosed());
    socket.once('close', () => connections.delete(socket));
  }

  function serve(res: ClientResponse): void {
    handlers.onArrival({ kind: res.rejection === undefined ? 'request' : 'rejection', res });
  }

  function receive(req: IncomingMessage, res: ClientResponse): void {
    if (lacksTls(req.socket)) res.reject(tlsRequired);
    hidePreface(req);
    const connection = connections.get(req.socket);
    // A client of another protocol, such as RTSP, uses the other protocol from its first request. The listener therefore checks the first
    // request of each connection. The listener also checks every HTTP/1.0 request.
    const isSuspect = req.httpVersion === '1.0' || connection?.isNew() === true;
    if (isSuspect && isOtherProtocol(req)) res.reject(otherProtocol);
    const { headers } = req;
    if (headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined)
      gatherPieces(req);
    connection?.receive(res);
  }

  /**
   * Whether the request may change the protocol. The request must be a GET without a body, because a body could be read as octets of the
   * new protocol. The connection must have no other unanswered request. The request must not expect a 100, because the 100 would have to
   * precede the 101 (RFC 9110 §7.8).
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

  /** Calls `wantsUpgrade` and reports its exceptions, because Node's parser would swallow an exception. */
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
      // There is no request to answer, because the connection failed, or because it timed out before an octet arrived.
      socket.destroy();
    } else if (error.code === 'HPE_CLOSED_CONNECTION') {
      // The client sent octets after a request with `Connection: close`. The connection ends after the response to this request.
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
    /** Accepts connections of an additional socket until `stop` is called. `stop` does not close open connections. */
    alsoAccept(socket: ListeningSocket): { stop(): void } {
      // These options are the same as the options with which node:http creates its own server.
      const further = new NetServer({ allowHalfOpen: true, noDelay: true }, (connection) =>
        listening.emit('connection', connection),
      );
      further.listen(socket);
      accepting.add(further);
      return { stop: () => NetServer.prototype.close.call(further, () => accepting.delete(further)) };
    },
    /** Replaces the certificate for later handshakes. Has no effect on a listener without TLS. */
    setCertificate: (next: Certificate) => front?.setCertificate(next),
    /**
     * Stops accepting connections. Requests in flight finish with `Connection: close`. Remaining connections are destroyed after
     * `deadlineMs`. Idle connections stay open for `drainIdleGraceMs`, so that a request that is just arriving is not reset.
     */
    async drain({
      deadlineMs,
      onCut,
    }: {
      readonly deadlineMs: number;
      /** Called before the remaining connections are destroyed. */
      readonly onCut?: (() => void) | undefined;
    }) {
      draining = true;
      const deadline = sleep(deadlineMs, undefined, { ref: false });
      // The `close` of node:http would destroy idle connections immediately, even if a request is just arriving.
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
      onCut?.();
      for (const { socket } of connections.values()) socket.destroy();
      await closed;
    },
    /** The number of open connections, without connections in a TLS handshake. */
    connections: () => connections.size,
  };
}

const tlsRequired = { code: 'invalid_request', message: tlsRequiredMessage } as const;

const otherProtocol = { code: 'invalid_request', message: 'The HTTP version must be 1.1 or 1.0.' } as const;

const tunnelRefused = {
  code: 'method_not_implemented',
  message: 'The gateway does not support CONNECT.',
} as const;
