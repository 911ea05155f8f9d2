import type { Bounds } from '../../../shared/timeouts-and-sizes.ts';
import type { GuardedEdit } from '../guarded-edit.ts';
import type { CountedPeriod } from './decide-guard.ts';
import { addCounts, type CountedRequest, type GuardCounts, RequestCounts } from './guard-counts.ts';

interface Period {
  /** The clock of `performance.now()`, because the store computes the time of the counts from their age. */
  readonly fromMs: number;
  readonly counts: GuardCounts;
}

/**
 * The counts of one guarded edit that the store has not confirmed. While the store is unavailable, the counts of each slot wait, at most for
 * ten minutes. Older counts are dropped, because a guard does not use them.
 */
export class UnsentCounts {
  readonly #edit: GuardedEdit;
  readonly #bounds: Bounds;
  #now = new RequestCounts();
  #fromMs: number;
  #waiting: Period[] = [];
  /** The report that was sent and not confirmed. */
  #sent: { readonly number: number; readonly periods: readonly Period[] } | undefined;
  #number = 0;

  constructor(edit: GuardedEdit, nowMs: number, bounds: Bounds) {
    this.#edit = edit;
    this.#bounds = bounds;
    this.#fromMs = nowMs;
  }

  count(request: CountedRequest): void {
    if (request.decision.rateLimit.nowMs >= this.#edit.guard.untilMs) return;
    this.#now.count(this.#edit, request, this.#bounds.guardKeysPerSlotMax);
  }

  /** Returns the next report: the counts of the last report again if the store has not confirmed them, and otherwise all new counts. */
  report(nowMs: number): { readonly number: number; readonly periods: readonly CountedPeriod[] } {
    this.#close(nowMs);
    if (this.#sent === undefined && this.#waiting.length > 0) {
      this.#number += 1;
      this.#sent = { number: this.#number, periods: this.#waiting };
      this.#waiting = [];
    }
    const { number, periods } = this.#sent ?? { number: this.#number, periods: [] };
    return { number, periods: periods.map(({ fromMs, counts }) => ({ agoMs: nowMs - fromMs, counts })) };
  }

  /** Drops the counts of the report with this number, because the store has them. */
  confirm(number: number): void {
    if (this.#sent?.number === number) this.#sent = undefined;
  }

  /** Drops all counts, because the guard ignores them after a revert and after a retry. */
  clear(): void {
    this.#now = new RequestCounts();
    this.#waiting = [];
    this.#sent = undefined;
  }

  /** Ends the present period. Periods of one slot are merged. */
  #close(nowMs: number): void {
    const { guardSlotMs, guardSlots, guardKeysPerSlotMax } = this.#bounds;
    const fromMs = this.#fromMs;
    this.#fromMs = nowMs;
    if (this.#now.isEmpty) return;
    const counts = this.#now.byName();
    this.#now = new RequestCounts();
    const last = this.#waiting.at(-1);
    if (last !== undefined && nowMs - last.fromMs <= guardSlotMs) {
      addCounts(last.counts, counts, guardKeysPerSlotMax);
      return;
    }
    this.#waiting.push({ fromMs, counts });
    if (this.#waiting.length > guardSlots) this.#waiting.shift();
  }
}
