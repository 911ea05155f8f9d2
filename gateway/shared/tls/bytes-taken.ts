import type { Socket } from 'node:net';

/** Node's counts of a TCP socket: octets passed to the kernel, and how many of them the kernel has not taken. */
interface WrittenHandle {
  readonly bytesWritten: number;
  readonly writeQueueSize: number;
  /** The TCP socket below a TLS socket. */
  readonly _parent?: WrittenHandle;
}

/**
 * The written octets of a socket that the kernel has taken, over TLS including the records. Node has no public count that grows during
 * a large write. Its socket timeout reads the same counts (lib/net.js, `_onTimeout`), but from the TLS socket, where they change only
 * after the whole write.
 */
export function bytesTaken(socket: Socket): number {
  const { _handle: handle } = socket as { _handle?: WrittenHandle | null };
  if (!handle) return 0;
  const { bytesWritten, writeQueueSize } = handle._parent ?? handle;
  return bytesWritten - writeQueueSize;
}
