import type { BanPolicy, Grant, PlanWindow } from '../shared/model.ts';
import { banByHand, type HandBan, noBan } from './bans.ts';
import { unendedGrant } from './grants.ts';
import { emptyQuotaState, type QuotaState, trialPrefix } from './hash.ts';

/** Outside of a decision. */
export type Change = {
  readonly units?: readonly ChargedUnits[];
  /** An ended grant counts as `none`. */
  readonly grant?: Grant | 'none';
} & (Banned | Lifted | { readonly ban?: never; readonly lift?: never; readonly reset?: never });

interface Banned {
  readonly ban: HandBan;
  readonly bans: BanPolicy;
  readonly lift?: never;
  readonly reset?: never;
}

interface Lifted {
  readonly ban?: never;
  /** Ends the strikes and the bans of the plan and of the trial. */
  readonly lift?: true;
  /** Does the same, and removes all counts and reported thresholds. The grant stays. */
  readonly reset?: true;
  readonly bans: BanPolicy;
}

/** To take back. The hash field has the number of the window, for example `trial:reports:day`. */
export type ChargedUnits = readonly [field: string, number: number, units: number];

/** @returns the changed counts, and the time until which the change needs them, epoch ms */
export function adjust(before: Readonly<QuotaState>, change: Change, nowMs: number) {
  let state = before;
  let neededUntilMs = 0;
  for (const units of change.units ?? []) state = takeBack(state, units);
  if (change.lift || change.reset) {
    state = lift(state, nowMs);
    neededUntilMs = state.liftedMs + change.bans.maxMs;
  }
  if (change.reset) state = reset(state);
  if (change.ban) {
    state = withHandBan(state, change.ban);
    neededUntilMs = change.ban.untilMs + change.bans.maxMs;
  }
  if (change.grant !== undefined) {
    const grant = unendedGrant(change.grant === 'none' ? undefined : change.grant, nowMs);
    state = { ...state, grant };
    neededUntilMs = Math.max(neededUntilMs, grant?.untilMs ?? 0);
  }
  return { state, neededUntilMs };
}

/** 0 for a missing field. */
export function countIn(state: Readonly<QuotaState>, field: string): number {
  const isOfTrial = field.startsWith(trialPrefix);
  const side = isOfTrial ? state.trial : state;
  return side?.[field.slice(isOfTrial ? trialPrefix.length : 0) as PlanWindow] ?? 0;
}

/** How many of the units the window has charged. */
export function chargedOf(state: Readonly<QuotaState>, [field, number, units]: ChargedUnits): number {
  return countIn(state, field) === number ? Math.max(0, Math.min(units, countIn(state, `${field}Used`))) : 0;
}

function takeBack(before: Readonly<QuotaState>, units: ChargedUnits): Readonly<QuotaState> {
  const charged = chargedOf(before, units);
  if (charged === 0) return before;
  const field = `${units[0]}Used`;
  const used = countIn(before, field) - charged;
  const { trial } = before;
  if (trial === undefined || !field.startsWith(trialPrefix)) return { ...before, [field]: used };
  return { ...before, trial: { ...trial, [field.slice(trialPrefix.length)]: used } };
}

function withHandBan(before: Readonly<QuotaState>, handBan: HandBan): Readonly<QuotaState> {
  const state = { ...before, handBan };
  banByHand(state, handBan);
  if (state.trial === undefined) return state;
  const trial = { ...state.trial };
  banByHand(trial, handBan);
  return { ...state, trial };
}

/** The new generation makes the store ignore older strikes and bans, even if processes send them later. */
function lift(before: Readonly<QuotaState>, nowMs: number): Readonly<QuotaState> {
  const liftedMs = Math.max(nowMs, before.liftedMs + 1);
  const { trial } = before;
  return { ...before, ...noBan, ...(trial && { trial: { ...trial, ...noBan } }), liftedMs };
}

function reset({ liftedMs, grant }: Readonly<QuotaState>): Readonly<QuotaState> {
  return { ...emptyQuotaState, liftedMs, resetMs: liftedMs, grant };
}
