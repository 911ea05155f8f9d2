import type { BanPolicy, Grant, StaleKey } from '../../../shared/model.ts';
import type { QuotaCall, QuotaOutcome, QuotaState } from './decide-quota.ts';

/** Where the counts of all keys live. One contract suite (`test/contract/`) holds for every adapter. Nothing rejects. */
export interface QuotaStore {
  /** Decides each call atomically, in the given order; the replies are in the order of the calls. */
  decide(calls: readonly QuotaCall[]): Promise<readonly QuotaReply[]>;
  /**
   * What was counted of each key, in the order of the ids; of a key that the store does not know, nothing. Where some servers
   * of the store give no answer, their keys are unknown; it fails when all are.
   */
  read(keyIds: readonly string[]): Promise<QuotaRead | StoreFailure>;
  /** Ends the key's ban; what a process collected before cannot bring it back (`decide-quota.ts`, generations). */
  liftBan(keyId: string, bans: BanPolicy): Promise<QuotaChanged | StoreFailure>;
  /** Forgets all that was counted of the key, bans included; a grant stays. */
  reset(keyId: string, bans: BanPolicy): Promise<QuotaChanged | StoreFailure>;
  /** Gives the key a grant in place of the one that it has; undefined takes that away. What was counted stays. */
  setGrant(keyId: string, grant: Grant | undefined): Promise<QuotaChanged | StoreFailure>;
}

export type QuotaReply = QuotaDecided | StaleKey | StoreFailure;

export interface QuotaDecided {
  readonly kind: 'decided';
  readonly outcome: QuotaOutcome;
}

export interface QuotaRead {
  readonly kind: 'read';
  /** The store's clock, epoch ms. */
  readonly nowMs: number;
  /** As they were counted last: a window that has ended since then is not opened anew. Undefined: unknown. */
  readonly states: readonly (Readonly<QuotaState> | undefined)[];
}

export interface QuotaChanged {
  readonly kind: 'changed';
  /** The store's clock, epoch ms. */
  readonly nowMs: number;
  readonly state: Readonly<QuotaState>;
}

/** The store gave no answer. A call that `mayHaveRun` must not be sent again: it could be charged twice. */
export interface StoreFailure {
  readonly kind: 'failed';
  readonly mayHaveRun: boolean;
  readonly reason: string;
  /** The store is there, and decides other keys: under the name of this one lies what it cannot use. */
  readonly keyOnly?: boolean;
}
