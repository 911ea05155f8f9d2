import type { QuotaCall } from '../../../quota/decide-key.ts';
import type { KeyLedger } from '../key-ledger.ts';
import type { QuotaReply } from '../store/quota-store.ts';
import type { StoreHealth, StorePart } from '../store/store-health.ts';

/** Sends decisions that this process made alone to the store. */
export function createReporter({
  health,
  ledger,
  send,
  keysPerReportMax,
}: {
  readonly health: StoreHealth;
  readonly ledger: Pick<KeyLedger, 'openReports'>;
  readonly send: (part: StorePart, calls: readonly QuotaCall[]) => Promise<readonly QuotaReply[]>;
  readonly keysPerReportMax: number;
}) {
  /** The number of reports in progress. */
  let reports = 0;

  /**
   * Sends the unsent decisions. The loop stops when the store fails.
   *
   * @returns whether the store has replied to every call
   */
  return async (): Promise<boolean> => {
    reports += 1;
    const isSent = await sendReports().finally(() => {
      reports -= 1;
    });
    return isSent && reports === 0;
  };

  async function sendReports(): Promise<boolean> {
    for (let reach = health.reach(); reach !== 'none'; reach = health.reach()) {
      const isThere = reach === 'all' ? undefined : (keyId: string) => health.partOf(keyId).available();
      const calls = ledger.openReports(keysPerReportMax, isThere);
      if (calls.length === 0) return reach === 'all';
      const sent = health.divide(calls).map((each) => send(each.part, each.calls));
      const replies = await Promise.all(sent);
      if (replies.some((ofPart) => ofPart.some((reply) => reply.kind === 'failed'))) return false;
    }
    return false;
  }
}
