import type { QuotaCall, QuotaOutcome } from './decide-quota.ts';

/** Where the counts of all keys live. One contract suite (`test/contract/`) holds for every adapter. */
export interface QuotaStore {
  /** Decides each call atomically, in the given order. Never rejects; the replies are in the order of the calls. */
  decide(calls: readonly QuotaCall[]): Promise<readonly QuotaReply[]>;
}

export type QuotaReply = QuotaDecided | StoreFailure;

export interface QuotaDecided {
  readonly kind: 'decided';
  readonly outcome: QuotaOutcome;
}

/** The store gave no answer. A call that `mayHaveRun` must not be sent again: it could be charged twice. */
export interface StoreFailure {
  readonly kind: 'failed';
  readonly mayHaveRun: boolean;
  readonly reason: string;
}
