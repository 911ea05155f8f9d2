import type { BanPolicy, Grant, StaleKey } from '../../../shared/model.ts';
import type { QuotaCall, QuotaOutcome, QuotaState } from './decide-quota.ts';

/** The store of the counts of all keys. One contract suite (`test/contract/`) holds for every adapter. No promise rejects. */
export interface QuotaStore {
  /** Decides each call atomically, in order. The replies have the same order. */
  decide(calls: readonly QuotaCall[]): Promise<readonly QuotaReply[]>;
  /**
   * Reads the counts of keys, in the order of the ids. A key that the store does not know has no counts. When some servers give no answer,
   * the status of their keys is unknown. When no server answers, the call fails.
   */
  read(keyIds: readonly string[]): Promise<QuotaRead | StoreFailure>;
  /** Ends the key's ban. Earlier decisions of other processes cannot restore it (`decide-quota.ts`, generations). */
  liftBan(keyId: string, bans: BanPolicy): Promise<QuotaChanged | StoreFailure>;
  /** Resets all counts and bans of the key. A grant stays. */
  reset(keyId: string, bans: BanPolicy): Promise<QuotaChanged | StoreFailure>;
  /** Replaces the key's grant; undefined removes it. Counts stay. */
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
  /** The last counts. A window that has ended since is not opened again. Undefined when unknown. */
  readonly states: readonly (Readonly<QuotaState> | undefined)[];
}

export interface QuotaChanged {
  readonly kind: 'changed';
  /** The store's clock, epoch ms. */
  readonly nowMs: number;
  readonly state: Readonly<QuotaState>;
}

/** The store gave no answer. A call that `mayHaveRun` must not be sent again, because it could be charged twice. */
export interface StoreFailure {
  readonly kind: 'failed';
  readonly mayHaveRun: boolean;
  readonly reason: string;
  /** The store is available, but has an unusable value under the name of this key. */
  readonly keyOnly?: boolean;
}
