import type { Away } from '../../../redis/redis-reply.ts';
import type { GuardedEdit } from '../guarded-edit.ts';
import type { GuardFigures, GuardReport, GuardState } from './decide-guard.ts';

/** The storage of the states of guards, which all processes share. The promises never reject. */
export interface GuardStore {
  /** Resolves when the store is connected or its start timeout has passed. */
  readonly started: Promise<void>;
  /** Runs calls, whose commands are sent together. */
  together<T>(calls: () => T): T;
  /** Adds counts, decides whether the plan is reverted, and reads the state. */
  report(edit: GuardedEdit, report: NumberedReport): Promise<GuardReply | Away>;
  /** Ends a revert. `hasChanged` of the reply is false if the plan is not reverted. @param known the state that the process knows */
  retry(edit: GuardedEdit, known: GuardState): Promise<GuardReply | Away>;
  /** Calls the listener when the store is available again. */
  onReturn(listener: () => void): void;
}

interface NumberedReport extends GuardReport {
  /** A report without a reply is sent again with the same number, and the store counts it once. A new report has a larger number. */
  readonly number: number;
}

export interface GuardReply {
  readonly kind: 'replied';
  readonly state: GuardState;
  readonly figures: GuardFigures;
  /** Whether this call has reverted the plan, or ended its revert. */
  readonly hasChanged: boolean;
}
