import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { TLSSocket } from 'node:tls';
import {
  dropRequests,
  gatherPieces,
  readBeforeTimeouts,
  readInTurns,
} from '../../request/listen/node-patches.ts';
import { addressGroup, plainAddress } from '../../shared/addresses/address-group.ts';
import { http as nodeHttp } from '../../shared/http/node-http.ts';
import type { Certificate } from '../../shared/model.ts';
import { Pace } from '../../shared/structures/pace.ts';
import { Shares } from '../../shared/structures/shares.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import { createTlsFront, type TlsFrontOptions, tlsRequiredMessage } from '../../shared/tls/tls-front.ts';
import { type AdminResponse, errorResponse, rawResponse, writeResponse } from '../admin-response.ts';

export interface AdminListener {
  /** The TCP server, on which the caller calls `listen`. */
  readonly server: Server;
  /** Replaces the certificate, as on the public listener. */
  setCertificate(certificate: Certificate): void;
  /** Closes the listener and all its connections. */
  close(): void;
}

export interface AdminListenerOptions {
  readonly respond: (req: IncomingMessage, requestId: string) => Promise<AdminResponse>;
  /** Returns the name of the token in an `Authorization` field; undefined without a valid token. */
  readonly tokenOf: (authorization: string | undefined) => string | undefined;
  /** Called with an error that `respond` throws. */
  readonly reportBug: (bug: unknown, requestId: string) => void;
  readonly bounds: TlsFrontOptions['bounds'] & Bounds;
  /** Undefined without TLS. */
  readonly certificate?: Certificate;
  readonly onFailedHandshake: (reason: string) => void;
}

interface Connection {
  /** The connection's key in the map `connections`. */
  readonly ends: string;
  /** The client address under which this connection is counted. */
  readonly group: string;
  readonly socket: Socket;
  /** The name of the valid token in the last request; undefined without a valid token. */
  token: string | undefined;
  /** Drops received octets that are not parsed yet; undefined until the listener starts to read the connection. */
  dropOctets: (() => void) | undefined;
  /** The number of received requests that have no response yet. */
  unanswered: number;
  /** One function for each waiting request, in order. Each function starts its request. */
  readonly later: (() => void)[];
}

/**
 * The listener for operators, on loopback by default. `admin-paths.ts` lists its paths. Every client that reaches the
 * port may send requests, and the listener shares its event loop with customers' requests. The listener therefore
 * limits how fast it accepts connections, parses requests and sends responses. Client addresses take turns.
 *
 * A connection with a valid token waits only for other tokens, and is not replaced by a client without a token. A client without a token
 * therefore does not use up what the operators of its address need. The listener looks for a token in the first packet of a waiting
 * connection. With TLS, this packet is encrypted, so the token is known only after the first request.
 */
