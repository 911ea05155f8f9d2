import type { Socket } from 'node:net';

/**
 * Closes a connection whose client may still be sending (RFC 9112 §9.6). It ends our side after what was written, and
 * discards what still arrives until the client closes its side too. If the socket were destroyed at once, those bytes
 * would be answered with a reset, and the client could lose the response before it has read it. Past `bytesMax` nothing
 * more is read; after `timeoutMs` the socket is destroyed.
 */
export function closeGently(socket: Socket, options: { bytesMax: number; timeoutMs: number }): void {
  // Node's server removes its own listeners, which pause and resume the socket, as soon as another listener for data is
  // added. So the socket is resumed first.
  socket.once('resume', () => discardInput(socket, options.bytesMax));
  socket.pause();
  socket.resume();
  socket.end();
  const timer = setTimeout(() => socket.destroy(), options.timeoutMs);
  socket.once('close', () => clearTimeout(timer));
}

/** Takes the input from the parser: behind the last response there is no body to forward and no request to serve. */
function discardInput(socket: Socket, bytesMax: number): void {
  let bytesLeft = bytesMax;
  socket.removeAllListeners('data');
  socket.on('data', (chunk: Buffer) => {
    bytesLeft -= chunk.length;
    if (bytesLeft <= 0) socket.pause();
  });
}
