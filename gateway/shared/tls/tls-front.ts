import { createServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer, type TLSSocket } from 'node:tls';
import type { Certificate } from '../model.ts';
import { FairQueue } from '../structures/fair-queue.ts';
import type { Bounds } from '../timeouts-and-sizes.ts';
import { secureContextOptions, ticketKeysOf } from './secure-context.ts';

export interface TlsFrontOptions {
  readonly certificate: Certificate;
  /**
   * A server of node:http that does not listen itself. It is given each socket whose handshake is done, and each on which a client speaks HTTP without
   * TLS: requests on the latter are to be refused.
   */
  readonly http: Server;
  /** Says for whom a TCP connection counts that was just accepted; undefined when it may not stay. */
  readonly admit: (socket: Socket) => string | undefined;
  /** Shared by processes that listen at one address, so that each resumes the sessions of all. */
  readonly ticketSecret?: Uint8Array | undefined;
  /** Called with the reason for each handshake that fails after the client has sent something. */
  readonly onFailure: (reason: string) => void;
  readonly bounds: Pick<Bounds, 'tlsHandshakeTimeoutMs'>;
}

/** What the client of a refused request without TLS reads. */
export const tlsRequiredMessage = 'This port speaks TLS: use https:// in place of http://.';

/** What stands before an HTTP server whose clients speak TLS: it accepts connections and does the handshakes. */
export interface TlsFront {
  /** The server that listens. */
  readonly server: Server;
  /** For handshakes from now on; those under way, and connections, keep the one they began with. */
  setCertificate(certificate: Certificate): void;
  /** Disconnects all clients whose handshake is not done. */
  destroyUnfinished(): void;
}

/**
 * Listens for TCP connections, and looks at the first octet of each before OpenSSL does: a client that speaks HTTP without
 * TLS can then be answered, and what is neither costs no handshake. HTTP/1.1 is the only protocol that ALPN offers.
 */
export function createTlsFront(options: TlsFrontOptions): TlsFront {
  const { certificate, http, admit, ticketSecret, onFailure, bounds } = options;
  const contextOf = (of: Certificate) => ({
    ...secureContextOptions(of),
    ...(ticketSecret && { ticketKeys: ticketKeysOf(ticketSecret, of) }),
  });
  let current = certificate;
  /** Connections from TCP accept to the end of the handshake, with the timer that bounds it. */
  const unfinished = new Map<Socket, NodeJS.Timeout>();
  /** Those whose failure was reported when they were cut. */
  const cut = new WeakSet<Socket>();
  /** Those of them that have sent something of TLS and wait for their turn. Clients take turns too. */
  const waiting = new FairQueue<Socket>();

  const handshakes = createTlsServer({
    ...contextOf(certificate),
    ALPNProtocols: ['http/1.1'],
  });
  handshakes.on('secureConnection', (secure) => {
    const socket = parentOf(secure);
    if (socket !== undefined) finish(socket);
    // As of the connections that node:http accepts itself.
    secure.allowHalfOpen = true;
    http.emit('connection', secure);
  });
  handshakes.on('tlsClientError', (error: NodeJS.ErrnoException, secure) => {
    const socket = parentOf(secure);
    // A handshake that was cut fails once more.
    if (socket === undefined || !cut.has(socket)) onFailure(error.code ?? 'unknown');
  });

  // As node:http creates its own.
  const server = createServer({ allowHalfOpen: true, noDelay: true }, accept);
  // Node begins to look for slow requests when a server listens.
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
      // It was closed before an octet, as by a balancer that checks whether the port is open.
      socket.destroy();
      return;
    }
    socket.unshift(beginning);
    if (first === tlsHandshakeRecord) {
      // The TLS socket inherits it: a client that closes its side in the middle of a handshake will not finish it.
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
   * One in each turn of the event loop, which also accepts one connection in each: a handshake takes 0.2 to 1 ms of CPU, and
   * requests on other connections wait for one at most, however many have arrived at once.
   */
  function beginOne(): void {
    let socket = waiting.shift(() => true);
    while (socket?.destroyed) socket = waiting.shift(() => true);
    if (socket !== undefined) handshakes.emit('connection', socket);
    if (waiting.length > 0) setImmediate(beginOne);
  }

  return {
    server,
    setCertificate(next) {
      // A new context also ends the resumption of sessions, so it is made only when it must be.
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
 * The TCP socket below. There is no documented way from the one to the other. In a Node without this name each connection
 * would be cut when its handshake times out, and tests would fail.
 */
function parentOf(secure: TLSSocket): Socket | undefined {
  return (secure as TLSSocket & { readonly _parent?: Socket })._parent;
}

/** The content type of the record that a TLS client begins with (RFC 8446 §5.1). */
const tlsHandshakeRecord = 0x16;

/** Whether it may begin a method (RFC 9110 §5.6.2), or the empty line before one (RFC 9112 §2.2). */
function mayBeginHttp(octet: number): boolean {
  return octet === 0x0d || octet === 0x0a || /[!#$%&'*+\-.^_`|~0-9A-Za-z]/.test(String.fromCharCode(octet));
}
