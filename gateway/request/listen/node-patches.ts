import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';

/**
 * All changes of Node's own objects, in one place. Node has no documented way for these effects. Without the undocumented
 * members these functions do nothing; `/test/request/listen/node-patches.test.ts` fails then.
 *
 * | changed | why |
 * |---|---|
 * | `parser.execute` | faults in a body behind an ignored `Upgrade` are reported |
 * | `parser.onIncoming` | requests behind the last one are dropped |
 * | `req.method` | the client that begins HTTP/2 gets a response |
 * | `req.push` | small pieces of a body are joined |
 * | `socket.push` | a packet is parsed in turns |
 * | `socket.destroySoon` | the connection is closed gently |
 *
 * `parser.getCurrentBuffer` is read and not changed.
 */

/** The undocumented part of Node's parser that is used here. */
interface NodeParser {
  /** @returns the number of octets that were parsed, or why they cannot be parsed */
  execute(bytes: Buffer): number | Error;
  /** A copy of the packet that is being parsed. */
  getCurrentBuffer(): Buffer;
  /** Called with each request. @returns 0 to have its body parsed */
  onIncoming: (req: IncomingMessage) => number;
}

function parserOf(socket: Socket): NodeParser | undefined {
  return (socket as { parser?: NodeParser | null }).parser ?? undefined;
}

/**
 * Has faults in the body of a request with an ignored `Upgrade` reported as `clientError`. Node's parser takes the octets
 * behind such a head for another protocol and reports no fault in them, so a broken chunk would time out. Call this after the
 * packet with the head has been parsed.
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
  // Node reuses the parser for another connection.
  socket.once('close', () => Reflect.deleteProperty(parser, 'execute'));
  // With a listener for data, Node calls `execute` for each packet. The empty packet makes it report a fault in the packet
  // that the head came in.
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
 * Drops all further requests of a connection, including those in the packet that is being parsed. Node would make a response
 * for each and keep both until the connection closes: 4 kB for the 18 octets of the shortest request.
 */
export function dropRequests(socket: Socket): void {
  const parser = parserOf(socket);
  if (parser !== undefined) parser.onIncoming = () => 0;
}

/**
 * Whether the request line names another protocol: Node's parser also accepts `RTSP/1.0` and `ICE/1.0`. Call this while the
 * request is being parsed; the search takes a microsecond. A request line that came in an earlier packet than the end of the
 * head is not recognised.
 */
export function isOtherProtocol({ socket, method, url }: IncomingMessage): boolean {
  const packet = parserOf(socket)?.getCurrentBuffer().toString('latin1') ?? '';
  const line = `${method} ${url} `;
  const at = packet.indexOf(line);
  return at !== -1 && /^(?:RTSP|ICE)\//.test(packet.slice(at + line.length, at + line.length + 5));
}

/**
 * Clears the method of a request that is the beginning of HTTP/2's preface. The screen then refuses it with 501, whereas Node
 * would cut its connection after the request was handed over.
 */
export function hidePreface(req: IncomingMessage): void {
  if (req.method === 'PRI') req.method = '';
}

/**
 * Joins the small pieces of a request's body. Node hands over the content of each chunk apart, which takes half a kilobyte while
 * it waits. 60,000 octets in chunks of one octet took 28 MB and 60,000 writes to the target. Call this when the head has been
 * parsed.
 */
export function gatherPieces(req: IncomingMessage): void {
  const passOn = req.push.bind(req);
  let pieces = 0;
  /** The small pieces of this turn of the event loop fill the first `length` octets. */
  let gathered: Buffer | undefined;
  let length = 0;

  /** @returns false when the reader has enough for now */
  function passOnGathered(): boolean {
    if (gathered === undefined) return true;
    const piece = gathered.subarray(0, length);
    gathered = undefined;
    length = 0;
    return passOn(piece);
  }

  // Node calls it with each piece, and with null at the end of the body.
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
 * Gives Node's parser the octets of a connection in turns. Node would give the parser a packet of up to 65,536 octets at once, and
 * the parser runs JavaScript for each request and each chunk of a body. A packet with chunks of one octet takes 8 ms. Call this for
 * a new connection before Node's HTTP server receives it.
 *
 * @param takeTurn calls `read` now or later. `read` returns false if there is nothing to read.
 * @returns drops the octets that the parser has not read, and all further octets
 */
export function readInTurns(
  socket: Socket,
  bounds: { readonly sliceBytes: number; readonly parsingMs: number },
  takeTurn: (read: () => boolean) => void,
): () => void {
  const { sliceBytes, parsingMs } = bounds;
  const pushEnd = socket.push.bind(socket, null);
  /** The octets that no turn has read, and null for the end. */
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
  // With a listener for data, Node's parser does not read the socket below the stream.
  queueMicrotask(() => socket.on('data', () => {}));

  return () => {
    packets = [];
    socket.push = (packet: Buffer | null) => packet !== null || pushEnd();
    socket._read(0);
  };
}

/** The first pieces are handed over unchanged. Most bodies have fewer. */
const singlePiecesMax = 32;
/** Later pieces are joined up to this size. */
const gatheredBytesMax = 4_096;

/**
 * Has Node call `close` where it would end a connection after its last response. Node's own function resets a client that is
 * still sending.
 *
 * @returns a function that undoes this
 */
export function closeInsteadOfDestroy(socket: Socket, close: () => void): () => void {
  const { destroySoon } = socket;
  socket.destroySoon = close;
  return () => {
    socket.destroySoon = destroySoon;
  };
}
