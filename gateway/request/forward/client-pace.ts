import type { Bounds } from '../../shared/timeouts-and-sizes.ts';

type PaceBounds = Pick<Bounds, 'clientBytesPerSecondMin' | 'clientGraceMs'>;

interface PaceOptions {
  /** On the clock of `performance.now`. */
  readonly startedMs: number;
  /** The number of octets before the start, which do not extend the deadline. */
  readonly bytesBefore?: number;
  /** How far the octets can move the deadline into the future. */
  readonly aheadMaxMs: number;
}

/** The progress of a client that sends its request body or reads its response. */
interface Progress {
  /** On the clock of `performance.now`. */
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
  private readonly aheadMaxMs: number;
  private deadlineMs: number;
  private bytes: number;

  constructor(bounds: PaceBounds, { startedMs, bytesBefore = 0, aheadMaxMs }: PaceOptions) {
    this.bounds = bounds;
    this.aheadMaxMs = aheadMaxMs;
    this.bytes = bytesBefore;
    this.deadlineMs = startedMs + bounds.clientGraceMs;
  }

  isTooSlow({ nowMs, isAwaited, bytes }: Progress): boolean {
    const { clientBytesPerSecondMin, clientGraceMs } = this.bounds;
    const boughtMs = ((bytes - this.bytes) * 1000) / clientBytesPerSecondMin;
    this.bytes = bytes;
    this.deadlineMs = Math.min(this.deadlineMs + boughtMs, nowMs + this.aheadMaxMs);
    if (isAwaited) return nowMs > this.deadlineMs;
    this.deadlineMs = Math.max(this.deadlineMs, nowMs + clientGraceMs);
    return false;
  }
}
