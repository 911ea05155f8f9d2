import { withinDeadline } from '../../../shared/structures/within-deadline.ts';
import type { Bounds } from '../../../shared/timeouts-and-sizes.ts';
import type { Added, EventReport } from './delivery-queue.ts';

/** A report that Redis does not have yet. */
export interface Unsent {
  readonly report: EventReport;
  /** Identifies the report among the reports of this process. */
  readonly number: number;
  /** The time of the report, on the clock of `performance.now()`. */
  readonly reportedMs: number;
  /** The number of reports that were dropped before this report is sent. */
  readonly lost: number;
}

/**
 * Keeps the reports of this process until Redis has them. Reports are sent one at a time, so they keep their order. A report without a reply
 * is sent again, because the script that adds it ignores a second copy.
 */
export function createOutbox({
  send,
  isReady,
  bounds,
}: {
  /** Rejects if Redis has refused the report, or if the reply was lost. */
  readonly send: (unsent: Unsent) => Promise<Added>;
  readonly isReady: () => boolean;
  readonly bounds: Bounds;
}) {
  const unsent: (Omit<Unsent, 'lost'> & { readonly resolve: (added: Added) => void })[] = [];
  let number = 0;
  let lost = 0;
  let sending: Promise<void> | undefined;
  const timer = setInterval(sendSoon, bounds.webhookPollMs).unref();

  function sendSoon(): void {
    if (unsent.length > 0) sending ??= sendAll().finally(() => (sending = undefined));
  }

  async function sendAll(): Promise<void> {
    for (let first = unsent[0]; first !== undefined && isReady(); first = unsent[0]) {
      const lostBefore = lost;
      const added = await withinDeadline<Added | undefined>(
        send({ ...first, lost: lostBefore }).catch(() => undefined),
        bounds.storePatientDeadlineMs,
        () => undefined,
      );
      if (added === undefined) return;
      lost -= lostBefore;
      if (unsent[0] === first) unsent.shift();
      first.resolve(added);
    }
  }

  return {
    add(report: EventReport): Promise<Added> {
      return new Promise((resolve) => {
        number += 1;
        unsent.push({ report, number, reportedMs: performance.now(), resolve });
        if (unsent.length > bounds.webhooksMax) {
          lost += 1;
          unsent.shift()?.resolve({ kind: 'dropped' });
        }
        sendSoon();
      });
    },
    size: () => unsent.length,
    /** Sends the remaining reports, and stops. @returns the number of reports that Redis did not take */
    async close(): Promise<number> {
      clearInterval(timer);
      sendSoon();
      await withinDeadline(sending ?? Promise.resolve(), bounds.webhooksCloseTimeoutMs, () => undefined);
      const left = unsent.splice(0);
      for (const { resolve } of left) resolve({ kind: 'dropped' });
      return left.length;
    },
  };
}
