import type { Change } from '../../../quota/adjust.ts';
import type { QuotaCall, QuotaOutcome } from '../../../quota/decide-key.ts';
import type { QuotaState } from '../../../quota/hash.ts';
import type { ToldMark } from '../../../quota/thresholds.ts';
import type { StaleKey } from '../../../shared/model.ts';

/** The store of the counts of all keys. All implementations pass the same tests (`test/contract/`). No promise rejects. */
export interface QuotaStore {
  /** Decides each call atomically, in the order of the calls. The replies have the order of the calls. */
  decide(calls: readonly QuotaCall[]): Promise<readonly QuotaReply[]>;
  /**
   * Reads the counts of keys, in the order of the ids. An unknown key gets empty counts. The result is undefined for each key of a server
   * that does not reply. The call fails when no server replies.
   */
  read(keyIds: readonly string[]): Promise<QuotaRead | StoreFailure>;
  /**
   * Changes the counts of a key. Decisions from before a lifted ban or a reset restore nothing, even if processes send them later
   * (`liftedMs` in `quota/hash.ts`).
   */
  adjust(keyId: string, change: Change): Promise<QuotaChanged | StoreFailure>;
  /** Marks a threshold as reported, so that decisions no longer return it (`confirmTold` in `thresholds.ts`). */
  confirmTold(keyId: string, mark: ToldMark): Promise<ToldConfirmed | StoreFailure>;
}

export type QuotaReply = QuotaDecided | StaleKey | StoreFailure;

export interface QuotaDecided {
  readonly kind: 'decided';
  readonly outcome: QuotaOutcome;
}

interface QuotaRead {
  readonly kind: 'read';
  /** The store's clock, epoch ms. */
  readonly nowMs: number;
  /**
   * The last counts of each key. The counts may belong to a window that has ended. The element is undefined for a key whose server did not
   * reply.
   */
  readonly states: readonly (Readonly<QuotaState> | undefined)[];
}

export interface QuotaChanged {
  readonly kind: 'changed';
  /** The store's clock, epoch ms. */
  readonly nowMs: number;
  readonly state: Readonly<QuotaState>;
}

interface ToldConfirmed {
  readonly kind: 'confirmed';
  /** Whether the mark is stored. It is not stored if the window has ended, or if the counts were reset meanwhile. */
  readonly isStored: boolean;
}

/** A call without a valid reply. If `mayHaveRun` is true, the call must not be sent again, because it could be charged twice. */
export interface StoreFailure {
  readonly kind: 'failed';
  readonly mayHaveRun: boolean;
  readonly reason: string;
  /** True when the store is available, but the Redis key of this API key has an unusable value. */
  readonly keyOnly?: boolean;
}
