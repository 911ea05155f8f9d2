import type { Socket } from 'node:net';

export interface PaceBounds {
  readonly clientBytesPerSecondMin: number;
  readonly clientGraceMs: number;
  readonly clientAheadMaxMs: number;
}

/** What a look at a client found. */
interface Progress {
  /** On the clock of `performance.now`. */
  readonly nowMs: number;
  /** Whether anything waits for the client now. */
  readonly isAwaited: boolean;
  /** What it has sent or taken so far. */
  readonly bytes: number;
}

/**
 * Whether a client sends its body, or reads its response, fast enough to be waited for. Each octet buys it time, and
 * time in which nothing waits for it is free.
 */
export class ClientPace {
  private readonly bounds: PaceBounds;
  private deadlineMs: number;
  private bytes: number;

  /** @param bytes what it has moved before, and what buys it no time */
  constructor(bounds: PaceBounds, startedMs: number, bytes = 0) {
    this.bounds = bounds;
    this.bytes = bytes;
    this.deadlineMs = startedMs + bounds.clientGraceMs;
  }

  isTooSlow({ nowMs, isAwaited, bytes }: Progress): boolean {
    const { clientBytesPerSecondMin, clientGraceMs, clientAheadMaxMs } = this.bounds;
    const boughtMs = ((bytes - this.bytes) * 1000) / clientBytesPerSecondMin;
    this.bytes = bytes;
    this.deadlineMs = Math.min(this.deadlineMs + boughtMs, nowMs + clientAheadMaxMs);
    if (isAwaited) return nowMs > this.deadlineMs;
    this.deadlineMs = Math.max(this.deadlineMs, nowMs + clientGraceMs);
    return false;
  }
}

/** How Node counts what it handed to the kernel and what of it the kernel has not taken yet. */
interface WrittenHandle {
  readonly bytesWritten: number;
  readonly writeQueueSize: number;
}

/**
 * Octets that the kernel took of what was written to a socket. Node has no public figure that moves within one large
 * write; its own socket timeout looks at the same two (lib/net.js, `_onTimeout`).
 */
export function bytesTaken(socket: Socket): number {
  const { _handle: handle } = socket as { _handle?: WrittenHandle | null };
  return handle ? handle.bytesWritten - handle.writeQueueSize : 0;
}
