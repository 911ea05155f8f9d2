import type { IncomingMessage, Server } from 'node:http';
import type { Socket } from 'node:net';

/**
 * All changes to undocumented members of Node's objects. Node has no documented members with the same effects. If a Node version lacks a
 * member, the function that changes this member does nothing, and `/test/request/listen/node-patches.test.ts` fails.
 *
 * | member | effect of the change |
 * |---|---|
 * | `parser.execute` | reports faults in a body that follows an ignored `Upgrade` |
 * | `parser.onIncoming` | drops requests after the last accepted request |
 * | `req.method` | the gateway can respond to a client that starts HTTP/2 |
 * | `req.push` | joins small pieces of a body |
 * | `socket.push` | parses a packet in several turns of the event loop |
 * | `socket.destroySoon` | closes the connection gently |
 * | the server's timer | Node reads requests before it checks their timeouts |
 * | the server's `httpAllowHalfOpen` | a client may close its sending side before it gets its response |
 *
 * The gateway also calls `parser.getCurrentBuffer`, but does not change it.
 */

/** The undocumented members of Node's parser that this file uses. */
interface NodeParser {
  /** Parses octets. @returns the number of parsed octets, or the parse error */
  execute(bytes: Buffer): number | Error;
  /** Returns a copy of the packet that is being parsed. */
  getCurrentBuffer(): Buffer;
  /** Called with each request. @returns 0 to parse the body of the request */
  onIncoming: (req: IncomingMessage) => number;
}

function parserOf(socket: Socket): NodeParser | undefined {
  return (socket as { parser?: NodeParser | null }).parser ?? undefined;
}

/**
 * Makes Node emit `clientError` for faults in a body that follows an ignored `Upgrade`. Node's parser treats the octets after a head with
 * `Upgrade` as another protocol and reports no faults in them. Without this function, a malformed chunk would cause a timeout instead of a
 * 400. Call this after the packet with the head has been parsed.
 */
export function reportBodyFaults(req: IncomingMessage): void {
  const { socket } = req;
  const parser = parserOf(socket);
  if (parser === undefined || req.complete) return;
  parser.execute = function execute(bytes) {
    const { execute: parse } = Object.getPrototypeOf(this) as NodeParser;
    const parsed = parse.call(this, bytes);
    return typeof parsed === 'number' && parsed !== bytes.length ? bodyFault() : parsed;
  };
  // Node reuses the parser for another connection, so the change must be undone.
  socket.once('close', () => Reflect.deleteProperty(parser, 'execute'));
  // Node calls `execute` for each packet only if there is a `data` listener. The empty packet makes Node report a fault in the
  // packet that contained the head.
  socket.on('data', () => {});
  socket.emit('data', Buffer.alloc(0));
}

function bodyFault(): Error {
  return Object.assign(new Error('Parse Error'), {
    code: 'HPE_INVALID_CHUNK_SIZE',
    reason: 'the body cannot be parsed',
  });
}

/**
 * Drops all further requests of a connection, including requests in the packet that is being parsed. Node would otherwise keep each request
 * and its response until the connection closes. The shortest request has 18 octets, but would occupy 4 kB of memory.
 */
export function dropRequests(socket: Socket): void {
  const parser = parserOf(socket);
  if (parser !== undefined) parser.onIncoming = () => 0;
}

/**
 * Whether the request line names a protocol other than HTTP. Node's parser also accepts `RTSP/1.0` and `ICE/1.0`. Call this while the
 * request is being parsed. The function takes one microsecond. It returns false if the request line and the end of the head are in
 * different packets.
 */
export function isOtherProtocol({ socket, method, url }: IncomingMessage): boolean {
  const packet = parserOf(socket)?.getCurrentBuffer().toString('latin1') ?? '';
  const line = `${method} ${url} `;
  const at = packet.indexOf(line);
  return at !== -1 && /^(?:RTSP|ICE)\//.test(packet.slice(at + line.length, at + line.length + 5));
}

/**
 * Clears the method `PRI`, because the preface of HTTP/2 begins with this method. `screen-request.ts` then refuses the request with 501. If
 * the method were not cleared, Node would close the connection without a response.
 */
export function hidePreface(req: IncomingMessage): void {
  if (req.method === 'PRI') req.method = '';
}

/**
 * Joins the small pieces of a request body. Node emits the content of each chunk separately, and each piece needs half a kilobyte of
 * memory. Without this function, 60,000 octets in chunks of one octet took 28 MB and 60,000 writes to the target. Call this when the
 * head has been parsed.
 */
export function gatherPieces(req: IncomingMessage): void {
  const passOn = req.push.bind(req);
  let pieces = 0;
  /** The first `length` octets of this buffer are the joined small pieces of this turn of the event loop. */
  let gathered: Buffer | undefined;
  let length = 0;

  /** Passes on the joined pieces. @returns false when the reader wants no more octets for now */
  function passOnGathered(): boolean {
    if (gathered === undefined) return true;
    const piece = gathered.subarray(0, length);
    gathered = undefined;
    length = 0;
    return passOn(piece);
  }

  // Node calls `push` with each piece of the body, and with null at the end of the body.
  req.push = (piece: Buffer | null) => {
    pieces++;
    if (piece === null || pieces <= singlePiecesMax || piece.length >= gatheredBytesMax) {
      passOnGathered();
      return passOn(piece);
    }
    const wantsMore = length + piece.length <= gatheredBytesMax || passOnGathered();
    if (gathered === undefined) {
      gathered = Buffer.allocUnsafeSlow(gatheredBytesMax);
      setImmediate(passOnGathered);
    }
    length += piece.copy(gathered, length);
    return wantsMore;
  };
}

