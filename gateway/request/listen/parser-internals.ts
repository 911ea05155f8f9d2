import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';

/**
 * The undocumented part of Node's parser that the functions below need; there is no documented way to do what they do. In
 * a Node without it, they do nothing.
 */
interface NodeParser {
  /** @returns the number of octets that were parsed, or why they cannot be */
  execute(bytes: Buffer): number | Error;
  /** A copy of the packet that is being parsed. */
  getCurrentBuffer(): Buffer;
  /** Called with each request; @returns what is done with its body: 0, it is parsed. */
  onIncoming: (req: IncomingMessage) => number;
}

function parserOf(socket: Socket): NodeParser | undefined {
  return (socket as { parser?: NodeParser | null }).parser ?? undefined;
}

/**
 * Has faults in the body of a request with an ignored `Upgrade` reported as `clientError`, like any other. Node's parser
 * takes the bytes behind such a head for another protocol and reports no fault in them: a broken chunk would be waited for
 * until the request times out. To be called when the packet with the head has been parsed.
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
  // Node uses the parser again for another connection.
  socket.once('close', () => Reflect.deleteProperty(parser, 'execute'));
  // With a listener for data, Node calls `execute` above for each packet. The empty packet has it report a fault in the
  // packet that the head came in.
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
 * Drops all further requests of a connection, also those of the packet that is being parsed. Node would make a response for
 * each and keep both until the connection closes: 4 kB for the 18 octets of the shortest request.
 */
export function dropRequests(socket: Socket): void {
  const parser = parserOf(socket);
  if (parser !== undefined) parser.onIncoming = () => 0;
}

/**
 * Whether the request line names another protocol: Node's parser also accepts `RTSP/1.0` and `ICE/1.0`. To be called
 * while the request is being parsed. It searches the packet, which takes a microsecond. The protocol is not recognised when
 * the request line came in an earlier packet than the end of the head.
 */
export function isOtherProtocol({ socket, method, url }: IncomingMessage): boolean {
  const packet = parserOf(socket)?.getCurrentBuffer().toString('latin1') ?? '';
  const line = `${method} ${url} `;
  const at = packet.indexOf(line);
  return at !== -1 && /^(?:RTSP|ICE)\//.test(packet.slice(at + line.length, at + line.length + 5));
}
