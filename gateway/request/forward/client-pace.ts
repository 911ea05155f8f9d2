export interface PaceBounds {
  readonly clientBytesPerSecondMin: number;
  readonly clientGraceMs: number;
  readonly clientAheadMaxMs: number;
}

/** How far a client has come with its body, or with reading its response. */
interface Progress {
  /** On the clock of `performance.now`. */
  readonly nowMs: number;
  /** Whether the gateway waits for the client now. */
  readonly isAwaited: boolean;
  /** Octets sent or read so far. */
  readonly bytes: number;
}

/**
 * Decides whether a client sends its body, or reads its response, too slowly to be waited for. Each octet moves the
 * client's deadline on. While the gateway does not wait for the client, the deadline stays ahead.
 */
export class ClientPace {
  private readonly bounds: PaceBounds;
  private deadlineMs: number;
  private bytes: number;

  /** @param bytes octets moved before `startedMs`, which do not move the deadline */
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
