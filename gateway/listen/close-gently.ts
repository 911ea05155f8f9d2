import type { Socket } from 'node:net';

/**
 * Closes a connection whose client may still be sending (RFC 9112 §9.6): ends our side after what was written, then
 * throws away what still arrives until the client closes too. To destroy it at once would answer those bytes with a
 * reset, which can take the answer from the client before it was read. Past `bytesMax` nothing more is read; after
 * `timeoutMs` the connection is cut.
 */
export function closeGently(socket: Socket, options: { bytesMax: number; timeoutMs: number }): void {
  let bytesLeft = options.bytesMax;
  // The parser hears no more of it: what follows the last answer is neither a body to forward nor a request to serve.
  socket.removeAllListeners('data');
  socket.on('data', (chunk: Buffer) => {
    bytesLeft -= chunk.length;
    if (bytesLeft <= 0) socket.pause();
  });
  socket.resume();
  socket.end();
  const timer = setTimeout(() => socket.destroy(), options.timeoutMs);
  socket.once('close', () => clearTimeout(timer));
}
