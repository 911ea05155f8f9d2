import type { Socket } from 'node:net';

/**
 * Closes a connection whose client may still be sending (RFC 9112 §9.6): ends our side after what was written, then
 * throws away what still arrives until the client closes too. To destroy it at once would answer those bytes with a
 * reset, which can take the answer from the client before it was read. Past `bytesMax` nothing more is read; after
 * `timeoutMs` the connection is cut.
 */
export function closeGently(socket: Socket, options: { bytesMax: number; timeoutMs: number }): void {
  // Node's server stops and restarts the reading in listeners of its own, which it drops once anybody else listens for
  // data: first it has to restart.
  socket.once('resume', () => discardInput(socket, options.bytesMax));
  socket.pause();
  socket.resume();
  socket.end();
  const timer = setTimeout(() => socket.destroy(), options.timeoutMs);
  socket.once('close', () => clearTimeout(timer));
}

/** The parser gets nothing more: what follows the last answer is neither a body to forward nor a request to serve. */
function discardInput(socket: Socket, bytesMax: number): void {
  let bytesLeft = bytesMax;
  socket.removeAllListeners('data');
  socket.on('data', (chunk: Buffer) => {
    bytesLeft -= chunk.length;
    if (bytesLeft <= 0) socket.pause();
  });
}