export function createAdminListener(options: AdminListenerOptions): AdminListener {
  const { respond, tokenOf, reportBug, bounds, certificate, onFailedHandshake } = options;
  /** A client address gets at most half of the connections. */
  const shares = new Shares(bounds.adminConnectionsMax);
  /** Open connections by the addresses of their two ends (`endsOf`), ordered by their last use. */
  const connections = new Map<string, Connection>();
  const arrivals = new Pace(bounds.adminConnectionsPerSecondMax, bounds.adminConnectionsAtOnceMax);
  const looks = new Pace(bounds.adminLooksPerSecondMax, bounds.adminLooksAtOnceMax);
  const turns = new Pace(bounds.adminTurnsPerSecondMax, bounds.adminTurnsAtOnceMax);

  const http = nodeHttp.createServer({
    // Node's own check of `Host` is off, because Node's response to a wrong `Host` would lack our error body.
    // `checkSite` checks `Host` instead.
    requireHostHeader: false,
    maxHeaderSize: bounds.adminHeadersBytesMax,
    headersTimeout: bounds.headersTimeoutMs,
    requestTimeout: bounds.requestTimeoutMs,
    connectionsCheckingInterval: bounds.connectionsCheckingIntervalMs,
    keepAliveTimeout: bounds.keepAliveTimeoutMs,
  });
  http.timeout = bounds.writeTimeoutMs;
  readBeforeTimeouts(http);
  http.on('request', (req, res) => receive(req, res, responseTo));
  http.on('checkExpectation', (req, res) => {
    receive(req, res, () => Promise.resolve(errorResponse('expectation_failed')));
  });
  http.on('clientError', onClientError);
  http.on('timeout', onInactive);
  http.prependListener('connection', (socket) => {
    const connection = connections.get(endsOf(socket));
    if (connection === undefined) return;
    connection.dropOctets = readInTurns(
      socket,
      { sliceBytes: bounds.adminSliceBytes, parsingMs: bounds.adminParsingMs },
      (read) => turns.take(laneOf(connection), read),
    );
  });
  const front =
    certificate &&
    createTlsFront({
      certificate,
      http,
      admit: (socket) => connections.get(endsOf(socket))?.group,
      onFailure: onFailedHandshake,
      bounds,
    });
  /** The HTTP or TLS server, which receives each admitted connection. */
  const receiver = front?.server ?? http;
  const server = createServer({ allowHalfOpen: true, noDelay: true, pauseOnConnect: true }, accept);
  // Node starts its check for slow requests at the event `listening`. `receiver` never listens, so `server` passes the
  // event on to `receiver`.
  server.on('listening', () => receiver.emit('listening'));

  /** Admits a connection. The listener serves the connection only when the limit on connections per second allows it. */
  function accept(socket: Socket): void {
    socket.on('error', () => socket.destroy());
    const connection = admit(socket);
    if (connection === undefined) {
      socket.destroy();
      return;
    }
    let isWaiting = true;
    const begin = () => {
      if (!isWaiting || socket.destroyed) return false;
      isWaiting = false;
      // The parser gets no octets while the stream has a `readable` listener.
      socket.off('readable', look);
      noteUse(connection);
      receiver.emit('connection', socket);
      if (front === undefined) socket.resume();
      return true;
    };
    /** Looks for a token in the first packet. */
    const look = () => {
      const packet: Buffer | null = socket.read();
      if (packet === null) return;
      socket.unshift(packet);
      connection.token = tokenOf(authorizationIn(packet.subarray(0, bounds.adminHeadersBytesMax)));
      if (connection.token !== undefined) arrivals.take(laneOf(connection), begin);
    };
    arrivals.take(connection.group, begin);
    if (!isWaiting || front !== undefined) return;
    looks.take(connection.group, () => {
      if (!isWaiting || socket.destroyed) return false;
      socket.once('readable', look);
      return true;
    });
  }

  /**
   * Counts a connection until it closes. At the limit, a new connection replaces the connection without a valid token that was unused for
   * the longest time, or else the connection that has been idle longest. The replaced connection belongs to the same address. If this address
   * has no connection, the replaced connection may belong to any address.
   *
   * @returns undefined at the limit without a connection to replace
   */
  function admit(socket: Socket): Connection | undefined {
    const group = addressGroup(plainAddress(socket.remoteAddress ?? ''));
    while (!shares.take(group, 1)) {
      const replaced = toReplace(shares.heldBy(group) > 0 ? group : undefined);
      if (replaced === undefined) return undefined;
      replaced.socket.destroy();
      release(replaced);
    }
    const ends = endsOf(socket);
    // A client can reset a connection and reuse its port before Node reports the end of the old connection.
    const before = connections.get(ends);
    if (before !== undefined) release(before);
    const connection = {
      ends,
      group,
      socket,
      token: undefined,
      dropOctets: undefined,
      unanswered: 0,
      later: [],
    };
    connections.set(ends, connection);
    socket.once('close', () => release(connection));
    return connection;
  }

  function toReplace(group: string | undefined): Connection | undefined {
    const candidates = () => connections.values().filter((one) => group === undefined || one.group === group);
    return (
      candidates().find(({ token }) => token === undefined) ??
      candidates().find(({ dropOctets, unanswered }) => dropOctets !== undefined && unanswered === 0)
    );
  }

  function release(connection: Connection): void {
    if (connections.get(connection.ends) !== connection) return;
    connections.delete(connection.ends);
    shares.give(connection.group, 1);
  }

  /** Serves a request when its client address has a turn. A request whose client has disconnected uses no turn. */
  function receive(req: IncomingMessage, res: ServerResponse, make: typeof respond): void {
    const { socket } = req;
    const connection = connections.get(endsOf(socket));
    if (connection === undefined) return;
    if (connection.unanswered === bounds.adminPipelinedMax) {
      dropRequests(socket);
      socket.destroy();
      return;
    }
    connection.unanswered += 1;
    connection.token = tokenOf(req.headers.authorization);
    gatherPieces(req);
    const begin = () =>
      turns.take(laneOf(connection), () => {
        if (!socket.destroyed) void serve(connection, req, res, make).then(() => answered(connection));
        return !socket.destroyed;
      });
    // Only one request of a connection waits for a turn, so pipelined requests delay only their own client.
    if (connection.unanswered === 1) begin();
    else connection.later.push(begin);
  }

  function answered(connection: Connection): void {
    connection.unanswered -= 1;
    noteUse(connection);
    connection.later.shift()?.();
  }

  function noteUse(connection: Connection): void {
    if (connections.get(connection.ends) !== connection) return;
    connections.delete(connection.ends);
    connections.set(connection.ends, connection);
  }

  async function serve(
    connection: Connection,
    req: IncomingMessage,
    res: ServerResponse,
    make: typeof respond,
  ): Promise<void> {
    const requestId = randomUUID();
    let response: AdminResponse;
    try {
      response = await make(req, requestId);
    } catch (bug) {
      reportBug(bug, requestId);
      response = errorResponse('internal');
    }
    // The connection closes after the response, because the listener does not read the rest of the body.
    if (!req.complete) {
      res.shouldKeepAlive = false;
      connection.dropOctets?.();
    }
    await writeResponse(res, requestId, response, bounds);
  }

  async function responseTo(req: IncomingMessage, requestId: string): Promise<AdminResponse> {
    if (lacksTls(req.socket)) return errorResponse('invalid_request', tlsRequiredMessage);
    if ((req.url ?? '').length > bounds.adminTargetBytesMax) return errorResponse('uri_too_long');
    const twice = singularFields.find((name) => (req.headersDistinct[name.toLowerCase()]?.length ?? 0) > 1);
    if (twice !== undefined) {
      return errorResponse('invalid_request', `The ${twice} header field must not occur twice.`);
    }
    return respond(req, requestId);
  }

  function onClientError(error: NodeJS.ErrnoException, socket: Duplex): void {
    const refusal = lacksTls(socket)
      ? errorResponse('invalid_request', tlsRequiredMessage)
      : parserRefusal(error);
    const connection = connections.get(endsOf(socket));
    // The error response must not precede the response to an earlier request.
    const owes = connection === undefined || connection.unanswered > 0 || socket.writableLength > 0;
    if (refusal === undefined || owes) socket.destroy();
    else {
      turns.take(connection.group, () => {
        if (socket.writable) socket.end(rawResponse(randomUUID(), refusal), () => socket.destroy());
        return socket.writable;
      });
    }
  }

  /**
   * Closes a connection without traffic. While a response is being made, the connection stays open, because the response has its own
   * timeout.
   */
  function onInactive(socket: Socket): void {
    const isAwaited = (connections.get(endsOf(socket))?.unanswered ?? 0) > 0 && socket.writableLength === 0;
    if (!isAwaited) socket.destroy();
  }

  function lacksTls(socket: Duplex): boolean {
    return front !== undefined && !(socket instanceof TLSSocket);
  }

  return {
    server,
    setCertificate: (next) => front?.setCertificate(next),
    close() {
      server.close();
      http.close();
      for (const { socket } of connections.values()) socket.destroy();
    },
  };
}

