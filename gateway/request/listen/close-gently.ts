import type { Socket } from 'node:net';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';

/**
 * Closes a connection whose client may still be sending (RFC 9112 §9.6). Ends our side after the pending writes, and discards
 * input until the client closes its side too. If the socket were destroyed at once, a reset would answer that input, and the
 * client could lose the response. Reads at most `lingerBytesMax`, and destroys the socket after `lingerTimeoutMs`.
 */
export function closeGently(
  socket: Socket,
  { lingerBytesMax, lingerTimeoutMs }: Pick<Bounds, 'lingerBytesMax' | 'lingerTimeoutMs'>,
): void {
  // As soon as another listener for data is added, Node's server removes its own listeners, which pause and resume the socket.
  // So the socket is resumed first.
  socket.once('resume', () => discardInput(socket, lingerBytesMax));
  socket.pause();
  socket.resume();
  socket.end();
  const timer = setTimeout(() => socket.destroy(), lingerTimeoutMs);
  socket.once('close', () => clearTimeout(timer));
}

/** Takes the input from the parser, because no request is served behind the last response. */
function discardInput(socket: Socket, bytesMax: number): void {
  let bytesLeft = bytesMax;
  socket.removeAllListeners('data');
  socket.on('data', (chunk: Buffer) => {
    bytesLeft -= chunk.length;
    if (bytesLeft <= 0) socket.pause();
  });
}
