import { createServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer, type TLSSocket } from 'node:tls';
import type { Certificate } from '../model.ts';
import { FairQueue } from '../structures/fair-queue.ts';
import type { Bounds } from '../timeouts-and-sizes.ts';
import { secureContextOptions, ticketKeysOf } from './secure-context.ts';

export interface TlsFrontOptions {
  readonly certificate: Certificate;
  /**
   * A server of node:http that does not listen itself. It receives each socket after its handshake, and each socket with cleartext
   * HTTP, whose requests it must refuse.
   */
  readonly http: Server;
  /** Returns the holder of a new TCP connection; undefined when there is no room for it. */
  readonly admit: (socket: Socket) => string | undefined;
  /** Shared by processes that listen on one address, so that each can resume the sessions of all. */
  readonly ticketSecret?: Uint8Array | undefined;
  /** Called with the reason for each handshake that fails after an octet of the client. */
  readonly onFailure: (reason: string) => void;
  readonly bounds: Pick<Bounds, 'tlsHandshakeTimeoutMs'>;
}

/** The message for a refused request in cleartext. */
export const tlsRequiredMessage = 'This port speaks TLS: use https:// in place of http://.';

/**
 * Does the TLS handshakes of an HTTP server. Listens for TCP connections and checks the first octet of each before OpenSSL. So a client with cleartext HTTP gets a response, and
 * input that is neither HTTP nor TLS costs no handshake. ALPN offers only HTTP/1.1.
 */
export function createTlsFront(options: TlsFrontOptions) {
  const { certificate, http, admit, ticketSecret, onFailure, bounds } = options;
  const contextOf = (of: Certificate) => ({
    ...secureContextOptions(of),
    ticketKeys: ticketSecret && ticketKeysOf(ticketSecret, of),
  });
  let current = certificate;
  /** Connections from TCP accept to the end of the handshake, with their timers. */
  const unfinished = new Map<Socket, NodeJS.Timeout>();
  /** Connections that were cut, whose failure was reported then. */
  const cut = new WeakSet<Socket>();
  /** Connections with the first octet of TLS, which wait for their turn. Clients take turns too. */
  const waiting = new FairQueue<Socket>();

  const handshakes = createTlsServer({
    ...contextOf(certificate),
    ALPNProtocols: ['http/1.1'],
  });
  handshakes.on('secureConnection', (secure) => {
    const socket = parentOf(secure);
    if (socket !== undefined) finish(socket);
    // As for the connections that node:http accepts itself.
    secure.allowHalfOpen = true;
    http.emit('connection', secure);
  });
  handshakes.on('tlsClientError', (error: NodeJS.ErrnoException, secure) => {
    const socket = parentOf(secure);
    // The handshake of a cut connection fails again.
    if (socket === undefined || !cut.has(socket)) onFailure(error.code ?? 'unknown');
  });

  // The options with which node:http creates its own server.
  const server = createServer({ allowHalfOpen: true, noDelay: true }, accept);
  // Node begins to check for slow requests when a server listens.
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
      // Closed before an octet, for example by a balancer that checks the port.
      socket.destroy();
      return;
    }
    socket.unshift(beginning);
    if (first === tlsHandshakeRecord) {
      // The TLS socket inherits this. A client that closes its side during the handshake will not finish it.
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
    /** The server that listens. */
    server,
    /** For later handshakes. Current handshakes and connections keep their certificate. */
    setCertificate(next: Certificate) {
      // A new context ends the resumption of sessions, so it is made only for a new certificate.
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
 * The TCP socket below a TLS socket, which Node does not document. Without this member each connection would be cut by the timeout of
 * its handshake, and tests would fail.
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