/**
 * Header fields that may occur only once. If a field occurs twice, Node uses the first, while a proxy in front of the
 * gateway may use the last.
 */
const singularFields = ['Host', 'Authorization', 'Content-Type'];

/** The addresses of both ends. A TLS socket and its TCP socket have the same key. */
function endsOf(socket: Duplex): string {
  const { remoteAddress, remotePort, localAddress } = socket as Socket;
  return `${remoteAddress} ${remotePort} ${localAddress}`;
}

/** Returns what takes turns: the token of a connection, or else its client address. */
function laneOf({ token, group }: Connection): string {
  return token === undefined ? group : `token ${token}`;
}

/** Returns the `Authorization` field in the first packet of a connection. The rest of the head may follow in another packet. */
function authorizationIn(packet: Buffer): string | undefined {
  const [head = ''] = packet.toString('latin1').split('\r\n\r\n', 1);
  return /\r\nauthorization:[ \t]*([^\r\n]*)\r\n/i.exec(`${head}\r\n`)?.[1];
}

/** The response to a request that Node's parser refuses; undefined when the connection itself has failed. */
function parserRefusal({ code = '' }: NodeJS.ErrnoException): AdminResponse | undefined {
  switch (code) {
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return errorResponse('request_timeout');
    case 'HPE_HEADER_OVERFLOW':
      return errorResponse('headers_too_large');
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return errorResponse('payload_too_large');
    default:
      return code.startsWith('HPE_') ? errorResponse('invalid_request') : undefined;
  }
}
