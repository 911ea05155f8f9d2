import type { QuotaThreshold } from '../../../fleet/kinds/key-notices.ts';
import type { Limiter } from '../../../request/limit/limiter.ts';
import type { Bounds } from '../../../shared/timeouts-and-sizes.ts';
import type { createNotify } from '../notify.ts';
import { eventIdentity } from './event-identity.ts';

/**
 * Puts the events of thresholds into the queue of webhooks, and then marks each threshold as reported in the counts of its key. Until then,
 * processes report the threshold again. The identity of the event prevents a second event.
 */
export function createThresholdEvents({
  notify,
  limiter,
  bounds,
}: {
  readonly notify: Pick<ReturnType<typeof createNotify>, 'record' | 'queue'>;
  readonly limiter: Pick<Limiter, 'confirmTold' | 'storeNowMs'>;
  readonly bounds: Bounds;
}) {
  /**
   * The thresholds that the queue does not have yet. Repeated reports are ignored meanwhile, because each report would take the place of
   * another event while Redis is away. The queue limits the number of waiting events.
   */
  const waiting = new Set<string>();

  return {
    /** @param seenBy the process that observed it, if another process records it */
    async record(threshold: QuotaThreshold, seenBy?: string): Promise<void> {
      const name = JSON.stringify(identity(threshold).what);
      if (waiting.has(name)) return;
      waiting.add(name);
      const outcome = await notify.record(threshold, seenBy);
      waiting.delete(name);
      if (outcome !== 'dropped') await confirm(threshold);
    },
  };

  /**
   * If the counts of the key have the mark, only reports that are still on their way need the identity. Otherwise processes may report the
   * threshold until the window ends.
   */
  async function confirm(threshold: QuotaThreshold): Promise<void> {
    const reply = await limiter.confirmTold(threshold);
    if (reply.kind === 'failed' || !reply.isStored) return;
    await notify.queue.mergeUntil(identity(threshold), bounds.thresholdMergedMs);
  }

  function identity(threshold: QuotaThreshold) {
    return eventIdentity(threshold, limiter.storeNowMs(), bounds);
  }
}
