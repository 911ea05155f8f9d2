import type { Socket } from 'node:net';

/** Node's own counts of a TCP socket: octets handed to the kernel, and those of them that the kernel has not taken yet. */
interface WrittenHandle {
  readonly bytesWritten: number;
  readonly writeQueueSize: number;
  /** Of a TLS socket, the TCP socket below it. */
  readonly _parent?: WrittenHandle;
}

/**
 * The octets written to a socket that the kernel has taken; over TLS those of its records. Node has no public count that
 * grows during one large write. Its own socket timeout reads the same two counts (lib/net.js, `_onTimeout`), but of the
 * TLS socket, where they stand still until the whole write is done.
 */
export function bytesTaken(socket: Socket): number {
  const { _handle: handle } = socket as { _handle?: WrittenHandle | null };
  if (!handle) return 0;
  const { bytesWritten, writeQueueSize } = handle._parent ?? handle;
  return bytesWritten - writeQueueSize;
}
