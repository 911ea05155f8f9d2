import type { ServerResponse } from 'node:http';
import { Shares } from '../../shared/structures/shares.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';

/**
 * What clients have not read yet of pages that need no key. It stays in memory, here and in the kernel: one address may have
 * so much of it, and each response so much time.
 */
export interface UnreadPages {
  /**
   * Counts a response that is about to be written, until its client has read it or is disconnected.
   *
   * @param holder the client address (`address-group.ts`)
   * @returns false when that is more than its address may have
   */
  hold(response: { readonly holder: string; readonly bytes: number; readonly res: ServerResponse }): boolean;
}

export function createUnreadPages({
  docsUnreadBytesMax,
  docsReadBytesPerSecond,
  docsReadTimeoutMs,
}: Pick<Bounds, 'docsUnreadBytesMax' | 'docsReadBytesPerSecond' | 'docsReadTimeoutMs'>): UnreadPages {
  const shares = new Shares(docsUnreadBytesMax);
  return {
    hold({ holder, bytes, res }) {
      if (!shares.take(holder, bytes)) return false;
      // The kernel often takes a whole response before the client has read any of it: until then it is unread at least.
      const readAtMs = performance.now() + (bytes * 1_000) / docsReadBytesPerSecond;
      const timeoutTimer = setTimeout(() => res.destroy(), docsReadTimeoutMs).unref();
      res.once('close', () => {
        clearTimeout(timeoutTimer);
        const restMs = Math.max(0, readAtMs - performance.now());
        setTimeout(() => shares.give(holder, bytes), restMs).unref();
      });
      return true;
    },
  };
}
