import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Server, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { TLSSocket } from 'node:tls';
import { addressGroup, plainAddress } from '../address-group.ts';
import type { Certificate } from '../model.ts';
import { Shares } from '../structures/shares.ts';
import type { Bounds } from '../timeouts-and-sizes.ts';
import { createTlsFront, type TlsFrontOptions, tlsRequiredMessage } from '../tls/tls-front.ts';
import { type AdminResponse, errorResponse, rawResponse, writeResponse } from './admin-response.ts';

export interface AdminListener {
  /** The server to listen with. */
  readonly server: Server;
  /** As that of the public listener. */
  setCertificate(certificate: Certificate): void;
  /** Closes it with all its connections. */
  close(): void;
}

export interface AdminListenerOptions {
  /** Makes the response to a request. */
  readonly respond: (req: IncomingMessage, requestId: string) => Promise<AdminResponse>;
  /** Called with what `respond` throws. */
  readonly reportBug: (bug: unknown, requestId: string) => void;
  readonly bounds: TlsFrontOptions['bounds'] &
    Pick<
      Bounds,
      | 'adminConnectionsMax'
      | 'adminHeadersBytesMax'
      | 'adminTargetBytesMax'
      | 'adminLargeResponseBytes'
      | 'adminPieceBytes'
      | 'adminPiecePauseMs'
      | 'headersTimeoutMs'
      | 'requestTimeoutMs'
      | 'connectionsCheckingIntervalMs'
      | 'keepAliveTimeoutMs'
      | 'writeTimeoutMs'
    >;
  /** With it the listener speaks TLS and nothing else. */
  readonly certificate?: Certificate;
  readonly onFailedHandshake: (reason: string) => void;
}

/**
 * The listener for operators, apart from the public one and on loopback by default: sockets and their limits. What is
 * behind each path is in `admin-paths.ts`.
 */
export function createAdminListener(options: AdminListenerOptions): AdminListener {
  const { respond, reportBug, bounds, certificate, onFailedHandshake } = options;
  /** One client address gets half of the connections at most. */
  const connections = new Shares(bounds.adminConnectionsMax);
  /** Sockets on which a response is owed: what the parser then finds wrong with the next request has to wait. */
  const serving = new WeakSet<Duplex>();

  const http = createServer({
    // `checkSite` looks at Host. Node would write a response of its own.
    requireHostHeader: false,
    maxHeaderSize: bounds.adminHeadersBytesMax,
    headersTimeout: bounds.headersTimeoutMs,
    requestTimeout: bounds.requestTimeoutMs,
    connectionsCheckingInterval: bounds.connectionsCheckingIntervalMs,
    keepAliveTimeout: bounds.keepAliveTimeoutMs,
  });
  http.timeout = bounds.writeTimeoutMs;
  http.on('request', (req, res) => void serve(req, res, responseTo));
  http.on('checkExpectation', (req, res) => {
    void serve(req, res, () => Promise.resolve(errorResponse('expectation_failed')));
  });
  http.on('clientError', onClientError);
  const front =
    certificate && createTlsFront({ certificate, http, admit, onFailure: onFailedHandshake, bounds });
  if (front === undefined) http.on('connection', (socket) => void admit(socket));

  /** Counts a connection until it closes. @returns for whom; undefined when there is no room for it, and it is cut */
  function admit(socket: Socket): string | undefined {
    const group = addressGroup(plainAddress(socket.remoteAddress ?? ''));
    if (!connections.take(group, 1)) {
      socket.destroy();
      return undefined;
    }
    socket.once('close', () => connections.give(group, 1));
    return group;
  }

  async function serve(req: IncomingMessage, res: ServerResponse, make: typeof respond): Promise<void> {
    const requestId = randomUUID();
    const { socket } = req;
    serving.add(socket);
    res.once('close', () => serving.delete(socket));
    let response: AdminResponse;
    try {
      response = await make(req, requestId);
    } catch (bug) {
      reportBug(bug, requestId);
      response = errorResponse('internal');
    }
    // What is left of a body is not waited for.
    if (!req.complete) res.shouldKeepAlive = false;
    await writeResponse(res, requestId, response, bounds);
  }

  async function responseTo(req: IncomingMessage, requestId: string): Promise<AdminResponse> {
    if (lacksTls(req.socket)) return errorResponse('invalid_request', tlsRequiredMessage);
    if ((req.url ?? '').length > bounds.adminTargetBytesMax) return errorResponse('uri_too_long');
    return respond(req, requestId);
  }

  function onClientError(error: NodeJS.ErrnoException, socket: Duplex): void {
    const refusal = lacksTls(socket)
      ? errorResponse('invalid_request', tlsRequiredMessage)
      : parserRefusal(error);
    if (refusal === undefined || !socket.writable || serving.has(socket)) socket.destroy();
    else socket.end(rawResponse(randomUUID(), refusal), () => socket.destroy());
  }

  /** Whether a client speaks HTTP without TLS where the listener speaks TLS. */
  function lacksTls(socket: Duplex): boolean {
    return front !== undefined && !(socket instanceof TLSSocket);
  }

  return {
    server: front?.server ?? http,
    setCertificate: (next) => front?.setCertificate(next),
    close() {
      (front?.server ?? http).close();
      front?.destroyUnfinished();
      http.closeAllConnections();
    },
  };
}

/** The response to what Node's parser refuses; undefined when the connection itself has failed. */
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
