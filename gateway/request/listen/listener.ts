import { createServer, type IncomingMessage } from 'node:http';
import { type AddressInfo, Server as NetServer, type Socket } from 'node:net';
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
import { type Connection, createConnection } from './client-connection.ts';
import { type ListenAt, type ListeningSocket, listenOn } from './listen-on.ts';
import { gatherPieces, hidePreface, isOtherProtocol, reportBodyFaults } from './node-patches.ts';
import { isHead, type ParserError, parserRejection } from './parser-rejection.ts';

/**
 * What arrives at the gateway: a request, a WebSocket handshake, or something that Node's parser has refused. Of a
 * rejection `res.rejection` says why.
 */
export type Arrival =
  | { readonly kind: 'request' | 'rejection'; readonly res: ClientResponse }
  | {
      readonly kind: 'upgrade';
      /** For every response to the handshake, the 101 included. */
      readonly res: ClientResponse;
      /** Carries the other protocol after the 101. */
      readonly socket: Duplex;
      /** The bytes that the client has sent behind the handshake. */
      readonly head: Buffer;
    };

export interface ListenerHandlers {
  /**
   * Called for everything that arrives, one at a time on each connection; must not throw. A request without a body emits no
   * events. For `Expect: 100-continue` no 100 has been sent yet: call `res.writeContinue()` right before reading the body.
   * A response that is given before the body is complete closes the connection; the rest of the body is read within bounds
   * and discarded. A fault that the parser finds in a body is reported by `res.rejection` and `res.onRejected`.
   */
  onArrival(arrival: Arrival): void;
  /**
   * Whether a request with an `Upgrade` field may change the protocol. If not, the field is ignored (RFC 9110 §7.8) and the
   * connection is closed after the response. Must have no effects.
   */
  wantsUpgrade(req: IncomingMessage): boolean;
  /** Called with an exception that belongs to no exchange yet. */
  reportBug(bug: unknown): void;
  /** Called with the reason for each TLS handshake that fails. */
  onFailedHandshake(reason: string): void;
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
  | 'tlsHandshakeTimeoutMs'
>;

export interface Listener {
  /** @throws when the address cannot be listened on */
  listen(address: ListenAt): Promise<AddressInfo>;
  /** Accepts connections of a further socket, until it is told to stop; those connections then stay. */
  alsoAccept(socket: ListeningSocket): { stop(): void };
  /**
   * Stops accepting connections, lets requests in flight finish with `Connection: close`, and destroys what is left after
   * `deadlineMs`. An idle connection stays open for `drainIdleGraceMs`, so that a request that is just arriving is served
   * and not reset.
   */
  drain(options: { readonly deadlineMs: number }): Promise<void>;
  /** Presents another certificate in handshakes from now on. Without effect on a listener that does not speak TLS. */
  setCertificate(certificate: Certificate): void;
  /** How many connections are open, those in a TLS handshake apart. */
  connections(): number;
}

export interface ListenerOptions {
  readonly handlers: ListenerHandlers;
  readonly bounds: ListenerBounds;
  /** With it the listener speaks TLS and nothing else. */
  readonly certificate?: Certificate;
  readonly ticketSecret?: Uint8Array | undefined;
}

/** The gateway's side towards clients: Node's HTTP server with every limit set and no response of its own. */
export function createListener({ handlers, bounds, certificate, ticketSecret }: ListenerOptions): Listener {
  const connections = new Map<Duplex, Connection>();
  /** Connections of each client address; IPv6 addresses count by their /64. */
  const shares = new Shares(bounds.connectionsMax);
  let draining = false;

  const server = createServer<typeof IncomingMessage, typeof ClientResponse>({
    ServerResponse: ClientResponse,
    insecureHTTPParser: false,
    // The screen checks Host. Node would write a response of its own.
    requireHostHeader: false,
    joinDuplicateHeaders: false,
    maxHeaderSize: bounds.headersBytesMax,
    headersTimeout: bounds.headersTimeoutMs,
    requestTimeout: bounds.requestTimeoutMs,
    connectionsCheckingInterval: bounds.connectionsCheckingIntervalMs,
    // `onInactive` closes idle connections instead: Node would set the timer twice a request, 3 % of the CPU of a refusal.
    keepAliveTimeout: 0,
    noDelay: true,
    // Requests without a body get no stream: 4 % less CPU a refusal.
    optimizeEmptyRequests: true,
    shouldUpgradeCallback: mayUpgrade,
  });
  // Above its own maximum Node drops fields silently; the screen counts them and refuses.
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
  /** All that accept connections, each with those that it has accepted. */
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

  /** Counts a TCP connection until it closes. @returns for whom; undefined when there is no room for it */
  function admit(socket: Socket): string | undefined {
    const group = addressGroup(plainAddress(socket.remoteAddress ?? ''));
    if (shares.heldBy(group) >= bounds.connectionsPerAddressMax || !shares.take(group, 1)) return undefined;
    socket.once('close', () => shares.give(group, 1));
    return group;
  }

  function connect(socket: Socket): void {
    // A reset may come in any state, and Node has removed its own listener from an upgraded socket.
    socket.on('error', () => socket.destroy());
    const connection = createConnection({ socket, serve, bounds });
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
    // A client of another protocol begins with it, so only HTTP/1.0 and the first request of a connection are examined.
    const isSuspect = req.httpVersion === '1.0' || connection?.isNew() === true;
    if (isSuspect && isOtherProtocol(req)) res.reject(otherProtocol);
    const { headers } = req;
    if (headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined)
      gatherPieces(req);
    connection?.receive(res);
  }

  /**
   * Only a GET without a body may, and only while no other request of its connection is being served: the other protocol
   * could not be told from a body. A request that also expects a 100 would have to get that first (RFC 9110 §7.8).
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

  /** Node's parser calls it: an exception would be lost there. */
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
      // The connection failed, or it timed out before a byte arrived: there is nothing to answer.
      socket.destroy();
    } else if (error.code === 'HPE_CLOSED_CONNECTION') {
      // Bytes behind a request with `Connection: close`: the response to that request is the last.
      connection.stopReceiving();
    } else connection.reject(rejection, { isHead: isHead(error) });
  }

  /** Whether a client speaks HTTP without TLS where the listener speaks TLS. */
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
    listen: (address) => listenOn(listening, address),
    alsoAccept(socket) {
      // As node:http creates its own.
      const further = new NetServer({ allowHalfOpen: true, noDelay: true }, (connection) =>
        listening.emit('connection', connection),
      );
      further.listen(socket);
      accepting.add(further);
      return { stop: () => NetServer.prototype.close.call(further, () => accepting.delete(further)) };
    },
    setCertificate: (next) => front?.setCertificate(next),
    async drain({ deadlineMs }) {
      draining = true;
      const deadline = sleep(deadlineMs, undefined, { ref: false });
      // Not the close() of node:http: that destroys idle connections at once, and requests that are just arriving with them.
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
    connections: () => connections.size,
  };
}

const tlsRequired = { code: 'invalid_request', message: tlsRequiredMessage } as const;

const otherProtocol = { code: 'invalid_request', message: 'The HTTP version must be 1.1 or 1.0.' } as const;

const tunnelRefused = {
  code: 'method_not_implemented',
  message: 'The gateway makes no tunnels: CONNECT is not offered.',
} as const;
