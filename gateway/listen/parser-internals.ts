import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';

/**
 * What is used of the parser that Node's server keeps for each connection. It is not documented, but there is no other way
 * to learn these two things; where a Node has no such parser, they are not known.
 */
interface NodeParser {
  /** @returns the number of octets that were parsed, or why they cannot be */
  execute(bytes: Buffer): number | Error;
  /** A copy of the packet that is being parsed. */
  getCurrentBuffer(): Buffer;
}

function parserOf(socket: Socket): NodeParser | undefined {
  return (socket as { parser?: NodeParser | null }).parser ?? undefined;
}

/**
 * Node's parser takes what follows a request with `Upgrade` for another protocol and reports no fault in it, also where
 * the field is ignored and a body follows: a broken chunk would be waited for until the request times out. From now on
 * such a fault is a `clientError` like any other. To be called when the packet with the head has been parsed.
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
  // Parsers are used again for other connections.
  socket.once('close', () => Reflect.deleteProperty(parser, 'execute'));
  // Whoever listens for data has Node hand the packets to the parser from JavaScript. The empty one asks about the fault
  // that the packet with the head may have had.
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
 * Whether a request says that it is of another protocol: Node's parser also takes `RTSP/1.0` and `ICE/1.0`. To be called
 * while the request is being parsed. It looks at the packet, which costs a microsecond, and is not known of a request line
 * that came in an earlier packet than the end of its head.
 */
export function isOtherProtocol({ socket, method, url }: IncomingMessage): boolean {
  const packet = parserOf(socket)?.getCurrentBuffer().toString('latin1') ?? '';
  const line = `${method} ${url} `;
  const at = packet.indexOf(line);
  return at !== -1 && /^(?:RTSP|ICE)\//.test(packet.slice(at + line.length, at + line.length + 5));
}