/**
 * Passes the octets of a connection to Node's parser in slices, over several turns of the event loop. Node itself passes a packet of up to
 * 65,536 octets in one piece, and the parser calls JavaScript for each request and each chunk. A packet with chunks of one octet would
 * block the event loop for 8 ms. Call this for a new connection before Node's HTTP server receives it.
 *
 * @param takeTurn must call `read` now or later. `read` returns false if there is nothing to read.
 * @returns a function that drops all octets that the parser has not read, and all later octets
 */
export function readInTurns(
  socket: Socket,
  bounds: { readonly sliceBytes: number; readonly parsingMs: number },
  takeTurn: (read: () => boolean) => void,
): () => void {
  const { sliceBytes, parsingMs } = bounds;
  const pushEnd = socket.push.bind(socket, null);
  /** The packets that the parser has not read. Null is the end of the input. */
  let packets: (Buffer | null)[] = [];
  const buffered: Buffer | null = socket.read();
  if (buffered !== null) packets.push(buffered);
  let isWaiting = false;

  function readNext(): void {
    if (isWaiting || socket.destroyed || socket.isPaused()) return;
    if (packets.length === 0) socket._read(0);
    else if (packets[0] === null) pushEnd();
    else {
      isWaiting = true;
      takeTurn(readSlices);
    }
  }

  function readSlices(): boolean {
    isWaiting = false;
    const untilMs = performance.now() + parsingMs;
    let isRead = false;
    do {
      const [packet] = packets;
      if (!packet || socket.destroyed || socket.isPaused()) break;
      if (packet.length > sliceBytes) packets[0] = packet.subarray(sliceBytes);
      else packets.shift();
      isRead = true;
      socket.emit('data', packet.subarray(0, sliceBytes));
    } while (performance.now() < untilMs);
    readNext();
    return isRead;
  }

  socket.push = (packet: Buffer | null) => {
    packets.push(packet);
    readNext();
    return packets.length === 0;
  };
  socket.on('resume', readNext);
  // Node's parser reads from the stream only if there is a `data` listener, and otherwise from the native socket.
  queueMicrotask(() => socket.on('data', () => {}));

  return () => {
    packets = [];
    socket.push = (packet: Buffer | null) => packet !== null || pushEnd();
    socket._read(0);
  };
}

/**
 * Makes Node read pending requests before Node checks the timeouts of requests. After a long pause of the process, timers run before sockets
 * are read. Node would therefore end a connection whose request is already in the socket. Call this for a server that does not listen yet.
 */
export function readBeforeTimeouts(server: TimedServer): void {
  // Node starts a new timer at each `listening` event. Node's own listener of this event is called first.
  server.on('listening', () => {
    const timer = timeoutsTimerOf(server);
    if (timer === undefined) return;
    const { _onTimeout: check } = timer;
    timer._onTimeout = () => void setImmediate(checkAsOf, performance.now(), check);
  });

  /** Runs Node's check as of `firedMs`, because the process may pause again before the check. */
  function checkAsOf(firedMs: number, check: () => void): void {
    const { headersTimeout, requestTimeout } = server;
    const sinceMs = Math.ceil(performance.now() - firedMs);
    server.headersTimeout = headersTimeout + sinceMs;
    server.requestTimeout = requestTimeout + sinceMs;
    check();
    Object.assign(server, { headersTimeout, requestTimeout });
  }
}

/** A server of node:http with responses of any class. */
type TimedServer = NodeJS.EventEmitter & Pick<Server, 'headersTimeout' | 'requestTimeout'>;

/** The timer that checks the timeouts of a server's requests. Node keeps this timer in a member whose name is a symbol. */
export function timeoutsTimerOf(server: object): { _onTimeout: () => void } | undefined {
  const name = Object.getOwnPropertySymbols(server).find(
    ({ description }) => description === 'http.server.connectionsCheckingInterval',
  );
  return name && (server as Record<symbol, { _onTimeout: () => void }>)[name];
}

/**
 * Makes Node answer the requests of a client that closes its sending side after them. Node would otherwise end the connection without the
 * responses. An incomplete body is still a parser error.
 */
export function answerHalfClosed(server: object): void {
  Object.assign(server, { httpAllowHalfOpen: true });
}

/** The number of pieces that are passed on unchanged at the beginning of a body. Most bodies have fewer pieces. */
const singlePiecesMax = 32;
/** The maximum size of a joined piece, in octets. */
const gatheredBytesMax = 4_096;

/**
 * Makes Node call `close` at the end of a connection's last response. Node's own function would reset the connection of a client
 * that is still sending.
 *
 * @returns a function that restores Node's own function
 */
export function closeInsteadOfDestroy(socket: Socket, close: () => void): () => void {
  const { destroySoon } = socket;
  socket.destroySoon = close;
  return () => {
    socket.destroySoon = destroySoon;
  };
}
