import type { QuotaCall } from '../../../quota/decide-key.ts';
import type { DecisionSource } from '../../../shared/model.ts';
import type { BanLog } from '../ban-log.ts';
import type { KeyLedger } from '../key-ledger.ts';
import type { QuotaReply, QuotaStore } from '../store/quota-store.ts';
import type { StoreClock } from '../store/store-clock.ts';
import type { StorePart } from '../store/store-health.ts';
import type { ThresholdReports } from '../threshold-reports.ts';

export interface SenderDeps {
  readonly store: Pick<QuotaStore, 'decide'>;
  /** The value of `source` in decisions of the store. */
  readonly source: DecisionSource;
  readonly ledger: Pick<KeyLedger, 'settle' | 'giveUp'>;
  readonly clock: StoreClock;
  /** This process's clock, epoch ms. */
  readonly nowMs: () => number;
  /** Receives the state of a key after each decision by the store or by this process. */
  readonly bans: Pick<BanLog, 'observe'>;
  /** Receives each decision by the store or by this process. */
  readonly thresholds: Pick<ThresholdReports, 'observe'>;
  /** Called when the store has an unusable value in place of a key's counts. */
  readonly onUnusable: (keyId: string) => void;
}

/** Sends calls to the store, and passes each reply to the parts that keep counts of the key. */
export function createSender(deps: SenderDeps) {
  const { store, source, ledger, clock, nowMs } = deps;
  let decided = 0;
  let failed = 0;

  return {
    /** @param calls calls for keys of one part of the store. Their unsent decisions were taken from the ledger */
    async send(part: StorePart, calls: readonly QuotaCall[]): Promise<readonly QuotaReply[]> {
      const sentMs = nowMs();
      const replies = await store.decide(calls);
      let failure: string | undefined;
      for (const [index, call] of calls.entries()) failure = settle(call, replies[index], sentMs) ?? failure;
      if (failure === undefined) part.succeeded();
      else part.failed(failure);
      return replies;
    },
    /** The numbers of calls that the store has decided and has not decided. */
    counts: () => ({ decided, failed }),
  };

  /** @returns why the store has failed */
  function settle(call: QuotaCall, reply: QuotaReply | undefined, sentMs: number): string | undefined {
    if (reply?.kind === 'decided') {
      const { outcome } = reply;
      decided += 1;
      clock.observe(sentMs, outcome.nowMs);
      ledger.settle(call, outcome);
      deps.bans.observe(call.keyId, outcome.state, outcome.nowMs);
      deps.thresholds.observe(call.keyId, outcome, source);
      return undefined;
    }
    if (reply?.kind === 'stale') {
      decided += 1;
      ledger.giveUp(call, false);
      return undefined;
    }
    failed += 1;
    ledger.giveUp(call, reply?.mayHaveRun ?? true);
    if (!reply?.keyOnly) return reply?.reason ?? 'no reply';
    deps.onUnusable(call.keyId);
    return undefined;
  }
}
