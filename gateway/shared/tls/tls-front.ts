import { createServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer, type TLSSocket } from 'node:tls';
import type { Certificate } from '../model.ts';
import { FairQueue } from '../structures/fair-queue.ts';
import type { Bounds } from '../timeouts-and-sizes.ts';
import { secureContextOptions, ticketKeysOf } from './secure-context.ts';

export interface TlsFrontOptions {
  readonly certificate: Certificate;
  /**
   * A server of node:http that does not listen itself. The server receives each TLS socket after the handshake. The server also receives
   * each socket with cleartext HTTP, and must refuse the requests of this socket.
   */
  readonly http: Server;
  /** Returns the client ("holder") of a new TCP connection; undefined when too many connections are open. */
  readonly admit: (socket: Socket) => string | undefined;
  /** The secret that all processes on one address share, so that each process can resume the TLS sessions of the other processes. */
  readonly ticketSecret?: Uint8Array | undefined;
  /** Called with the reason when a handshake fails after the client has sent at least one octet. */
  readonly onFailure: (reason: string) => void;
  readonly bounds: Pick<Bounds, 'tlsHandshakeTimeoutMs'>;
}

/** The error message for a cleartext request, which is refused. */
export const tlsRequiredMessage = 'This port speaks TLS: use https:// in place of http://.';

/**
 * Listens for TCP connections and does the TLS handshakes of an HTTP server. The function checks the first octet of each connection before
 * OpenSSL reads it. A client with cleartext HTTP therefore gets an error response, and input that is neither HTTP nor TLS costs no
 * handshake. ALPN offers only HTTP/1.1.
 */
export function createTlsFront(options: TlsFrontOptions) {
  const { certificate, http, admit, ticketSecret, onFailure, bounds } = options;
  const contextOf = (of: Certificate) => ({
    ...secureContextOptions(of),
    ticketKeys: ticketSecret && ticketKeysOf(ticketSecret, of),
  });
  let current = certificate;
  /** Connections whose handshake has not ended, with their timers. */
  const unfinished = new Map<Socket, NodeJS.Timeout>();
  /** Closed connections whose failed handshake is already reported. */
  const cut = new WeakSet<Socket>();
  /** Connections that have sent the first octet of TLS and wait for their handshake. Clients take turns. */
  const waiting = new FairQueue<Socket>();

  const handshakes = createTlsServer({
    ...contextOf(certificate),
    ALPNProtocols: ['http/1.1'],
  });
  handshakes.on('secureConnection', (secure) => {
    const socket = parentOf(secure);
    if (socket !== undefined) finish(socket);
    // node:http sets `allowHalfOpen` on connections that it accepts itself.
    secure.allowHalfOpen = true;
    http.emit('connection', secure);
  });
  handshakes.on('tlsClientError', (error: NodeJS.ErrnoException, secure) => {
    const socket = parentOf(secure);
    // OpenSSL reports a second failure for a connection that was closed during its handshake.
    if (socket === undefined || !cut.has(socket)) onFailure(error.code ?? 'unknown');
  });

  // node:http creates its own TCP server with the same options.
  const server = createServer({ allowHalfOpen: true, noDelay: true }, accept);
  // Node starts its checks for slow requests when a server emits `listening`.
  server.on('listening', () => http.emit('listening'));

  function accept(socket: Socket): void {
    socket.on('error', () => socket.destroy());
    const holder = admit(socket);
    if (holder === undefined) {
      socket.destroy();
      return;
    }
    const timer = setTimeout(() => fail(socket, 'timeout'), bounds.tlsHandshakeTimeoutMs);
    unfinished.set(socket, timer);
    socket.once('close', () => finish(socket));
    socket.once('readable', () => examine(socket, holder));
  }

  function finish(socket: Socket): void {
    clearTimeout(unfinished.get(socket));
    unfinished.delete(socket);
  }

  function fail(socket: Socket, reason: string): void {
    cut.add(socket);
    onFailure(reason);
    socket.destroy();
  }

  function examine(socket: Socket, holder: string): void {
    const beginning: Buffer | null = socket.read();
    const first = beginning?.[0];
    if (beginning === null || first === undefined) {
      // The client closed the connection without sending an octet, for example a load balancer that checks the port.
      socket.destroy();
      return;
    }
    socket.unshift(beginning);
    if (first === tlsHandshakeRecord) {
      // The TLS socket inherits `allowHalfOpen`. A client that closes its side during the handshake will not finish the handshake.
      socket.allowHalfOpen = false;
      if (waiting.length === 0) setImmediate(beginOne);
      waiting.push(holder, socket);
    } else if (mayBeginHttp(first)) {
      finish(socket);
      http.emit('connection', socket);
    } else {
      fail(socket, 'neither TLS nor HTTP');
    }
  }

  /**
   * Begins one handshake in each turn of the event loop. A handshake takes 0.2 to 1 ms of CPU, so requests on other connections wait for
   * at most one handshake, even in a flood.
   */
  function beginOne(): void {
    let socket = waiting.shift(() => true);
    while (socket?.destroyed) socket = waiting.shift(() => true);
    if (socket !== undefined) handshakes.emit('connection', socket);
    if (waiting.length > 0) setImmediate(beginOne);
  }

  return {
    /** The listening TCP server. */
    server,
    /** Sets the certificate for later handshakes. Current handshakes and connections keep their certificate. */
    setCertificate(next: Certificate) {
      // Clients cannot resume their sessions after a new context is set. The context is therefore replaced only if the certificate has
      // changed.
      if (next.cert === current.cert && next.key === current.key) return;
      current = next;
      handshakes.setSecureContext(contextOf(next));
    },
    /** Disconnects all clients with an unfinished handshake. */
    destroyUnfinished() {
      for (const socket of unfinished.keys()) socket.destroy();
    },
  };
}

/**
 * Returns the TCP socket below a TLS socket. The TCP socket is in an undocumented member of the TLS socket. If a Node version lacked this
 * member, the handshake timeout would close every connection, and tests would fail.
 */
function parentOf(secure: TLSSocket): Socket | undefined {
  return (secure as TLSSocket & { readonly _parent?: Socket })._parent;
}

/** The content type of a TLS client's first record (RFC 8446 §5.1). */
const tlsHandshakeRecord = 0x16;

/** Whether a method (RFC 9110 §5.6.2), or the empty line before a method (RFC 9112 §2.2), may begin with this octet. */
function mayBeginHttp(octet: number): boolean {
  return octet === 0x0d || octet === 0x0a || /[!#$%&'*+\-.^_`|~0-9A-Za-z]/.test(String.fromCharCode(octet));
}
