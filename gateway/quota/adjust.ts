import type { BanPolicy, Grant } from '../shared/model.ts';
import { noBan } from './bans.ts';
import { unendedGrant } from './grants.ts';
import { emptyQuotaState, numberIn, type QuotaState, withNumber } from './hash.ts';

/** A change to the counts of a key without a decision. */
export interface Adjustment {
  readonly giveBack?: readonly UnitsBack[] | undefined;
  /**
   * Lifts the ban and resets the ban level, also in the trial. Requests are admitted again if the windows have room. Older decisions cannot
   * restore the ban, even if processes send them later (`liftedMs`).
   */
  readonly lift?: BanPolicy | undefined;
  /** Lifts the ban, and resets all counts and reported thresholds, but not a grant. Older decisions are not added later (`resetMs`). */
  readonly reset?: BanPolicy | undefined;
  /** Replaces or removes the grant. The counts do not change. */
  readonly grant?: Grant | 'none' | undefined;
}

/** Charged units that a window gives back: the hash field and the number of the window, and the units. */
export type UnitsBack = readonly [field: string, number: number, units: number];

/** Returns the counts after a change, and the time until which the change must be stored, epoch ms; 0 if it may be forgotten at any time. */
export function adjust(
  before: Readonly<QuotaState>,
  { giveBack = [], lift, reset, grant }: Adjustment,
  nowMs: number,
): { readonly state: Readonly<QuotaState>; readonly untilMs: number } {
  let state = giveBack.reduce(withUnitsBack, before);
  let untilMs = 0;
  const bans = reset ?? lift;
  if (bans !== undefined) {
    state = reset === undefined ? lifted(state, nowMs) : resetCounts(state, nowMs);
    untilMs = state.liftedMs + bans.maxMs;
  }
  if (grant !== undefined) {
    state = { ...state, grant: grant === 'none' ? undefined : unendedGrant(grant, nowMs) };
    untilMs = Math.max(untilMs, state.grant?.untilMs ?? 0);
  }
  return { state, untilMs };
}

/** Returns the units that a window gives back: none if the state has another window, and at most the used units. */
export function givenBack(state: Readonly<QuotaState>, [field, number, units]: UnitsBack): number {
  if (numberIn(state, field) !== number) return 0;
  return Math.max(0, Math.min(units, numberIn(state, `${field}Used`)));
}

function withUnitsBack(state: Readonly<QuotaState>, units: UnitsBack): Readonly<QuotaState> {
  const [given, usedField] = [givenBack(state, units), `${units[0]}Used`];
  return given === 0 ? state : withNumber(state, usedField, numberIn(state, usedField) - given);
}

function lifted(before: Readonly<QuotaState>, nowMs: number): QuotaState {
  const liftedMs = Math.max(nowMs, before.liftedMs + 1);
  const { trial } = before;
  return { ...before, ...noBan, ...(trial && { trial: { ...trial, ...noBan } }), liftedMs };
}

function resetCounts(before: Readonly<QuotaState>, nowMs: number): QuotaState {
  const { liftedMs, grant } = lifted(before, nowMs);
  return { ...emptyQuotaState, liftedMs, resetMs: liftedMs, grant };
}
