import type { Socket } from 'node:net';

/** All written octets, and those that the kernel has not accepted yet. */
interface WrittenHandle {
  readonly bytesWritten: number;
  readonly writeQueueSize: number;
  /** The handle of the TCP socket below a TLS socket. */
  readonly _parent?: WrittenHandle;
}

/**
 * The written octets that the kernel has accepted, with TLS framing. None of Node's public counts grows while a large write is in progress.
 * Node's socket timeout uses the counts of the TLS socket (lib/net.js, `_onTimeout`), which change only after the whole write.
 */
export function bytesTaken(socket: Socket): number {
  const { _handle: handle } = socket as { _handle?: WrittenHandle | null };
  if (!handle) return 0;
  const { bytesWritten, writeQueueSize } = handle._parent ?? handle;
  return bytesWritten - writeQueueSize;
}
