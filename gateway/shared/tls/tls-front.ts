import { createServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer, type TLSSocket } from 'node:tls';
import { tokenForm } from '../http/field-grammar.ts';
import type { Certificate } from '../model.ts';
import { FairQueue } from '../structures/fair-queue.ts';
import type { Bounds } from '../timeouts-and-sizes.ts';
import { secureContextOptions, ticketKeysOf } from './secure-context.ts';

export interface TlsFrontOptions {
  readonly certificate: Certificate;
  /**
   * A server of node:http that does not listen itself. It receives each TLS socket after the handshake, and each socket with cleartext
   * HTTP, whose requests it must refuse.
   */
  readonly http: Server;
  /** The client ("holder") of a new TCP connection; undefined when too many connections are open. */
  readonly admit: (socket: Socket) => string | undefined;
  /** Shared by all processes on one address, so that each can resume the TLS sessions of the others. */
  readonly ticketSecret?: Uint8Array | undefined;
  /** For a handshake that fails after the client has sent at least one octet. */
  readonly onFailure: (reason: string) => void;
  readonly bounds: Pick<Bounds, 'tlsHandshakeTimeoutMs'>;
}

/** For a cleartext request, which is refused. */
export const tlsRequiredMessage = 'This port speaks TLS: use https:// in place of http://.';

/**
 * Does the TLS handshakes of an HTTP server. It checks the first octet of each connection before OpenSSL reads it, so cleartext HTTP gets
 * an error response, and input that is neither HTTP nor TLS costs no handshake. ALPN offers only HTTP/1.1.
 */
export function createTlsFront(options: TlsFrontOptions) {
  const { certificate, http, admit, ticketSecret, onFailure, bounds } = options;
  const contextOf = (of: Certificate) => ({
    ...secureContextOptions(of),
    ticketKeys: ticketSecret && ticketKeysOf(ticketSecret, of),
  });
  let current = certificate;
  const unfinished = new Map<Socket, NodeJS.Timeout>();
  /** Closed connections whose failed handshake is already reported. */
  const cut = new WeakSet<Socket>();
  /** Connections after the first octet of TLS. Clients take turns. */
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
      // For example, a load balancer that checks the port.
      socket.destroy();
      return;
    }
    socket.unshift(beginning);
    if (first === tlsHandshakeRecord) {
      // A client that closes its side during the handshake will not finish it. The TLS socket inherits `allowHalfOpen`.
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
   * Begins a handshake in each turn of the event loop. A handshake takes 0.2 to 1 ms of CPU, so requests on other connections wait for at
   * most one, even in a flood.
   */
  function beginOne(): void {
    let socket = waiting.shift(() => true);
    while (socket?.destroyed) socket = waiting.shift(() => true);
    if (socket !== undefined) handshakes.emit('connection', socket);
    if (waiting.length > 0) setImmediate(beginOne);
  }

  return {
    server,
    /** For later handshakes. Current handshakes and connections keep their certificate. */
    setCertificate(next: Certificate) {
      // After a new context is set, clients cannot resume their sessions.
      if (next.cert === current.cert && next.key === current.key) return;
      current = next;
      handshakes.setSecureContext(contextOf(next));
    },
    destroyUnfinished() {
      for (const socket of unfinished.keys()) socket.destroy();
    },
  };
}

/**
 * The TCP socket is in an undocumented member of the TLS socket. If a Node version lacked it, the handshake timeout would close every
 * connection, and tests would fail.
 */
function parentOf(secure: TLSSocket): Socket | undefined {
  return (secure as TLSSocket & { readonly _parent?: Socket })._parent;
}

/** RFC 8446 §5.1. */
const tlsHandshakeRecord = 0x16;

/** Begins a method (RFC 9110 §5.6.2), or the empty line before one (RFC 9112 §2.2). */
function mayBeginHttp(octet: number): boolean {
  return octet === 0x0d || octet === 0x0a || tokenForm.test(String.fromCharCode(octet));
}
