import type { ServerResponse } from 'node:http';
import { Shares } from '../../shared/structures/shares.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';

/**
 * Limits the total size of public pages that clients have requested but not read yet. Such pages occupy memory of the process and the
 * kernel. The limit is divided among client addresses. The class also limits the duration of each response.
 */
export class UnreadPages {
  private readonly bounds: Bounds;
  private readonly shares: Shares;

  constructor(bounds: Bounds) {
    this.bounds = bounds;
    this.shares = new Shares(bounds.docsUnreadBytesMax);
  }

  /**
   * Counts a response until its client has read it or is disconnected.
   *
   * @param holder the client address (`address-group.ts`)
   * @returns false when this address has too many unread octets
   */
  hold({ holder, bytes, res }: { holder: string; bytes: number; res: ServerResponse }): boolean {
    if (!this.shares.take(holder, bytes)) return false;
    // The kernel often buffers a whole response before the client reads it. The response is therefore counted for a minimum time, which
    // depends on its size.
    const readAtMs = performance.now() + (bytes * 1_000) / this.bounds.docsReadBytesPerSecond;
    const timeoutTimer = setTimeout(() => res.destroy(), this.bounds.docsReadTimeoutMs).unref();
    res.once('close', () => {
      clearTimeout(timeoutTimer);
      const restMs = Math.max(0, readAtMs - performance.now());
      setTimeout(() => this.shares.give(holder, bytes), restMs).unref();
    });
    return true;
  }
}
