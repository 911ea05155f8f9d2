import type { Bounds } from '../../shared/timeouts-and-sizes.ts';

export type PaceBounds = Pick<Bounds, 'clientBytesPerSecondMin' | 'clientGraceMs' | 'clientAheadMaxMs'>;

/** The progress of a client that sends its request body or reads its response. */
interface Progress {
  /** The current time on the clock of `performance.now`. */
  readonly nowMs: number;
  /** Whether the gateway waits for the client to send or to read octets. */
  readonly isAwaited: boolean;
  /** Octets sent or read so far. */
  readonly bytes: number;
}

/**
 * Decides whether a client sends its body, or reads its response, too slowly. Each octet extends the client's deadline. While the gateway
 * itself causes the delay, the deadline stays at least `clientGraceMs` in the future.
 */
export class ClientPace {
  private readonly bounds: PaceBounds;
  private deadlineMs: number;
  private bytes: number;

  /** @param bytes octets before `startedMs`, which do not extend the deadline */
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
